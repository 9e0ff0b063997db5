package scenario

import (
	"context"
	"math"

	"github.com/plimsoll-project/plimsoll/record"
)

// measure begins to measure: from here on it is the load.
func (t *swarmTrial) measure(ctx context.Context) {
	t.crossed(ctx, func(m *member, now Traffic) { m.traffic = now })
	if t.sink.Begin != nil {
		t.sink.Begin()
	}
}

// measured ends that.
func (t *swarmTrial) measured(ctx context.Context) {
	t.crossed(context.WithoutCancel(ctx), func(m *member, now Traffic) {
		m.traffic = Traffic{now.Received - m.traffic.Received, now.Sent - m.traffic.Sent}
	})
	if t.sink.End != nil {
		t.sink.End()
	}
}

// crossed tells what has crossed each member's link until now; NaN: it cannot be
// told.
func (t *swarmTrial) crossed(ctx context.Context, tell func(m *member, now Traffic)) {
	all := t.links.traffic(ctx)
	for _, m := range t.members {
		now := Traffic{math.NaN(), math.NaN()}
		if m.place < len(all) {
			now = all[m.place]
		}
		tell(m, now)
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
	kind(record.DetailLinkReceived, func(m *member) float64 { return m.traffic.Received })
	kind(record.DetailLinkSent, func(m *member) float64 { return m.traffic.Sent })
	return all
}
