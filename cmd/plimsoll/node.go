package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/plimsoll-project/plimsoll/engine"
	"github.com/plimsoll-project/plimsoll/httpload"
	"github.com/plimsoll-project/plimsoll/remote"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/all"
	"github.com/plimsoll-project/plimsoll/testbed"
	"github.com/plimsoll-project/plimsoll/testbed/agent"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// nodeCommand has the parts of a run that are separate processes: the embedded systems, the
// load generator, the link emulator and the watchdog.
func (p *program) nodeCommand() *cobra.Command {
	c := &cobra.Command{
		Use:    "node",
		Short:  "run one part of an experiment (used by plimsoll itself)",
		Hidden: true,
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
	part("agent", "a host's agent", func(ctx context.Context, args []string) error {
		return agent.Serve(ctx, args, p.stdin)
	})
	part("run", "a run that is followed from elsewhere", func(ctx context.Context, args []string) error {
		return remote.ServeNode(ctx, args, p.stdin, p.stdout,
			func(ctx context.Context, cfg engine.Config) (engine.Result, error) {
				fill(&cfg)
				res, err := engine.Run(ctx, cfg)
				return res, withStatus(err)
			})
	})
	part("link", "the link emulator", link.Serve)
	part("image", "become a program of a container image", func(_ context.Context, args []string) error {
		return testbed.ServeImage(args)
	})
	part("watchdog", "the watchdog that cleans up after us", func(_ context.Context, args []string) error {
		return testbed.ServeWatchdog(args, p.stdin, p.stdout)
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
