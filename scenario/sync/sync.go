package sync

import (
	"math"
	"slices"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
)

// Scenario starts a fresh node and times it until it has the whole chain of its peers and can
// serve. It follows the study of Sia's synchronization of 2018 (the effects of a few settings),
// and extends it to peers of different speeds, useless peers, and faults.
type Scenario struct{}

func (Scenario) Name() string { return "sync" }

// Problems implements Scenario. It includes chains and peers of the cells that the system cannot
// provide.
func (Scenario) Problems(use experiment.SystemUse, info system.Info, cells []experiment.Cell) (all []system.Problem) {
	all = scenario.Unmet(info.Can, []scenario.Need{{Ability: "follow", By: "the scenario sync",
		Hint: "take it out of the experiment"}})
	for _, c := range cells {
		var manners []string
		for _, g := range c.Sync.Trouble {
			manners = append(manners, g.Manner())
		}
		for _, p := range info.Chains.Problems(chainSpec(c.Sync, 0), manners) {
			if !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
	}
	return all
}

// Prepares implements Scenario. No objects are stored. The bytes are the estimated sizes of the
// chains, each twice (one copy to serve from, one to replay), and the largest store of a fresh
// node.
func (Scenario) Prepares(cells []experiment.Cell) (objects, bytes int64) {
	chains := map[system.ChainSpec]int64{}
	var largest int64
	for _, c := range cells {
		size := int64(c.Estimate.Bytes)
		chains[chainSpec(c.Sync, 0)] = 2 * size
		largest = max(largest, int64(experiment.StoreBytes(c.Estimate.Bytes)))
	}
	for _, size := range chains {
		bytes += size
	}
	return 0, bytes + largest
}

// chainSpec returns the chain of a cell. Cells with equal specs share a chain.
func chainSpec(s *experiment.Sync, seed uint64) system.ChainSpec {
	return system.ChainSpec{Blocks: s.Blocks, Transactions: s.Transactions, Form: s.Form, Seed: seed}
}

// Measure computes the metrics of a trial; Metrics defines them.
func (Scenario) Measure(in scenario.Measured) map[string]float64 {
	m := map[string]float64{}
	put := scenario.Numbers(m)
	syncFacts(&in, put)
	bytes := follower(&in, followerChainBytes)
	cpu, peak, written := in.Usage.SystemCPU, in.Usage.SystemRSSPeak, math.NaN()
	if len(in.Usage.Nodes) > 0 {
		fresh := in.Usage.Nodes[0]
		cpu, peak, written = fresh.CPU, fresh.RSSPeak, fresh.Written
	}
	put("system_cpu", cpu)
	put("node_rss_peak", peak)
	put("disk_written", written)
	put("write_amplification", written/bytes)
	if wire, known := m["wire_bytes"]; known {
		put("overhead", wire/bytes)
	}
	loadLines(&in, bytes, m, put)
	scenario.PutMachine(&in, put)
	return m
}
