package engine

import (
	"fmt"
	"math"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// swarms reports whether these cells, of one system, are of a swarm.
func swarms(cells []experiment.Cell) bool { return len(cells) > 0 && cells[0].Disseminate != nil }

// nodes is how many nodes the largest of these cells has.
func nodes(cells []experiment.Cell) int {
	most := 1
	for _, c := range cells {
		if c.Disseminate != nil {
			most = max(most, c.Disseminate.Nodes)
		}
	}
	return most
}

// hostNames are the hosts of a system with these cells: one for each node.
func hostNames(system string, cells []experiment.Cell) []string {
	if !swarms(cells) {
		return []string{system}
	}
	names := make([]string, nodes(cells))
	for i := range names {
		names[i] = fmt.Sprintf("%s-%02d", system, i+1)
	}
	return names
}

// changesLinks reports whether a cell needs links that can be emulated, and cuts
// whether it parts nodes from each other.
func changesLinks(cell experiment.Cell) (changes, cuts bool) {
	d := cell.Disseminate
	if d == nil {
		return false, false
	}
	changes = d.Up > 0 || d.Slow > 0 && (d.SlowUp > 0 || d.SlowDown > 0)
	faults, _ := experiment.ParseFaults(d.Faults) // what cannot be read the format has refused
	for _, f := range faults {
		switch f.Kind {
		case experiment.FaultCut:
			changes, cuts = true, true
		case experiment.FaultRate:
			changes = true
		}
	}
	return changes, cuts
}

// plansChanges is the same of all cells of a plan.
func plansChanges(plan *experiment.Plan) (changes, cuts bool) {
	for _, cell := range plan.Cells {
		c, p := changesLinks(cell)
		changes, cuts = changes || c, cuts || p
	}
	return changes, cuts
}

// swarmTime is what a trial of a swarm may take beyond one deadline: leechers that
// come later have a deadline of their own, a fault may begin as late as the last
// of them ends and then lasts, and whoever it has killed is started again.
func swarmTime(cell experiment.Cell, limits experiment.Limits) time.Duration {
	d := cell.Disseminate
	if d == nil {
		return 0
	}
	// Publishing, verifying and removing, at the pace of a slow disk.
	all := time.Duration(float64(d.Nodes) * float64(cell.Data.Size) / 10e6 * float64(time.Second))
	if d.Fresh {
		all += limits.Start.Std()
	}
	join, _ := experiment.ParseJoin(d.Join) // what cannot be read the format has refused
	switch {
	case join.Wave > 0:
		all += time.Duration(d.Leechers()/join.Wave) * join.Every
	case join.Rate > 0: // three times the mean of the last arrival: it is later once in a thousand trials of many leechers
		all += time.Duration(3 * float64(d.Leechers()) / join.Rate * float64(time.Second))
	}
	faults, _ := experiment.ParseFaults(d.Faults)
	for _, f := range faults {
		all += f.At + f.For
		if f.Kind == experiment.FaultCrash {
			all += limits.Start.Std() + limits.Deadline.Std()
		}
	}
	if stay, _ := experiment.ParseStay(d.Stay); stay.For > 0 {
		all += stay.For
	}
	return all
}

// nodeDetails are what the nodes of a swarm used, one of each kind for each node,
// in their order; −1: not known.
func nodeDetails(hosts []testbed.Host, used []scenario.NodeUsage) []record.Detail {
	var all []record.Detail
	known := func(v float64) float64 {
		if math.IsNaN(v) {
			return -1
		}
		return v
	}
	for i, n := range used {
		name := hosts[i].Name()
		all = append(all,
			record.Detail{Kind: record.DetailNodeCPU, Name: name, Value: known(n.CPU)},
			record.Detail{Kind: record.DetailNodeRSS, Name: name, Value: known(n.RSSPeak)})
	}
	return all
}
