package report

import (
	_ "embed"
	"strings"
)

// A gauge is a metric for Prometheus made of what a poll read, of those readings that
// mean the same for every system. Everything else goes to otherReading.
type gauge struct {
	reading string // or a prefix, when label is not empty
	metric  string // with its unit, by Prometheus' conventions
	label   string // what follows the prefix
	help    string
}

//go:embed gauges.tsv
var gaugeTable string

func gauges() (all []gauge) {
	for line := range strings.Lines(gaugeTable) {
		if f := strings.Split(strings.TrimSuffix(line, "\n"), "\t"); f[0] != "reading" { // the head
			all = append(all, gauge{f[0], f[1], f[2], f[3]})
		}
	}
	return all
}

// gaugeOf is the gauge of a reading, and what its label says.
func (c *collector) gaugeOf(reading string) (metric string, labels []string) {
	for _, g := range c.readings {
		rest, has := strings.CutPrefix(reading, g.reading)
		switch {
		case g.label != "" && has:
			return g.metric, []string{rest}
		case g.label == "" && g.reading == reading:
			return g.metric, nil
		}
	}
	return otherReading, []string{reading}
}
