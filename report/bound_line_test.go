package report

import (
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
)

// Eight operations at once that fill a link are each at an eighth of the line of one
// alone: nothing is told from that.
func TestOperationsAtOnceHaveNoLineOfOne(t *testing.T) {
	r := &Report{}
	for n, want := range map[int]bool{1: true, 8: false} {
		c := &Cell{plan: experiment.Cell{Overhead: &experiment.ResolvedOverhead{Operation: "get", Concurrency: n}}}
		tr := &Trial{Info: c}
		tr.Metrics = map[string]float64{"line_share": 0.125}
		if _, ok := r.lineShareOf(tr); ok != want {
			t.Errorf("%d at once have a share of the line: %v", n, ok)
		}
	}
}
