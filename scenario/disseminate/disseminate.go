package disseminate

import (
	"context"
	"fmt"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/nodes"
	"github.com/plimsoll-project/plimsoll/system"
)

// Scenario spreads content from the seeders of a swarm to its leechers. It follows the study of
// Codex against Deluge of 2024 (all leechers start together, and are timed in one place), and
// extends it to leechers that arrive and leave, and to faults.
type Scenario struct{}

func (Scenario) Name() string { return "disseminate" }

// Problems implements Scenario.
func (Scenario) Problems(use experiment.SystemUse, info system.Info, cells []experiment.Cell) []system.Problem {
	needs := []scenario.Need{{Ability: "spread", By: "the scenario disseminate",
		Hint: "take it out of the experiment, or choose the option of it that makes a swarm"}}
	for _, c := range cells {
		if c.Disseminate.Fresh {
			needs = append(needs, scenario.Need{Ability: "restart", By: "disseminate.fresh",
				Hint: "say fresh: false: only what the trial before has left is removed then"})
		}
		for _, f := range c.Disseminate.Faults {
			if f.Kind() == experiment.FaultCrash {
				needs = append(needs, scenario.Need{Ability: "restart", By: "a fault of the kind crash",
					Hint: fmt.Sprintf("leave these cells out: where: [\"system != %s || disseminate.faults == none\"]",
						use.Name)})
			}
		}
	}
	return scenario.Unmet(info.Can, needs)
}

// Prepares implements Scenario. Nothing is stored before the trials, but the largest of them
// needs room for the content on each of its nodes.
func (Scenario) Prepares(cells []experiment.Cell) (objects, bytes int64) {
	for _, c := range cells {
		n := int64(c.Disseminate.Nodes)
		if all := n * int64(c.Data.Size); all > bytes {
			objects, bytes = n, all
		}
	}
	return objects, bytes
}

// Prepare implements Scenario.
func (Scenario) Prepare(_ context.Context, site scenario.Site, _ []experiment.Cell) (scenario.Runner, error) {
	return &runner{site, nodes.Take(site)}, nil
}

// Measure computes the metrics of a trial; Metrics defines them.
func (Scenario) Measure(in scenario.Measured) map[string]float64 {
	m := map[string]float64{}
	put := scenario.Numbers(m)
	ops := leecherOps(&in)
	swarmTimes(ops, m, put)
	swarmPolls(&in, put)
	swarmTraffic(&in, ops, put)
	swarmRecovery(&in, put)
	swarmLines(&in, m, put)
	cpu, peak, verified := 0.0, 0.0, 0.0
	for _, n := range in.Usage.Nodes[:min(in.Cell.Disseminate.Nodes, len(in.Usage.Nodes))] {
		cpu, peak = cpu+n.CPU, max(peak, n.RSSPeak)
	}
	for _, op := range ops {
		verified += float64(op.Bytes)
	}
	if len(in.Usage.Nodes) > 0 {
		put("system_cpu", cpu)
		put("system_cpu_per_gb", cpu/(verified/1e9)) // infinite, and so omitted, if nothing was verified
		put("node_rss_peak", peak)
	}
	scenario.PutMachine(&in, put)
	return m
}
