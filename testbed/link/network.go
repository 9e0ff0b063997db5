package link

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"time"
)

// network is the emulated network itself: packets go in with arrive, come out
// through deliver when advance says that it is time. It does no input or output
// and reads no clock, and belongs to one goroutine.
//
// Several threads have a network each, which knows all hosts. A host's uplink and
// the paths from it are used in the network of its thread, its downlink likewise:
// nothing but packets on their way (forward) and buffers is shared.
type network struct {
	seed    uint64
	hosts   []*netHost
	route   map[netip.Addr]int32
	shape   Topology
	pending eventHeap
	pool    *pool
	due     []event                                           // to leave now
	deliver func(due []event, done func(ev event, sent bool)) // sends them to their hosts
	forward func(ev event) bool                               // takes what another thread delivers; nil: there is one
	carry   func(ev event)                                    // takes what is due at a host on another machine
	clock   func() int64                                      // for lateness alone

	patience int64 // how long no packet that arrives needs to be looked at
	slack    int64 // how late packets may leave, for several to leave together

	in, out  Count
	drops    [len(dropCauses)]Count
	lateness latenessRecorder
}

type netHost struct {
	name     string
	up, down shaper
	paths    []*netPath // to each host
	away     bool       // on another machine
	lead     int64      // how long the way there takes
	sent     Count
	received Count
}

// netPath is the way from one host to another, between their queues.
type netPath struct {
	pathParams
	pair shaper
	last int64 // latest arrival at the downlink: what follows arrives no earlier
	rng  *rand.Rand
	gap  int64 // segments before the next lost one
}

func newNetwork(seed uint64, buffers *pool) *network {
	return &network{seed: seed, route: map[netip.Addr]int32{}, pool: buffers}
}

// add adds a host, shaped as the topology says.
func (n *network) add(name string, addrs []netip.Addr) int32 {
	i := int32(len(n.hosts))
	n.hosts = append(n.hosts, &netHost{name: name})
	for _, a := range addrs {
		n.route[a] = i
	}
	for src, h := range n.hosts {
		for dst := len(h.paths); dst < len(n.hosts); dst++ {
			// A generator of its own makes a path's losses independent of what
			// other paths carry.
			rng := rand.New(rand.NewPCG(n.seed, uint64(src)<<32|uint64(dst)))
			h.paths = append(h.paths, &netPath{rng: rng, gap: math.MaxInt64})
		}
	}
	n.reshape(n.shape)
	return i
}

// reshape applies a topology to hosts present and future. Packets under way keep
// their departure; none overtakes another.
func (n *network) reshape(t Topology) {
	n.shape = t
	names := make([]string, len(n.hosts))
	for i, h := range n.hosts {
		names[i] = h.name
	}
	r := t.resolve(names)
	for _, h := range n.hosts {
		h.up.set(r.Up[h.name].Rate, r.Up[h.name].Queue)
		h.down.set(r.Down[h.name].Rate, r.Down[h.name].Queue)
		for j, path := range h.paths {
			old := path.loss
			path.pathParams = r.path(h.name, n.hosts[j].name)
			path.pair.set(path.rate, path.queue)
			if path.loss != old {
				path.gap = path.nextGap()
			}
		}
	}
	n.setPatience()
}

// mostPatience is how late a packet may be that has no delay, while others are on their way.
const mostPatience = 200e3 // ns

// mostSlack is little beside how late the timers of a busy machine are.
const mostSlack = 100e3 // ns

// setPatience makes patience half of the least delay that there is, slack a hundredth.
func (n *network) setPatience() {
	least := int64(math.MaxInt64)
	delayed := false
	for _, h := range n.hosts {
		for j, path := range h.paths {
			if h.away || path.delay == 0 {
				continue
			}
			delayed = true
			least = min(least, int64(path.delay-path.jitterUp-path.jitterDown)-n.hosts[j].lead)
		}
	}
	n.patience, n.slack = 0, 0
	if delayed {
		n.patience, n.slack = min(max(least/2, 0), mostPatience), min(max(least/100, 0), mostSlack)
	}
}

// arrive takes a packet that host src sent at now, and its buffer.
func (n *network) arrive(src int32, buf []byte, now int64) {
	p, addr, err := parse(buf)
	if err != nil {
		n.in.add(1, int64(len(buf)))
		n.drops[iMalformed].add(1, int64(len(buf)))
		n.pool.put(buf)
		return
	}
	n.in.add(p.segs, p.wire())
	h := n.hosts[src]
	h.sent.add(p.segs, p.wire())
	dst, ok := n.route[addr]
	if !ok {
		n.drop(p, iNoRoute)
		return
	}
	path := h.paths[dst]
	at := now
	if p, ok = n.queue(&h.up, p, &at, iUp); !ok {
		return
	}
	if p, ok = n.queue(&path.pair, p, &at, iPair); !ok {
		return
	}
	at = max(at+path.propagation(), path.last)
	path.last = at
	ev := event{at: max(at-n.hosts[dst].lead, now), dst: dst}
	if path.gap >= int64(p.segs) {
		path.gap -= int64(p.segs)
		ev.p = p
		n.send(ev)
		return
	}
	n.lose(path, p, ev)
}

// send puts a packet on its way to the downlink of its host.
func (n *network) send(ev event) {
	if n.forward == nil || !n.forward(ev) {
		n.pending.push(ev)
	}
}

