package report

import (
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/record"
)

// following is what one trial of the scenario sync recorded of its fresh node.
// Times are seconds since the trial's epoch.
type following struct {
	outcome record.Outcome // until it can serve
	class   string
	begun   float64
	end     float64
	share   float64 // of the chain's bytes that were reached
	marks   []record.Mark
	peers   []syncPeer
	events  []record.Event
	epoch   int64 // wall clock of second 0, nanoseconds
}

// syncPeer is what a fresh node got from one of its peers in a trial. NaN: not
// told.
type syncPeer struct {
	name                           string
	blocks, bytes, busy            float64
	timeouts, failed, rate, manner float64 // rate: 0: unlimited
}

// Manners of a peer, as details have them.
const (
	peerHonest = iota
	peerSilent
	peerStranger
)

// readSyncs reads what the trials recorded. An operation is one trial's way until
// the node can serve: that until it has the chain is a part of it.
func (r *Report) readSyncs(in *input) {
	r.syncs, r.constants = map[int64]*following{}, readConstants(in.meta)
	r.readWalks(in)
	// What has a table of its own is not told twice.
	r.Environment = slices.DeleteFunc(r.Environment, func(p Pair) bool { return strings.HasPrefix(p.Key, constantsKey+".") || p.Key == record.KeySearch })
	events := map[int64][]record.Event{}
	for _, e := range in.events {
		if e.Trial != 0 {
			events[e.Trial] = append(events[e.Trial], e)
		}
	}
	for i := range in.trials {
		t := &in.trials[i]
		if t.State != record.Done {
			continue
		}
		s := &following{events: events[t.ID], epoch: t.Epoch.UnixNano(), peers: peersOf(t.Details)}
		seen := false
		for op, err := range in.ops(t.ID) {
			if err != nil {
				in.err = err
				return
			}
			if op.Kind != record.OpSync && op.Kind != record.OpServe || seen && op.Kind == record.OpSync {
				continue
			}
			seen = true
			s.outcome, s.class, s.begun, s.end, s.share = op.Outcome, op.Class, seconds(op.Intended), seconds(op.LastByte), math.NaN()
			if op.Length > 0 {
				s.share = float64(op.Bytes) / float64(op.Length)
			}
		}
		if !seen {
			continue // of a damaged directory
		}
		t.Outcomes, t.Classes = map[string]int64{s.outcome.String(): 1}, nil
		if s.class != "" {
			t.Classes = map[string]int64{s.class: 1}
		}
		for m, err := range in.marks(t.ID) {
			if err != nil {
				in.err = err
				return
			}
			s.marks = append(s.marks, m)
		}
		slices.SortStableFunc(s.marks, func(a, b record.Mark) int { return int(a.End - b.End) })
		r.syncs[t.ID] = s
	}
}

// detailsByKind are the details of a trial by kind, and the value of the i-th of a
// kind. NaN: it is negative, which is not known, or not there.
func detailsByKind(details []record.Detail) (values map[string][]record.Detail, at func(kind string, i int) float64) {
	values = map[string][]record.Detail{}
	for _, d := range details {
		values[d.Kind] = append(values[d.Kind], d)
	}
	return values, func(kind string, i int) float64 {
		if i < len(values[kind]) && values[kind][i].Value >= 0 {
			return values[kind][i].Value
		}
		return math.NaN()
	}
}

// peersOf takes the peers of a trial from its details: one of each kind per peer,
// in their order. What is not told is negative.
func peersOf(details []record.Detail) []syncPeer {
	values, at := detailsByKind(details)
	var all []syncPeer
	for i, d := range values[record.DetailPeerBlocks] {
		all = append(all, syncPeer{name: d.Name, blocks: at(record.DetailPeerBlocks, i), bytes: at(record.DetailPeerBytes, i), busy: at(record.DetailPeerBusy, i),
			timeouts: at(record.DetailPeerTimeout, i), failed: at(record.DetailPeerFailed, i), rate: at(record.DetailPeerRate, i), manner: at(record.DetailPeerManner, i)})
	}
	return all
}

// syncTimes are the metrics that a trial lacks when its node never came to them:
// the time was longer than what was watched, the rate lower than any.
var syncTimes = []string{"sync_time", "chain_time", "net_time", "first_block", "index_lag", "block_rate", "byte_rate"}

// ofSync reports whether a metric is one of them.
func ofSync(key string) bool { return slices.Contains(syncTimes, key) }
