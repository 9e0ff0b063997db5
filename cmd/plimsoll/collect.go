package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plimsoll-project/plimsoll/engine"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/report"
	"github.com/plimsoll-project/plimsoll/system"
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
		Use:   "collect SYSTEM",
		Short: "poll a running storage system and serve Prometheus metrics",
		Long: `Polls a running system: contracts, files, money, storage, peers, whatever it
reports. It changes nothing there. Each answer is recorded in a run directory
with the time it took; a call without an answer is a gap with its reason.
Meanwhile /metrics is served for Prometheus, beside a page of the run. Ctrl-C
ends it; plimsoll resume continues.`,
		Example: `  plimsoll collect siad --with url=http://127.0.0.1:9980
  plimsoll collect renterd --with url=http://127.0.0.1:9980 --every 5m --for 25d`,
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

func (p *program) collect(ctx context.Context, ask collection, out, address string, open bool) error {
	plan, err := ask.plan()
	if err != nil {
		return ui.Exit(ui.CodeUsage, err)
	}
	out = outOr(out, "collect-"+ask.system)
	if address != "none" {
		handler := report.Metrics(out)
		if loopbackOnly(address) == nil {
			handler = report.Live(out)
		}
		s, err := p.listen(ctx, handler, address, open, "metrics for Prometheus: http://ADDRESS/metricsTOKEN")
		if err != nil {
			return ui.Exit(ui.CodeUsage, err)
		}
		defer s.stop()
	}
	return p.execute(ctx, engine.Config{Plan: plan, Dir: out}, elsewhere{})
}

// plan is that of an experiment which only polls a system that runs.
func (ask collection) plan() (*experiment.Plan, error) {
	with := map[string]string{}
	for _, pair := range ask.with {
		key, value, ok := strings.Cut(pair, "=")
		if _, twice := with[key]; !ok || key == "" || twice {
			if !ok { // it may be a secret
				key = "***"
			}
			return nil, ui.WithHint(fmt.Errorf("--with %s: wanted KEY=VALUE, each key once", key),
				"the options are listed by plimsoll systems "+ask.system)
		}
		with[key] = value
	}
	var set []string
	if ask.price != "" {
		set = []string{"collect.price=" + ask.price}
	}
	src, err := json.Marshal(map[string]any{ // which is YAML, too
		"scenario": "collect",
		"systems":  []any{map[string]any{"use": ask.system, "mode": string(system.Attach), "with": with}},
		"collect":  map[string]string{"every": ask.every, "for": ask.length},
	})
	if err != nil {
		return nil, err
	}
	return planOf("plimsoll collect", src, set, "")
}
