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

// Scenario measures what it takes to store a whole data set, and whether that changes as the
// set grows. It follows the load test of Sia of 2018: a fixed number of concurrent puts, for
// weeks, while the system is polled.
//
// One trial is one load test. The journal records the start and the result of each put, so that
// a later session knows of every object whether it is done, not begun, or in doubt; see restore.
type Scenario struct{}

var _ scenario.Scenario = Scenario{}

func (Scenario) Name() string { return "upload" }

//go:embed metrics.txt
var definitions string

// Metrics implements Scenario.
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
	// interval for reporting progress and writing operations
	reportEvery time.Duration
}

// Prepares implements Scenario. Nothing is stored before the trials, but their objects need
// room, too. The size of a directory is unknown here.
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

// settler returns the node if accepted objects become durable only later; nil if they are
// durable at once, or the system does not report it.
func (r *runner) settler() system.Settler {
	s, _ := r.node.(system.Settler)
	return s
}

// trialNames returns the prefix of the names of a trial's objects. It contains the run, so that
// a later session finds them, and the trial, so that no other trial does.
func (r *runner) trialNames(cell experiment.Cell, seed uint64) string {
	return fmt.Sprintf("%s/%s-%08x/", r.site.Run, cell.ID, uint32(scenario.MixSeed(seed, "upload names", 0)))
}

// dataSeed returns the seed of the content, the same in all sessions of a trial. In an attached
// system, which outlives the run, it differs between runs, so that no run finds the content of
// another.
func (r *runner) dataSeed(seed uint64) uint64 {
	purpose := "upload content"
	if r.site.Use.Attached() {
		purpose += " " + r.site.Run
	}
	return scenario.MixSeed(seed, purpose, 0)
}
