package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/report"
)

// collection is what `plimsoll collect` was asked for.
type collection struct {
	system string
	with   []string // KEY=VALUE
	every  string
	length string
	price  string
}

func (p *program) collectCommand() *cobra.Command {
	var ask collection
	var out, address string
	var open bool
	c := &cobra.Command{
		Use:  "collect SYSTEM",
		Args: exactly(1, "one system, such as siad"),
		RunE: func(c *cobra.Command, args []string) error {
			ask.system = args[0]
			return p.collect(c.Context(), ask, out, address, open)
		},
	}
	f := c.Flags()
	f.StringArrayVar(&ask.with, "with", nil,
		"an option of the system: KEY=VALUE, repeatable; see plimsoll systems SYSTEM")
	f.StringVar(&ask.every, "every", "1m", "interval of the polls, on an absolute schedule")
	f.StringVar(&ask.length, "for", "none", "how long, such as 12h or 25d; none: until it is interrupted")
	f.StringVar(&ask.price, "price", "",
		`what one unit of the system's currency costs, such as "0.014 USD (2018-06-01)"`)
	outFlag(c, &out, "collect-SYSTEM")
	f.StringVar(&address, "listen", "127.0.0.1:9117", "address of /metrics and the page; beyond this machine /metrics "+
		"alone is served; none: neither")
	noTokenFlag(c, &open)
	return c
}

// collect runs an experiment that only polls a running system.
func (p *program) collect(ctx context.Context, ask collection, out, address string, open bool) error {
	src := fmt.Sprintf("scenario: collect\nsystems: [{use: %q, mode: attach}]\n", ask.system)
	set := []string{"collect.every=" + ask.every, "collect.for=" + ask.length, "collect.price=" + ask.price}
	for _, pair := range ask.with {
		set = append(set, "systems.1.with."+pair)
	}
	cfg, err := configOf("plimsoll collect", []byte(src), set, ".")
	if err != nil {
		return err
	}
	cfg.Dir = outOr(out, "collect-"+ask.system)
	if address != "none" {
		handler := report.Metrics(cfg.Dir)
		if loopbackOnly(address) == nil {
			handler = report.Live(cfg.Dir)
		}
		s, err := p.listen(ctx, handler, address, open, "metrics for Prometheus: http://ADDRESS/metricsTOKEN")
		if err != nil {
			return ui.Exit(ui.CodeUsage, err)
		}
		defer s.stop()
	}
	return p.execute(ctx, cfg, elsewhere{})
}
