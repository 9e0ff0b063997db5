package experiment

import (
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment/gate"
)

// A rule for which --set leaves no cell, or nothing to compare with, is refused, and the message
// explains that it would never be decided.
func TestGatesOfAScaledPlan(t *testing.T) {
	const held = `scenario: retrieve
systems: [nginx, boxo]
data: {size: 64MiB}
retrieve: {concurrency: [1, 8], requests: 100}
gates:
  - throughput within 20% of nginx where system == boxo
  - success >= 99% where concurrency == 8
`
	for _, c := range []struct {
		set  []string
		want string // empty: no error
	}{
		{nil, ""},
		{[]string{"systems=nginx"}, "no cell of the run is meant"},
		{[]string{"systems=boxo"}, "the run has no system `nginx`"},
		{[]string{"systems=boxo"}, "--set gates= leaves out the rules of the file"},
		{[]string{"systems=boxo", "gates=success >= 99% where system != nginx"}, ""},
		{[]string{"systems=boxo", "gates=success >= 99% where system != nginy"}, "it has no level `nginy`"},
		{[]string{"systems=nginx", "gates="}, ""},
		{[]string{"systems=nginx", "systems=nginx,boxo"}, ""},
		{[]string{"systems=boxo", "gates=success >= 99% where system == boxo and concurrency == 8"}, ""},
		{[]string{"retrieve.concurrency=1"}, "`concurrency` is no factor"},
		{[]string{"retrieve.concurrency=1", "gates="}, ""},
		{[]string{"retrieve.concurrency=1,2"}, "`retrieve.concurrency`: it has no level `8`"},
		{[]string{`where=["system == nginx || retrieve.concurrency == 1"]`,
			`gates=throughput > 1kB/s where system == boxo and concurrency == 8`}, "no cell of the run is meant"},
		{[]string{"gates=throughput > 1kB/s,success >= 9%"}, "several rules are a list: [RULE, RULE]"},
		{[]string{"gates=[throughput > 1kB/s, success >= 9%]"}, ""},
		{[]string{"gates=[throughput > 1kB/s, throughput >= 1kB/s]"}, ""},
	} {
		e, err := ParseKnowing("test.yaml", []byte(held), c.set, testCatalog(), testKnown())
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.set, err, c.want)
		}
		if err != nil {
			continue
		}
		// A report parses the rules of its plan again, with the names in the plan.
		p, err := e.Plan()
		must(t, err)
		for _, rule := range p.Experiment.Gates {
			if _, err := gate.Parse(rule, p.Experiment.GateNames(p.Cells), 0); err != nil {
				t.Errorf("%v: the plan's rule %s: %v", c.set, rule, err)
			}
		}
	}
}
