package experiment

import (
	"strings"
	"testing"
)

const ladder = `
scenario: overhead
systems: [tape, nginx]
link: {rate: 10Mbit, delay: [0s, 100ms]}
data: {size: [1B, 1MB, 100MB]}
overhead: {operation: [put, stat], count: 5, time: 10s, longest: 30s}
`

// Cells that would take too long are listed with the reason, and the remaining cells are the same
// for all systems.
func TestLongCellsAreSkipped(t *testing.T) {
	p := mustPlan(t, ladder)
	ids := map[string]bool{}
	for _, c := range p.Cells {
		ids[c.ID] = true
		if c.Estimate.Operation > 30 {
			t.Errorf("%s takes %.0f s and is in the plan", c.ID, c.Estimate.Operation)
		}
	}
	// 100 MB take 85 s at 10 Mbit/s; a stat of such an object takes no time.
	if len(p.Cells) != 20 || len(p.Skipped) != 4 || p.Estimate.Trials != 20*7 {
		t.Fatalf("%d cells, %d skipped, %d trials", len(p.Cells), len(p.Skipped), p.Estimate.Trials)
	}
	for _, s := range p.Skipped {
		if ids[s.ID] || !strings.Contains(s.Why, "overhead.longest (30s)") {
			t.Errorf("%+v", s)
		}
	}
	if more := mustPlan(t, ladder, "overhead.longest=10m"); more.Hash == p.Hash || len(more.Skipped) != 0 ||
		len(more.Cells) != 24 {
		t.Errorf("longest=10m: %d cells, %d skipped", len(more.Cells), len(more.Skipped))
	}
}
