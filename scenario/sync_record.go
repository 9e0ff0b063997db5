package scenario

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
)

// conclude decides about the node when the load is over without that: it was cut
// short. whole: it has come to its end.
func (t *syncTrial) conclude(whole bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fresh.end(t.ended, record.Cancelled, "")
	if !whole {
		return
	}
	for _, f := range t.faults {
		t.unhappened(&f.courseFault, fmt.Sprintf("the node had %.3g %% of the chain", 100*t.share()), "the start")
	}
}

// bytes are those of the chain that a height stands for; 0 where it is not ours.
func (t *syncTrial) bytes(height int64) int64 {
	if t.chain.Height <= 0 {
		return 0
	}
	return int64(float64(t.chain.Bytes) * float64(min(max(0, height), t.chain.Height)) / float64(t.chain.Height))
}

// moved is what has crossed the fresh node's link since the start; −1: it cannot be
// told.
func (t *syncTrial) moved() (received, sent int64) {
	if t.attached() || len(t.measuring) == 0 {
		return -1, -1
	}
	ctx, cancel := context.WithTimeout(t.load, t.patience)
	defer cancel()
	all := t.links.traffic(ctx)
	if len(all) == 0 {
		return -1, -1
	}
	since := func(now, then float64) int64 {
		if math.IsNaN(now - then) {
			return -1
		}
		return max(0, int64(now-then))
	}
	return since(all[0].Received, t.measuring[0].Received), since(all[0].Sent, t.measuring[0].Sent)
}

// ops are the node's operation until it had the chain, and the same until all that
// subscribes to it had followed.
func (t *syncTrial) ops() (chain, serve record.Op) {
	n := &t.fresh
	serve = record.Op{
		Kind: record.OpServe, Length: t.chain.Bytes, Bytes: t.bytes(n.height),
		Intended: nanos(t.released), Start: nanos(t.released), FirstByte: n.first.Nanoseconds(), LastByte: nanos(n.ended),
		Outcome: n.outcome, Class: n.class,
	}
	if serve.FirstByte > serve.LastByte {
		serve.FirstByte = serve.LastByte
	}
	chain = serve
	chain.Kind = record.OpSync
	if n.chain > 0 {
		chain.Bytes, chain.LastByte, chain.Outcome, chain.Class = t.chain.Bytes, nanos(n.chain), record.OK, ""
	}
	return chain, serve
}

// record hands over the operations and marks.
func (t *syncTrial) record() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	chain, serve := t.ops()
	err := t.sink.Block(record.AppendBlock(nil, []record.Op{chain, serve}))
	if t.sink.Marks != nil {
		err = errors.Join(err, t.sink.Marks(t.marks))
	}
	return err
}

// addTold adds two counts, of which −1 is not told: nor is their sum then.
func addTold(a, b int64) int64 {
	if a < 0 || b < 0 {
		return -1
	}
	return a + b
}

// sharesNow are what the node has got from its peers in all its lives, by address.
// The lock is the caller's.
func (t *syncTrial) sharesNow() map[string]system.PeerShare {
	all := map[string]system.PeerShare{}
	for address, s := range t.fresh.shares {
		all[address] = s
	}
	for _, s := range t.fresh.last.Peers {
		if before, known := all[s.Address]; known {
			s.Blocks = addTold(before.Blocks, s.Blocks)
			s.Bytes = addTold(before.Bytes, s.Bytes)
			s.Requests = addTold(before.Requests, s.Requests)
			s.TimedOut = addTold(before.TimedOut, s.TimedOut)
			s.Failed = addTold(before.Failed, s.Failed)
			if before.Busy < 0 || s.Busy < 0 {
				s.Busy = -1
			} else {
				s.Busy += before.Busy
			}
		}
		all[s.Address] = s
	}
	return all
}

// peerDetails are the numbers of the peers, in their order. The lock is the
// caller's.
func (t *syncTrial) peerDetails(shares map[string]system.PeerShare) []record.Detail {
	names := make([]string, len(t.peers))
	for i, p := range t.peers {
		names[i] = p.name
	}
	told := func(of func(system.PeerShare) float64) func(int) float64 {
		return func(i int) float64 {
			if s, known := shares[t.peers[i].address]; known {
				if v := of(s); v >= 0 {
					return v
				}
			}
			return math.NaN()
		}
	}
	return slices.Concat(
		details(record.DetailPeerBlocks, names, told(func(s system.PeerShare) float64 { return float64(s.Blocks) })),
		details(record.DetailPeerBytes, names, told(func(s system.PeerShare) float64 { return float64(s.Bytes) })),
		details(record.DetailPeerBusy, names, told(func(s system.PeerShare) float64 { return s.Busy.Seconds() })),
		details(record.DetailPeerTimeout, names, told(func(s system.PeerShare) float64 { return float64(s.TimedOut) })),
		details(record.DetailPeerFailed, names, told(func(s system.PeerShare) float64 { return float64(s.Failed) })),
		details(record.DetailPeerRate, names, func(i int) float64 {
			if r := t.peers[i].rate; r > 0 {
				return float64(r)
			}
			return float64(t.cell.Link.Rate)
		}),
		details(record.DetailPeerManner, names, func(i int) float64 { return mannerNumber(t.peers[i].manner) }),
		details(record.DetailLinkReceived, t.names, func(i int) float64 { return t.crossed(i).Received }),
		details(record.DetailLinkSent, t.names, func(i int) float64 { return t.crossed(i).Sent }))
}
