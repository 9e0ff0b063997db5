package engine

import (
	"fmt"
	"testing"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario/upload"
	"github.com/plimsoll-project/plimsoll/system/mem"
)

const lossyExperiment = `
scenario: upload
systems: [{use: mem, with: {errors: "%s"}}]
data: {objects: 20, size: 1kB}
upload: {retries: 0, poll: 100ms, until: %s}
exit: {max_errors: 100%%}
`

// A load test that gave objects up says how many, and so does its resumed run.
func TestLostObjectsAreCounted(t *testing.T) {
	t.Parallel()
	for errors, want := range map[string]int64{"1": 20, "0": 0} {
		plan := mustPlan(t, fmt.Sprintf(lossyExperiment, errors, "durable"))
		cfg := configOf(t, plan, mem.System{}, upload.Scenario{})
		res, err := Run(t.Context(), cfg)
		if err != nil || res.Trials != 1 || res.Stopped != nil || res.LostObjects != want {
			t.Errorf("errors %s: %+v, %v, %v; want %d lost", errors, res, res.Stopped, err, want)
		}
		cfg.Resume = true
		if again, err := Run(t.Context(), cfg); err != nil || !again.Complete || again.LostObjects != want {
			t.Errorf("errors %s, resumed: %+v, %v", errors, again, err)
		}
	}
}

// What is not durable is lost only where that was the aim, and what was stored
// and cannot be fetched is lost, too.
func TestWhatCountsAsLost(t *testing.T) {
	metrics := map[string]float64{"objects": 20, "accepted": 18, "not_durable": 5, "verify_failed": 1}
	for until, want := range map[string]int64{"durable": 8, "accepted": 3} {
		r := &run{plan: mustPlan(t, fmt.Sprintf(lossyExperiment, "0", until))}
		cell := r.plan.Cells[0].ID
		if got := r.lostObjects(record.Trial{Cell: cell, Metrics: metrics}); got != want {
			t.Errorf("until %s: %d, want %d", until, got, want)
		}
		if got := r.lostObjects(record.Trial{Cell: cell, Metrics: map[string]float64{"accepted": 3}}); got != 0 {
			t.Errorf("nothing is known of the objects: %d", got)
		}
	}
}
