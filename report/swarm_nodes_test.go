package report

import (
	"math"
	"testing"

	"github.com/plimsoll-project/plimsoll/record"
)

// What is not known of a node is negative: it is no byte, and no reason to take
// its neighbour's.
func TestNodesOfWhichSomethingIsUnknown(t *testing.T) {
	var details []record.Detail
	for i, name := range []string{"a-01", "a-02", "a-03"} {
		details = append(details, record.Detail{Kind: record.DetailSeeder, Name: name, Value: 0},
			record.Detail{Kind: record.DetailNodeCPU, Name: name, Value: []float64{1, -1, 3}[i]},
			record.Detail{Kind: record.DetailNodeRSS, Name: name, Value: []float64{10, -1, 30}[i]})
	}
	got := nodesOf(details)
	if len(got) != 3 || got[0].cpu != 1 || got[2].cpu != 3 || got[2].rss != 30 || !math.IsNaN(got[1].cpu) || !math.IsNaN(got[1].rss) {
		t.Errorf("%+v", got)
	}
}
