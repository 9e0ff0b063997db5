package engine

import (
	"fmt"

	"github.com/plimsoll-project/plimsoll/experiment"
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
