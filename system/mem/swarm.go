package mem

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
)

// swarm models the distribution of content among nodes as a fluid, so that the time of every byte
// is known. A node with the whole content serves it (with option pass, so do leechers that have
// completed). It shares its upload rate equally among the nodes that fetch from it. A node receives
// the sum of its shares, up to its download rate; the excess is lost to all. Two nodes reach each
// other if one of them was given the other's address.
//
// Nothing runs in the background: the state is advanced to the present whenever it is accessed.
type swarm struct {
	began    time.Time
	at       float64 // seconds since began up to which the state is known
	peers    []*peer
	links    Links
	up, down int64 // bytes per second; 0: no limit
	pass     bool
	contents map[system.Ref]*object // all published content
}

// Links are the access links of the nodes, by their index in the cluster.
type Links struct {
	Up, Down map[int]float64 // bytes per second, where different from the options
	Apart    []int           // nodes that reach only one another; empty: all nodes reach all
}

// Trouble is the misbehaviour of a node in a swarm.
type Trouble struct {
	Wrong bool    // the node reports completion, but its content on disk is corrupt
	Stop  float64 // fraction of a content at which the node stops; 0: it does not stop
	Says  string  // value of Progress.Trouble
}

// peer is the swarm state of a node.
type peer struct {
	place          int
	address        string
	dead           bool // killed or stopped
	known          map[string]bool
	tasks          map[system.Ref]*spread
	trouble        Trouble
	received, sent float64 // bytes that crossed its link
}

// spread is the state of one content on one node.
type spread struct {
	of       *object
	have     float64
	seeder   bool
	fetching bool
	received float64
	sent     float64
}

func (t *spread) complete() bool { return t.have >= float64(t.of.size()) }

// limit returns how many bytes of a content a node gets.
func (p *peer) limit(t *spread) float64 {
	return cmp.Or(p.trouble.Stop, 1) * float64(t.of.size())
}

// now advances the swarm to the present and calls do, with the store locked.
func (s *store) now(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	do()
}

// SetLinks changes the links of the whole cluster from now on.
func (n *Node) SetLinks(l Links) { n.store.now(func() { n.store.links = l }) }

// SetTrouble changes the misbehaviour of this node from now on.
func (n *Node) SetTrouble(t Trouble) { n.store.now(func() { n.trouble = t }) }

// Moved returns the number of bytes that have crossed the node's link.
func (n *Node) Moved() (received, sent float64) {
	n.store.now(func() { received, sent = n.received, n.sent })
	return received, sent
}

// flow is a transfer from one node to another; rate is in bytes per second.
type flow struct {
	from, to *peer
	source   *spread
	sink     *spread
	rate     float64
}

// advance advances the state to the present. Between two completions all rates are constant.
func (s *swarm) advance() {
	now := time.Since(s.began).Seconds()
	for s.at < now {
		flows := s.flows()
		if len(flows) == 0 {
			break
		}
		step := now - s.at
		sum := map[*spread]float64{}
		for _, f := range flows {
			sum[f.sink] += f.rate
		}
		for _, f := range flows {
			step = min(step, (f.to.limit(f.sink)-f.sink.have)/sum[f.sink])
		}
		for _, f := range flows {
			moved := f.rate * step
			f.sink.have += moved
			f.sink.received += moved
			f.source.sent += moved
			f.to.received += moved
			f.from.sent += moved
		}
		for _, f := range flows {
			// Less than a byte is left because of rounding.
			if limit := f.to.limit(f.sink); limit-f.sink.have < 1e-3 {
				f.sink.have = limit
			}
		}
		s.at += step
	}
	s.at = now
}

// flows returns all current transfers.
func (s *swarm) flows() []flow {
	var all []flow
	fan := map[*peer]int{} // number of nodes that fetch from each
	for _, to := range s.peers {
		for ref, sink := range to.tasks {
			if to.dead || !sink.fetching || sink.have >= to.limit(sink) {
				continue
			}
			for _, from := range s.peers {
				source := from.tasks[ref]
				if from == to || from.dead || source == nil || !source.complete() || !source.seeder && !s.pass ||
					!s.reach(from, to) {
					continue
				}
				all = append(all, flow{from: from, to: to, source: source, sink: sink})
				fan[from]++
			}
		}
	}
	in := map[*peer]float64{}
	for i, f := range all {
		all[i].rate = cmp.Or(s.links.Up[f.from.place], float64(s.up), boundless) / float64(fan[f.from])
		in[f.to] += all[i].rate
	}
	for i, f := range all {
		if most := cmp.Or(s.links.Down[f.to.place], float64(s.down), boundless); in[f.to] > most {
			all[i].rate *= most / in[f.to]
		}
	}
	return all
}

