package scenario

import (
	"math"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// nodeMeter is what a node has used when the leechers are released, and at the
// end of the load.
type nodeMeter struct {
	procs          []*testbed.Process // those of before, then those that took their places
	before         []float64          // CPU seconds of the former
	received, sent float64            // bytes through its link; then what came since
	cpu, rss       float64            // since; NaN: not known
}

// measure begins to meter all nodes of the deployment that take part. What they
// held before is no part of their peak, where the kernel lets it begin anew.
func (t *swarmTrial) measure() {
	for _, m := range t.members {
		m.meter.procs = m.node.Processes()
		for _, p := range m.meter.procs {
			m.meter.before = append(m.meter.before, p.Usage().CPU)
			_ = p.ResetPeak() // where it cannot, the peak is that of all the node's life
		}
	}
	for _, m := range t.members {
		m.meter.received, m.meter.sent = t.links.traffic(m.place)
	}
}

// measured ends that.
func (t *swarmTrial) measured() {
	for _, m := range t.members {
		received, sent := t.links.traffic(m.place)
		m.meter.received, m.meter.sent = received-m.meter.received, sent-m.meter.sent
	}
	for _, m := range t.members {
		m.meter.end(m.node.Processes())
	}
}

func (n *nodeMeter) end(now []*testbed.Process) {
	n.cpu, n.rss = math.NaN(), math.NaN()
	known := map[*testbed.Process]bool{}
	add := func(p *testbed.Process, before float64) {
		if known[p] {
			return
		}
		known[p] = true
		if used := p.Usage().CPU - before; !math.IsNaN(used) {
			n.cpu = orZero(n.cpu) + used
		}
		if peak := p.Memory().Peak; !math.IsNaN(peak) { // of one that is gone nothing is told
			n.rss = orZero(n.rss) + peak
		}
	}
	for i, p := range n.procs {
		add(p, n.before[i])
	}
	for _, p := range now {
		add(p, 0)
	}
}

func orZero(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return v
}

// details are the numbers of all nodes of the deployment, in their order; −1:
// not known. A kind of which nothing is known of any node is left out.
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
	kind(record.DetailLinkReceived, func(m *member) float64 { return m.meter.received })
	kind(record.DetailLinkSent, func(m *member) float64 { return m.meter.sent })
	kind(record.DetailNodeCPU, func(m *member) float64 { return m.meter.cpu })
	kind(record.DetailNodeRSS, func(m *member) float64 { return m.meter.rss })
	return all
}
