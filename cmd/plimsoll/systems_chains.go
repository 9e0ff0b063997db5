package main

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/plimsoll-project/plimsoll/engine"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/system/chaincache"
)

// removeTime bounds the wait for who is making the chain that is to be removed.
const removeTime = 10 * time.Second

func (p *program) chainsCommand() *cobra.Command {
	var remove []string
	c := &cobra.Command{
		Use:   "chains",
		Short: "list the chains that are kept for all runs of scenario sync, and remove them",
		Long: `Lists the chains that runs of scenario sync have made and left for the next ones,
the least recently used first. Nothing removes them by itself; one that is missed is
made again. Remove none that a run is using.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return p.chains(c.Context(), remove) },
	}
	c.Flags().StringArrayVar(&remove, "remove", nil, "remove this one, by its name in the list, repeatable; all: all "+
		"of them")
	return c
}

func (p *program) chains(ctx context.Context, remove []string) error {
	dir, err := engine.ChainCache()
	if err != nil {
		return ui.Exit(ui.CodePreconditions, err)
	}
	cache := chaincache.Cache{Dir: dir, System: "plimsoll"}
	all, err := cache.List()
	if err != nil {
		return ui.Exit(ui.CodePreconditions, err)
	}
	if len(remove) == 1 && remove[0] == "all" {
		remove = nil
		for _, e := range all {
			remove = append(remove, e.Name)
		}
	}
	if len(remove) > 0 {
		return p.removeChains(ctx, cache, remove)
	}
	if p.ui.JSON {
		for _, e := range all {
			p.ui.Emit(e)
		}
		return nil
	}
	if len(all) == 0 {
		fmt.Fprintf(p.stdout, "no chains are kept in %s\n", dir)
		return nil
	}
	var size int64
	tw := tabwriter.NewWriter(p.stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(tw, "CHAIN\tSIZE\tLAST USED\tSTATE")
	for _, e := range all {
		size += e.Size
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", e.Name, experiment.RoughBytes(float64(e.Size)), e.Used.Format(time.DateTime),
			e.State)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.stdout, "\n%d, of %s, in %s; plimsoll systems chains --remove NAME removes one\n", len(all),
		experiment.RoughBytes(float64(size)), dir)
	return err
}

func (p *program) removeChains(ctx context.Context, cache chaincache.Cache, names []string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, removeTime, fmt.Errorf("not done after %v", removeTime))
	defer cancel()
	for _, name := range names {
		if err := cache.Remove(ctx, name); err != nil {
			return usage(err, "`plimsoll systems chains` lists them")
		}
		p.ui.Say("removed %s", name)
	}
	return nil
}
