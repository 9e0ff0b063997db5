package scenario

import (
	"context"
	"errors"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
)

// Disseminate spreads content from the seeders of a swarm to its leechers.
type Disseminate struct{}

var _ Scenario = Disseminate{}

func (Disseminate) Name() string { return "disseminate" }

func (Disseminate) Question() string {
	return "How fast does content spread from its seeders to everybody else?"
}

// Metrics of a trial.
func (Disseminate) Metrics() []record.Metric { return nil }

// Problems implements Scenario.
func (Disseminate) Problems(experiment.SystemUse, system.Info, []experiment.Cell) []system.Problem {
	return nil
}

// Prepares implements Scenario: contents are placed trial by trial.
func (Disseminate) Prepares([]experiment.Cell) (objects, bytes int64) { return 0, 0 }

// Prepare implements Scenario.
func (Disseminate) Prepare(context.Context, Site, []experiment.Cell) (Runner, error) {
	return nil, errors.New("disseminate: not built yet")
}

// Measure computes a trial's metrics; see Metrics for their definitions.
func (Disseminate) Measure(Measured) map[string]float64 { return nil }