// queue passes p through s; *at becomes its departure. What does not fit is
// dropped from p's end.
func (n *network) queue(s *shaper, p packet, at *int64, cause int) (packet, bool) {
	if fit := s.fit(*at, p); fit < p.segs {
		if fit == 0 {
			n.drop(p, cause)
			return p, false
		}
		whole := p.wire()
		segs := p.segs
		p = p.truncate(fit)
		n.drops[cause].add(segs-fit, whole-p.wire())
	}
	*at = s.take(*at, p.wire())
	return p, true
}

// lose sends on the runs of p's segments between the lost ones.
func (n *network) lose(path *netPath, p packet, ev event) {
	wire, kept := p.wire(), int64(0)
	var lost int32
	run := func(from, to int32) {
		if from == to {
			return
		}
		size := p.span(from, to)
		kept += size
		buf := n.pool.get(p.size(from, to))
		if buf == nil {
			n.drops[iMemory].add(to-from, size)
			return
		}
		ev.p = p.cut(buf, from, to)
		n.send(ev)
	}
	var from int32
	for {
		left := int64(p.segs - from)
		if path.gap >= left {
			path.gap -= left
			run(from, p.segs)
			break
		}
		hit := from + int32(path.gap)
		path.gap = path.nextGap()
		run(from, hit)
		lost++
		if from = hit + 1; from == p.segs {
			break
		}
	}
	n.drops[iLoss].add(lost, wire-kept)
	n.pool.put(p.buf)
}

// advance moves everything that is due at now. It returns when the next step is
// due, or false when nothing is under way.
func (n *network) advance(now int64) (next int64, any bool) {
	for len(n.pending.e) > 0 && n.pending.e[0].at <= now {
		ev := n.pending.pop()
		if n.hosts[ev.dst].away {
			n.carry(ev)
			continue
		}
		if !ev.down {
			p, ok := n.queue(&n.hosts[ev.dst].down, ev.p, &ev.at, iDown)
			if !ok {
				continue
			}
			ev.p, ev.down = p, true
			// Back into the heap even when it is due, so that departures keep their order.
			n.pending.push(ev)
			continue
		}
		if n.due = append(n.due, ev); len(n.due) == sendBatch {
			n.depart()
		}
	}
	n.depart()
	if len(n.pending.e) == 0 {
		return 0, false
	}
	return n.pending.e[0].at, true
}

// depart sends what is due.
func (n *network) depart() {
	if len(n.due) > 0 {
		n.deliver(n.due, n.departed)
		n.due = n.due[:0]
	}
}

func (n *network) departed(ev event, sent bool) {
	n.lateness.add(n.clock() - ev.at + ev.late)
	if !sent {
		n.drop(ev.p, iWrite)
		return
	}
	n.out.add(ev.p.segs, ev.p.wire())
	n.hosts[ev.dst].received.add(ev.p.segs, ev.p.wire())
	n.pool.put(ev.p.buf)
}

// carried takes a packet that another machine has sent to a host's downlink, and its buffer.
func (n *network) carried(buf []byte, now, late int64) {
	p, addr, err := parse(buf)
	dst, ok := n.route[addr]
	if err != nil || !ok || n.hosts[dst].away {
		n.drops[iMalformed].add(1, int64(len(buf)))
		n.pool.put(buf)
		return
	}
	n.pending.push(event{at: now, dst: dst, p: p, late: late})
}

func (n *network) drop(p packet, cause int) {
	n.drops[cause].add(p.segs, p.wire())
	n.pool.put(p.buf)
}

func (p *netPath) propagation() int64 {
	d := int64(p.delay) + p.draw(p.jitterUp) + p.draw(p.jitterDown)
	return max(d, 0)
}

func (p *netPath) draw(jitter time.Duration) int64 {
	if jitter == 0 {
		return 0
	}
	return int64((p.rng.Float64()*2 - 1) * float64(jitter))
}

// nextGap draws how many segments pass before one is lost: geometric, by
// inversion: ⌊ln U / ln(1 − loss)⌋ with U uniform in (0, 1]. One draw per lost
// segment instead of one per segment.
func (p *netPath) nextGap() int64 {
	switch {
	case p.loss <= 0:
		return math.MaxInt64
	case p.loss >= 1:
		return 0
	}
	g := math.Log(1-p.rng.Float64()) / math.Log1p(-p.loss)
	return int64(min(g, 1e18))
}

func (n *network) stats() Stats {
	s := Stats{
		In: n.in, Out: n.out,
		Drops:    map[string]Count{},
		Hosts:    map[string]HostStats{},
		Lateness: n.lateness.snapshot(),
	}
	for i, c := range n.drops {
		if c != (Count{}) {
			s.Drops[dropCauses[i]] = c
		}
	}
	for _, h := range n.hosts {
		s.Hosts[h.name] = HostStats{Sent: h.sent, Received: h.received}
	}
	return s
}

// refuse drops a packet for which there was no buffer.
func (n *network) refuse(buf []byte) {
	c, cause := Count{1, int64(len(buf))}, iMalformed
	if p, _, err := parse(buf); err == nil {
		c, cause = Count{int64(p.segs), p.wire()}, iMemory
	}
	n.in.add(int32(c.Segments), c.Bytes)
	n.drops[cause].add(int32(c.Segments), c.Bytes)
}
