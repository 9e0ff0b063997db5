package upload

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
)

// virtual runs do in a bubble, with record's coder made outside of it.
func virtual(t *testing.T, do func(t *testing.T)) {
	record.AppendBlock(nil, []record.Op{{}})
	if _, err := record.DecodeBlock(record.AppendBlock(nil, []record.Op{{}}), nil); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, do)
}

var testLimits = experiment.Limits{Deadline: experiment.Duration(10 * time.Minute), Stall: experiment.Duration(30 * time.Second)}

// clusterOf is a cluster with another node in its place.
type clusterOf struct {
	system.Cluster
	node system.Node
}

func (c clusterOf) Nodes() []system.Node { return []system.Node{c.node} }

type yield struct {
	ops     []record.Op
	load    scenario.Load
	metrics map[string]float64
}

// near allows for what a histogram rounds.
func near(got, want float64) bool { return math.Abs(got-want) <= 0.002*want }
