package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/engine"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/ui"
)

// Before there are trials to go by, a resumed run shows the part of the plan's estimate that is left.
func TestTimeLeftOfAResumedRun(t *testing.T) {
	t.Parallel()
	var said bytes.Buffer
	p := &progress{ui: ui.New(&bytes.Buffer{}, &said), resumed: true, plan: &experiment.Plan{Blocks: 6,
		Cells: []experiment.Cell{{ID: "c001"}}, Estimate: experiment.Estimate{Trials: 24, Seconds: 48}}}
	p.show(engine.Event{Kind: engine.EventBegin, N: 13, Total: 24, Cell: "c001", Block: 3})
	if got := said.String(); !strings.Contains(got, "block 4 of 6 (24 s left)") {
		t.Errorf("12 of 24 trials are left, of 48 s in all: %s", got)
	}
}
