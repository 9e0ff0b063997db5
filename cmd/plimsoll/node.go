package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/plimsoll-project/plimsoll/engine"
	"github.com/plimsoll-project/plimsoll/httpload"
	"github.com/plimsoll-project/plimsoll/remote"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/all"
	"github.com/plimsoll-project/plimsoll/testbed/agent"
)

// nodeCommand has the parts of a run that are separate processes: the embedded systems, the
// load generator, the link emulator and the watchdog.
func (p *program) nodeCommand() *cobra.Command {
	c := &cobra.Command{
		Use:    "node",
		Short:  "run one part of an experiment (used by plimsoll itself)",
		Hidden: true, DisableFlagParsing: true,
		RunE: func(c *cobra.Command, args []string) error { // those that a testbed starts
			if handled, err := agent.ServeNode(c.Context(), append([]string{"node"}, args...)); handled {
				return err
			}
			return c.Help()
		},
	}
	part := func(name, short string, serve func(ctx context.Context, args []string) error) {
		c.AddCommand(&cobra.Command{
			Use: name, Short: short, DisableFlagParsing: true,
			RunE: func(c *cobra.Command, args []string) error { return serve(c.Context(), args) },
		})
	}
	part("load", "the HTTP load generator", func(ctx context.Context, _ []string) error {
		return httpload.Serve(ctx, p.stdin, p.stdout)
	})
	part("run", "a run that is followed from elsewhere", func(ctx context.Context, args []string) error {
		return remote.ServeNode(ctx, args, p.stdin, p.stdout,
			func(ctx context.Context, cfg engine.Config) (engine.Result, error) {
				fill(&cfg)
				res, err := engine.Run(ctx, cfg)
				return res, withStatus(err)
			})
	})
	for _, s := range all.All() {
		if e, ok := s.(system.Embedded); ok {
			part(s.Info().Name, s.Info().Summary, func(ctx context.Context, args []string) error {
				return e.Serve(ctx, args, p.stdout, p.stderr)
			})
		}
	}
	return c
}
