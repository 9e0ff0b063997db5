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

// What is left out because it would take too long is listed, with its reason, and
// what is left is the same for all systems.
func TestLongCellsAreSkipped(t *testing.T) {
	p := mustPlan(t, ladder)
	ids := map[string]bool{}
	for _, c := range p.Cells {
		ids[c.ID] = true
		if c.Estimate.Operation > 30 {
			t.Errorf("%s takes %.0f s and is in the plan", c.ID, c.Estimate.Operation)
		}
	}
	// 100 MB take 85 s at 10 Mbit/s; asking about such an object takes no time.
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

func TestOverheadEstimate(t *testing.T) {
	cell := func(set ...string) CellEstimate {
		return mustPlan(t, ladder, append(set, "systems=tape")...).Cells[0].Estimate
	}
	small := cell("link.delay=0s", "data.size=1B", "overhead.operation=put")
	far := cell("link.delay=100ms", "data.size=1B", "overhead.operation=put")
	if d := far.Operation - small.Operation; d < 10*0.2*0.99 || d > 10*0.2*1.01 {
		t.Errorf("200 ms of round trip add %g s", d)
	}
	large := cell("link.delay=0s", "data.size=1MB", "overhead.operation=put")
	if d := large.Operation - small.Operation; d < 0.8 || d > 0.9 || large.Limit != "link" {
		t.Errorf("1 MB at 10 Mbit/s adds %g s, limited by %s", d, large.Limit)
	}
	if large.Bytes != 6e6 { // five and the one that opens the connections
		t.Errorf("%g bytes", large.Bytes)
	}
	many := cell("link.delay=0s", "data.size=1MB", "overhead.operation=put", "overhead.concurrency=8")
	// Of 6.8 s each: none begins after 10 s, so there are two and one to prime.
	if many.Operation < 7*large.Operation*0.9 || many.Bytes != 3*8e6 {
		t.Errorf("eight at once: %+v", many)
	}
	fill := cell("link.delay=0s", "data.size=1B", "overhead.operation=fill", "overhead.objects=1000")
	if fill.Seconds < 1000*small.Operation {
		t.Errorf("1000 objects take %g s, one %g s", fill.Seconds, small.Operation)
	}
}
