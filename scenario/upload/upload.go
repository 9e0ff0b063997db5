package upload

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
)

// Scenario asks what it takes to store a whole data set, and whether that changes
// the more there is. It follows the load test of Sia of 2018: so many objects
// under way at once, for weeks, with the system polled beside it.
//
// One trial is one load test. Before each put the journal says so, and after it
// what came of it, so that a later session knows of every object that it is
// done, not begun, or in doubt; see restore.
type Scenario struct{}

var _ scenario.Scenario = Scenario{}

func (Scenario) Name() string { return "upload" }

//go:embed metrics.txt
var definitions string

// Metrics of a trial.
func (Scenario) Metrics() []record.Metric {
	own := scenario.Definitions(definitions, "upload", "servers", "polls", "generator", "system")
	return append(own, scenario.Machine()...)
}

// Problems implements Scenario.
func (Scenario) Problems(_ experiment.SystemUse, info system.Info, _ []experiment.Cell) []system.Problem {
	return scenario.Unmet(info.Can, []scenario.Need{{Ability: "put", By: "the scenario upload",
		Hint: "take it out of the experiment"}})
}

// runner is one prepared system.
type runner struct {
	site scenario.Site
	node system.Store
	// How often progress is reported, and operations are written.
	reportEvery time.Duration
}

// Prepares implements Scenario. Nothing is stored before the trials, but what
// they store needs room, too. Of a directory nothing is known here.
func (Scenario) Prepares(cells []experiment.Cell) (objects, bytes int64) {
	for _, c := range cells {
		n, size := c.Data.Total()
		objects += int64(n)
		bytes += int64(size)
	}
	return objects, bytes
}

// Prepare implements Scenario.
func (Scenario) Prepare(_ context.Context, site scenario.Site, _ []experiment.Cell) (scenario.Runner, error) {
	return &runner{site, site.Cluster.Nodes()[0].(system.Store), time.Second}, nil
}

// settler is the node when accepted is less than durable there; nil: it is not,
// or the system does not say.
func (r *runner) settler() system.Settler {
	s, _ := r.node.(system.Settler)
	return s
}

// trialNames is what the names of a trial's objects begin with: the run, so that
// a later session finds them, and the trial, so that no other one of the run does.
func (r *runner) trialNames(cell experiment.Cell, seed uint64) string {
	return fmt.Sprintf("%s/%s-%08x/", r.site.Run, cell.ID, uint32(scenario.MixSeed(seed, "upload names", 0)))
}

// dataSeed is that of the content: the same in all sessions of a trial. In an
// attached system, which outlives the run, nothing of another run is found again.
func (r *runner) dataSeed(seed uint64) uint64 {
	purpose := "upload content"
	if r.site.Use.Attached() {
		purpose += " " + r.site.Run
	}
	return scenario.MixSeed(seed, purpose, 0)
}