// boundless is an unlimited rate in bytes per second.
const boundless = 1e15

func (s *swarm) reach(a, b *peer) bool {
	apart := func(p *peer) bool { return slices.Contains(s.links.Apart, p.place) }
	return apart(a) == apart(b) && (a.known[b.address] || b.known[a.address])
}

// member makes a call on the swarm, advanced to the present.
func (n *Node) member(ctx context.Context, what, of string, do func() error) error {
	return n.locked(ctx, what, of, func() error {
		n.store.advance()
		if n.dead {
			return errStopped
		}
		return do()
	})
}

// task makes a swarm call on a content of this node.
func (n *Node) task(ctx context.Context, what string, ref system.Ref, do func(t *spread)) error {
	return n.member(ctx, what, string(ref), func() error {
		t := n.tasks[ref]
		if t == nil {
			return system.ErrNotFound
		}
		do(t)
		return nil
	})
}

// Address implements system.Member.
func (n *Node) Address(ctx context.Context) (string, error) { return n.address, ctx.Err() }

// Publish implements system.Member. It takes no time.
func (n *Node) Publish(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	o, err := take(immutable, name, size, r, func(int64) error { return ctx.Err() })
	if err != nil {
		return "", fmt.Errorf("mem: publish %q: %w", name, err)
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%d %s\n%s", len(name), name, o.data)
	ref := system.Ref(fmt.Sprintf("swarm/%x", sum.Sum(nil)))
	return ref, n.member(ctx, "publish", name, func() error {
		n.store.contents[ref] = o
		n.tasks[ref] = &spread{of: o, have: float64(size), seeder: true}
		return nil
	})
}

// Fetch implements system.Member.
func (n *Node) Fetch(ctx context.Context, ref system.Ref, from []string) error {
	return n.member(ctx, "fetch", string(ref), func() error {
		o := n.store.contents[ref]
		if o == nil {
			return system.ErrNotFound
		}
		for _, address := range from {
			n.known[address] = true
		}
		if n.tasks[ref] == nil {
			n.tasks[ref] = &spread{of: o}
		}
		n.tasks[ref].fetching = true
		return nil
	})
}

// Progress implements system.Member.
func (n *Node) Progress(ctx context.Context, ref system.Ref) (f system.Progress, err error) {
	err = n.task(ctx, "progress of", ref, func(t *spread) {
		f = system.Progress{
			Size: t.of.size(), Verified: int64(t.have), Complete: t.complete(),
			Received: int64(t.received), Sent: int64(t.sent), Trouble: n.trouble.Says,
		}
		for _, p := range n.store.peers {
			if p != &n.peer && !p.dead && p.tasks[ref] != nil && n.store.reach(p, &n.peer) {
				f.Peers++
			}
		}
	})
	return f, err
}

// ReadBack implements system.Member.
func (n *Node) ReadBack(ctx context.Context, ref system.Ref, w io.Writer) error {
	var data []byte
	var wrong, complete bool
	err := n.task(ctx, "read back", ref, func(t *spread) {
		data, wrong, complete = t.of.part(0, int64(t.have)), n.trouble.Wrong, t.complete()
	})
	if err != nil {
		return err
	}
	if wrong && len(data) > 0 {
		data = slices.Clone(data)
		data[len(data)/2] ^= 1
	}
	_, err = w.Write(data)
	if err == nil && !complete {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return fmt.Errorf("mem: read back %s: %w", ref, err)
	}
	return nil
}

// Forget implements system.Member.
func (n *Node) Forget(ctx context.Context, ref system.Ref) error {
	return n.task(ctx, "forget", ref, func(*spread) { delete(n.tasks, ref) })
}

// Kill implements system.Restarter.
func (n *Node) Kill(ctx context.Context) error {
	n.store.now(func() { n.dead = true })
	return ctx.Err()
}

// Restart implements system.Restarter. The node has forgotten its peers, and continues incomplete
// content only after another Fetch.
func (n *Node) Restart(ctx context.Context, keep bool) error {
	n.store.now(func() {
		n.dead, n.known = false, map[string]bool{}
		if !keep {
			clear(n.tasks)
		}
		for _, t := range n.tasks {
			t.fetching, t.received, t.sent = false, 0, 0
		}
	})
	return ctx.Err()
}
