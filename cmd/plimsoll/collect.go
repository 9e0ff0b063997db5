package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/report"
)

// collectCommand runs an experiment that only polls a running system.
func (p *program) collectCommand() *cobra.Command {
	var with []string
	var every, length, price, out, address string
	var open bool
	c := verb("collect SYSTEM", exactly(1, "one system, such as siad"), func(c *cobra.Command, args []string) error {
		src := fmt.Sprintf("scenario: collect\nsystems: [{use: %q, mode: attach}]\n", args[0])
		set := []string{"collect.every=" + every, "collect.for=" + length, "collect.price=" + price}
		for _, pair := range with {
			set = append(set, "systems.1.with."+pair)
		}
		cfg, err := configOf("plimsoll collect", []byte(src), set, ".")
		if err != nil {
			return err
		}
		cfg.Dir = outOr(out, "collect-"+args[0])
		if address != "none" {
			handler := report.Metrics(cfg.Dir)
			if loopbackOnly(address) == nil {
				handler = report.Live(cfg.Dir)
			}
			_, stop, err := p.listen(c.Context(), handler, address, open,
				"metrics for Prometheus: http://ADDRESS/metricsTOKEN")
			if err != nil {
				return ui.Exit(ui.CodeUsage, err)
			}
			defer stop()
		}
		return p.execute(c.Context(), cfg, place{})
	})
	f := c.Flags()
	f.StringArrayVar(&with, "with", nil,
		"an option of the system: KEY=VALUE, repeatable; see plimsoll systems SYSTEM")
	f.StringVar(&every, "every", "1m", "interval of the polls, on an absolute schedule")
	f.StringVar(&length, "for", "none", "how long, such as 12h or 25d; none: until it is interrupted")
	f.StringVar(&price, "price", "",
		`what one unit of the system's currency costs, such as "0.014 USD (2018-06-01)"`)
	outFlag(c, &out, "collect-SYSTEM")
	f.StringVar(&address, "listen", "127.0.0.1:9117", "address of /metrics and the page; beyond this machine /metrics "+
		"alone is served; none: neither")
	noTokenFlag(c, &open)
	return c
}
