package mem

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
)

// What a node that follows a chain is doing.
const (
	idle       = iota // no peer is of use, or nothing is left to do
	requesting        // blocks of one peer
	validating        // what came
	indexing          // the same, in what subscribes
)

// following is a node that follows a chain. It asks its peers in turn for a batch of
// blocks, one at a time; takes each block's time for what came; and asks the next
// one. So with one peer, without links and timeouts, a chain of N blocks takes
//
//	noise · factors · N·(validate + index).
//
// A request that takes longer than the timeout is given up, and what came of it is
// lost. A silent peer costs the whole timeout each time it is asked.
type following struct {
	node   *Follower
	task   system.FollowTask
	model  chainModel
	rng    *rand.Rand
	factor float64 // noise of this start, on what the node itself does
	peers  []*source

	at              float64 // seconds since the cluster began, up to which the state is known
	doing           int
	since, until    float64 // of that
	next            int     // peer
	batch           int64   // blocks asked for, or in work
	wire            float64 // bytes of the request that have come when it ends
	lost            bool    // the request ends by its timeout
	height, indexed int64   // but for those in work
	commits         int64
}

// source is a peer as a fresh node sees it.
type source struct {
	node  int // place; −1: no node has that address
	share system.PeerShare
}

// wait begins something that takes so many seconds.
func (f *following) wait(doing int, seconds float64) {
	f.doing, f.since, f.until = doing, f.at, f.at+seconds
}

// advance brings the state up to the present.
func (f *following) advance(now float64) {
	for f.at < now {
		if f.doing == idle && !f.request() {
			break
		}
		if f.doing == requesting && !f.connected(f.peers[f.next]) {
			f.over(func(s *system.PeerShare) { s.Failed++ })
			continue
		}
		if f.until > now {
			break
		}
		f.at = f.until
		f.proceed()
	}
	f.at = max(f.at, now)
}

// proceed goes on when something has come to its end.
func (f *following) proceed() {
	switch f.doing {
	case requesting:
		if f.lost {
			f.over(func(s *system.PeerShare) { s.TimedOut++ })
			break
		}
		f.over(func(s *system.PeerShare) { s.Blocks += f.batch })
		f.wait(validating, f.factor*f.model.validate*float64(f.batch))
	case validating:
		f.height += f.batch
		f.commits++
		f.wait(indexing, f.factor*f.model.index*float64(f.batch))
	case indexing:
		f.indexed += f.batch
		f.wait(idle, 0)
	}
}

// over ends a request, and turns to the next peer.
func (f *following) over(note func(*system.PeerShare)) {
	p := f.peers[f.next]
	bytes := f.wire
	if f.until > f.at {
		bytes *= (f.at - f.since) / (f.until - f.since)
	}
	p.share.Bytes += int64(bytes)
	p.share.Busy += time.Duration((f.at - f.since) * float64(time.Second))
	note(&p.share)
	f.node.received += bytes
	f.node.cluster.nodes[p.node].sent += bytes
	f.next = (f.next + 1) % len(f.peers)
	f.wait(idle, 0)
}

// request asks the next peer that can be asked; false: there is none, or nothing is
// left to ask for.
func (f *following) request() bool {
	f.batch = min(f.model.batch, f.task.Chain.Height-f.height)
	if f.batch <= 0 {
		return false
	}
	for range f.peers {
		p := f.peers[f.next]
		if !f.connected(p) {
			f.next = (f.next + 1) % len(f.peers)
			continue
		}
		p.share.Requests++
		bytes := float64(f.batch * f.model.block)
		took := (f.model.rtt + bytes/f.rate(p)) * math.Exp(f.model.spread*f.rng.NormFloat64())
		if f.manner(p) == system.Silent {
			took, bytes = math.Inf(1), 0
		}
		f.lost, f.wire = took > f.model.timeout, bytes
		if f.lost {
			f.wire *= f.model.timeout / took
			took = f.model.timeout
		}
		f.wait(requesting, took)
		return true
	}
	return false
}

// rate at which a peer's blocks come, bytes per second.
func (f *following) rate(p *source) float64 {
	limit := func(of map[int]float64, otherwise float64, place int) float64 {
		r, ok := of[place]
		if !ok {
			r = otherwise
		}
		if r == 0 {
			return math.Inf(1)
		}
		return r
	}
	links := f.node.cluster.links
	return min(limit(links.Up, f.model.up, p.node), limit(links.Down, f.model.down, f.node.place))
}

func (f *following) manner(p *source) string { return f.node.cluster.nodes[p.node].serves.Manner }

// connected: a peer is there, and of the same chain from the first block on.
func (f *following) connected(p *source) bool {
	c := f.node.cluster
	if p.node < 0 || c.nodes[p.node].serves == nil {
		return false
	}
	apart := func(place int) bool { return slices.Contains(c.links.Apart, place) }
	return apart(p.node) == apart(f.node.place) && !f.strange(p)
}

// strange: it has another chain, from another first block.
func (f *following) strange(p *source) bool {
	serves := f.node.cluster.nodes[p.node].serves
	return serves.Manner == system.Stranger || serves.Chain.ID != f.task.Chain.ID
}

// whole is how far the node is now, in whole blocks.
func (f *following) whole() (height, indexed int64) {
	part := int64(0)
	if f.doing == validating || f.doing == indexing {
		part = min(f.batch, int64(float64(f.batch)*(f.at-f.since)/max(f.until-f.since, 1e-12)))
	}
	switch f.doing {
	case validating:
		return f.height + part, f.indexed
	case indexing:
		return f.height, f.indexed + part
	}
	return f.height, f.indexed
}

// look is what the node says of itself.
func (f *following) look() system.Following {
	height, indexed := f.whole()
	out := system.Following{
		Height: height, Tip: blockID(f.task.Chain.ID, height), Target: -1, Indexed: indexed,
		Commits: f.commits,
	}
	if f.model.index == 0 {
		out.Indexed = -1
	}
	for _, p := range f.peers {
		share := p.share
		out.TimedOut += share.TimedOut
		out.Failed += share.Failed
		switch {
		case f.connected(p):
			out.Connected++
			out.Target = f.task.Chain.Height
		case p.node >= 0 && f.node.cluster.nodes[p.node].serves != nil && f.strange(p):
			share.Trouble = "it has another chain"
		default:
			share.Trouble = "not connected"
		}
		out.Peers = append(out.Peers, share)
	}
	out.Synced = out.Target >= 0 && height >= out.Target
	return out
}
