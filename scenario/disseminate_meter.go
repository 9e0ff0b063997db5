package scenario

import (
	"math"

	"github.com/plimsoll-project/plimsoll/record"
)

// traffic is what crosses a node's link, in bytes; NaN: it cannot be told.
type traffic struct{ received, sent float64 }

// measure begins to measure: from here on it is the load.
func (t *swarmTrial) measure() {
	for _, m := range t.members {
		m.traffic.received, m.traffic.sent = t.links.traffic(m.place)
	}
	if t.sink.Begin != nil {
		t.sink.Begin()
	}
}

// measured ends that.
func (t *swarmTrial) measured() {
	for _, m := range t.members {
		received, sent := t.links.traffic(m.place)
		m.traffic = traffic{received - m.traffic.received, sent - m.traffic.sent}
	}
	if t.sink.End != nil {
		t.sink.End()
	}
}

// details are the numbers of all nodes of the deployment, in their order; −1: not
// known. A kind of which nothing is known of any node is left out.
func (t *swarmTrial) details() []record.Detail {
	var all []record.Detail
	kind := func(kind string, of func(*member) float64) {
		known := false
		var each []record.Detail
		for i, n := range t.nodes {
			v := -1.0
			if i < len(t.members) {
				if of := of(t.members[i]); !math.IsNaN(of) {
					v, known = of, true
				}
			}
			each = append(each, record.Detail{Kind: kind, Name: n.name, Value: v})
		}
		if known {
			all = append(all, each...)
		}
	}
	kind(record.DetailSeeder, func(m *member) float64 {
		if m.leecher == nil {
			return 1
		}
		return 0
	})
	kind(record.DetailLinkReceived, func(m *member) float64 { return m.traffic.received })
	kind(record.DetailLinkSent, func(m *member) float64 { return m.traffic.sent })
	return all
}
