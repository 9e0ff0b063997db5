package engine

import (
	"math"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// Details are read by their place: a node of which nothing is known has one, too.
func TestEachNodeHasADetail(t *testing.T) {
	hosts := []testbed.Host{named("a-01"), named("a-02"), named("a-03")}
	got := nodeDetails(hosts, []scenario.NodeUsage{{CPU: 1, RSSPeak: 10}, {CPU: math.NaN(), RSSPeak: math.NaN()}, {CPU: 3, RSSPeak: 30}})
	at := map[string][]float64{}
	for i, d := range got {
		if d.Name != hosts[i/2].Name() {
			t.Errorf("detail %d is of %s", i, d.Name)
		}
		at[d.Kind] = append(at[d.Kind], d.Value)
	}
	for kind, want := range map[string][3]float64{record.DetailNodeCPU: {1, -1, 3}, record.DetailNodeRSS: {10, -1, 30}} {
		if len(at[kind]) != 3 || [3]float64(at[kind]) != want {
			t.Errorf("%s: %v, want %v", kind, at[kind], want)
		}
	}
}

func named(name string) testbed.Host { return namedHost{name: name} }

// namedHost is a host of which nothing but the name is asked.
type namedHost struct {
	testbed.Host
	name string
}

func (h namedHost) Name() string { return h.name }

// A node without processes that can be watched used an unknown amount, not none.
func TestANodeThatIsNotSeenIsUnknown(t *testing.T) {
	m := newMeter(&site{}, nil)
	m.nodes = 3
	m.trace = nodesAre(traced{account: account{"a", 1}}, traced{account: account{"c", 2}, node: 2})
	m.add([]record.Sample{{Process: "a", PID: 1, RSS: 5, End: time.Second}})
	u := m.usage()
	if u.Nodes[0].RSSPeak != 5 || u.Nodes[0].CPU != 0 {
		t.Errorf("seen: %+v", u.Nodes[0])
	}
	for _, n := range u.Nodes[1:] {
		if !math.IsNaN(n.CPU) || !math.IsNaN(n.RSSPeak) {
			t.Errorf("not seen: %+v", n)
		}
	}
}
