package engine

import (
	"math"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
)

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
