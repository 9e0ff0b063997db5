package link

import (
	"maps"
	"math"
	"math/rand/v2"
	"net/netip"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// network is the emulated network itself: packets enter with arrive, and advance passes
// them to deliver when they are due. It does no input or output, reads no clock except
// for lateness, and belongs to one goroutine.
//
// Each thread has its own network, which knows all hosts. A host's uplink, the paths from
// it and its downlink are used only in the network of its thread: the threads share only
// packets in flight (forward) and buffers.
type network struct {
	seed    uint64
	hosts   []*netHost
	route   map[netip.Addr]int32
	pending eventHeap
	pool    *pool
	due     []event             // packets to send now
	deliver func(due []event)   // sends them to their hosts, and marks those that are refused
	forward func(ev event) bool // passes a packet to the thread that delivers it; nil: there is one thread
	carry   func(ev event)      // sends a packet that is due at a host on another machine
	clock   func() int64        // for lateness only

	patience int64 // how long newly arrived packets may wait
	slack    int64 // how late packets may leave so that several leave together

	drops    Drops
	lateness *hdrhistogram.Histogram // ns
}

type netHost struct {
	name     string
	up, down shaper
	paths    []*netPath // to each host
	away     bool       // it is on another machine
	lead     int64      // transit time to that machine
	HostStats
}

// netPath is the path from one host to another, between their queues.
type netPath struct {
	Params
	last int64 // latest arrival at the downlink: later packets arrive no earlier
	rng  *rand.Rand
	gap  int64 // segments before the next lost one
}

func newNetwork(seed uint64, buffers *pool) *network {
	return &network{seed: seed, route: map[netip.Addr]int32{}, pool: buffers, drops: Drops{},
		lateness: newHistogram()}
}

// add adds a host without a shape.
func (n *network) add(name string, addrs []netip.Addr) int32 {
	i := int32(len(n.hosts))
	n.hosts = append(n.hosts, &netHost{name: name})
	for _, a := range addrs {
		n.route[a] = i
	}
	for src, h := range n.hosts {
		for dst := len(h.paths); dst < len(n.hosts); dst++ {
			// With its own generator, a path's losses do not depend on the
			// traffic of other paths.
			rng := rand.New(rand.NewPCG(n.seed, uint64(src)<<32|uint64(dst)))
			h.paths = append(h.paths, &netPath{rng: rng, gap: math.MaxInt64})
		}
	}
	return i
}

// reshape applies a topology. Packets in flight keep their departure time; none overtakes another.
func (n *network) reshape(t Topology) {
	names := make([]string, len(n.hosts))
	for i, h := range n.hosts {
		names[i] = h.name
	}
	r := t.resolve(names)
	for _, h := range n.hosts {
		h.up.set(r.Up[h.name].Rate, r.Up[h.name].Queue)
		h.down.set(r.Down[h.name].Rate, r.Down[h.name].Queue)
		for j, path := range h.paths {
			old := path.Loss
			path.Params = r.path(h.name, n.hosts[j].name)
			if path.Loss != old {
				path.gap = path.nextGap()
			}
		}
	}
	n.setPatience()
}

// mostPatience is how late a packet without delay may be while others are in flight. It also
// limits the slack of long delays.
const mostPatience = 200e3 // ns

// setPatience sets patience to half of the smallest delay, and slack to a fiftieth of it.
func (n *network) setPatience() {
	least := int64(math.MaxInt64)
	delayed := false
	for _, h := range n.hosts {
		for j, path := range h.paths {
			if h.away || path.Delay == 0 {
				continue
			}
			delayed = true
			least = min(least, int64(path.Delay-path.Jitter)-n.hosts[j].lead)
		}
	}
	n.patience, n.slack = 0, 0
	if delayed {
		n.patience, n.slack = min(max(least/2, 0), mostPatience), min(max(least/50, 0), mostPatience)
	}
}

// arrive takes a packet that host src sent at now. The network does not keep frame.
func (n *network) arrive(src int32, frame []byte, now int64) {
	p, addr, err := parse(frame)
	if err != nil {
		n.drops[DropMalformed]++
		return
	}
	h := n.hosts[src]
	h.Sent.add(p.segs, p.wire())
	dst, ok := n.route[addr]
	if !ok {
		n.drops[DropNoRoute] += int64(p.segs)
		return
	}
	path := h.paths[dst]
	at := now
	if p, ok = n.queue(&h.up, p, &at, DropUp); !ok {
		return
	}
	at = max(at+path.propagation(), path.last)
	path.last = at
	ev := event{at: max(at-n.hosts[dst].lead, now), dst: dst}
	for from := int32(0); from < p.segs; { // runs between lost segments
		to := p.segs
		if path.gap < int64(p.segs-from) {
			to = from + int32(path.gap)
			path.gap = path.nextGap()
			n.drops[DropLoss]++
		} else {
			path.gap -= int64(p.segs - from)
		}
		n.send(ev, p, from, to)
		from = to + 1
	}
}

// send sends segments [from, to) of a packet towards the downlink of the host.
func (n *network) send(ev event, p packet, from, to int32) {
	if from == to {
		return
	}
	buf := n.pool.get(p.size(from, to))
	if buf == nil {
		n.drops[DropMemory] += int64(to - from)
		return
	}
	ev.p = p.cut(buf, from, to)
	if n.forward == nil || !n.forward(ev) {
		n.pending.push(ev)
	}
}

// queue passes p through s and sets *at to its departure. Segments that do not fit are
// dropped from the end of p.
func (n *network) queue(s *shaper, p packet, at *int64, cause string) (packet, bool) {
	if fit := s.fit(*at, p); fit < p.segs {
		n.drops[cause] += int64(p.segs - fit)
		if fit == 0 {
			return p, false
		}
		p = p.truncate(fit)
	}
	*at = s.take(*at, p.wire())
	return p, true
}

// wakesAt returns when to wake up for the next step: when it is due or, if at least two more are due within the
// slack, after the slack. So a few packets on an idle link leave on time.
func (n *network) wakesAt(next int64) int64 {
	p := n.pending.e // a heap: if its second and third are due, those are two more
	if len(p) > 2 && max(p[1].at, p[2].at) <= next+n.slack {
		return next + n.slack
	}
	return next
}

// advance moves the packets that are due at now, but sends at most sendBatch of them: each may be answered
// at once, and the ring must have room. It returns when the next step is due, or false if none is in flight.
func (n *network) advance(now int64) (next int64, any bool) {
	for len(n.due) < sendBatch && len(n.pending.e) > 0 && n.pending.e[0].at <= now {
		ev := n.pending.pop()
		if n.hosts[ev.dst].away {
			n.carry(ev)
			continue
		}
		if !ev.down {
			p, ok := n.queue(&n.hosts[ev.dst].down, ev.p, &ev.at, DropDown)
			if !ok {
				n.pool.put(p.buf)
				continue
			}
			ev.p, ev.down = p, true
			// It goes back into the heap even if it is due, to keep the order of departures.
			n.pending.push(ev)
			continue
		}
		n.due = append(n.due, ev)
	}
	if len(n.due) > 0 {
		n.deliver(n.due)
		now := n.clock()
		for i := range n.due {
			n.departed(&n.due[i], now)
		}
		n.due = n.due[:0]
	}
	if len(n.pending.e) == 0 {
		return 0, false
	}
	return n.pending.e[0].at, true
}

// departed counts a packet that was sent or refused.
func (n *network) departed(ev *event, now int64) {
	late := min(max(now-ev.at+ev.late, 0), int64(longestLateness))
	_ = n.lateness.RecordValue(late) // within the range of the histogram
	if ev.refused {
		n.drops[DropWrite] += int64(ev.p.segs)
	} else {
		n.hosts[ev.dst].Received.add(ev.p.segs, ev.p.wire())
	}
	n.pool.put(ev.p.buf)
}

// carried takes a packet that another machine has sent to a host's downlink, with its buffer.
func (n *network) carried(buf []byte, now, late int64) {
	p, addr, err := parse(buf)
	dst, ok := n.route[addr]
	if err != nil || !ok || n.hosts[dst].away {
		n.drops[DropMalformed]++
		n.pool.put(buf)
		return
	}
	n.pending.push(event{at: now, dst: dst, p: p, late: late})
}

func (p *netPath) propagation() int64 {
	if p.Jitter == 0 {
		return int64(p.Delay)
	}
	return int64(float64(p.Delay) + (p.rng.Float64()*2-1)*float64(p.Jitter))
}

// nextGap draws the number of segments before the next lost one, which is geometrically
// distributed, by inversion: ⌊ln U / ln(1 − loss)⌋ with U uniform in (0, 1]. This takes one
// draw per lost segment instead of one per segment.
func (p *netPath) nextGap() int64 {
	switch {
	case p.Loss <= 0:
		return math.MaxInt64
	case p.Loss >= 1:
		return 0
	}
	g := math.Log(1-p.rng.Float64()) / math.Log1p(-p.Loss)
	return int64(min(g, 1e18))
}

func (n *network) stats() Stats {
	s := Stats{
		Drops:    maps.Clone(n.drops),
		Hosts:    map[string]HostStats{},
		Lateness: n.lateness.Export().Counts,
	}
	for _, h := range n.hosts {
		s.Hosts[h.name] = h.HostStats
	}
	return s
}

// shaper is a rate with a queue before it, as a virtual clock: it knows when the last
// accepted byte will have left, and so needs neither a timer nor a list. A packet of n
// bytes that arrives at t leaves at max(t, busy) + n/rate. Times are nanoseconds; the
// precision of float64 is 1/50 ns after a day and 1 ns after a hundred days.
//
// Arrival times must not decrease.
type shaper struct {
	perByte float64 // ns; 0: unlimited
	limit   float64 // bytes
	busy    float64 // when it becomes idle
	before  float64 // until then it sends what it accepted before the last change
}

// set changes rate (bit/s, 0: unlimited) and queue (bytes). Accepted packets keep their
// departure and do not count against the new queue; later ones leave after them, so the
// order is kept. Setting the current values again changes nothing: the queue stays as
// full as it is.
func (s *shaper) set(rate float64, queue int64) {
	perByte := 0.0
	if rate > 0 {
		perByte = 8e9 / rate
	}
	if perByte == s.perByte && float64(queue) == s.limit {
		return
	}
	s.before = s.busy
	s.perByte, s.limit = perByte, float64(queue)
}

// backlog returns the bytes that wait or are being sent at t.
func (s *shaper) backlog(t int64) float64 {
	if s.perByte == 0 {
		return 0
	}
	return max(0, s.busy-max(float64(t), s.before)) / s.perByte
}

// fit returns how many of a packet's segments, arriving back to back at t, the queue
// accepts: drop-tail in bytes, segment by segment. An idle link accepts at least one,
// however short its queue is.
func (s *shaper) fit(t int64, p packet) int32 {
	if s.perByte == 0 {
		return p.segs
	}
	backlog := s.backlog(t)
	room := s.limit - backlog + 1e-3 // rounding must not cost a segment
	if room >= float64(p.wire()) {
		return p.segs
	}
	n := min(int32(max(room, 0)/float64(p.span(0, 1))), p.segs-1)
	if n == 0 && backlog == 0 {
		n = 1
	}
	return n
}

// take accepts n bytes that arrive at t and returns when the last one leaves.
func (s *shaper) take(t int64, n int64) int64 {
	if s.perByte == 0 && s.busy <= float64(t) {
		return t
	}
	s.busy = max(s.busy, float64(t)) + float64(n)*s.perByte
	return int64(s.busy)
}

// event is a packet in flight and the time of its next step.
type event struct {
	at      int64
	seq     uint64
	p       packet
	dst     int32
	down    bool  // it has passed the downlink queue
	refused bool  // by the kernel
	late    int64 // how late it arrived from another machine
}

// eventHeap is a binary heap ordered by time, then by order of insertion. Unlike
// container/heap it does not allocate at every step.
type eventHeap struct {
	e   []event
	seq uint64
}

// before reports whether a is due before b.
func (a *event) before(b *event) bool { return a.at < b.at || a.at == b.at && a.seq < b.seq }

func (h *eventHeap) push(ev event) {
	h.seq++
	ev.seq = h.seq
	h.e = append(h.e, ev)
	i := len(h.e) - 1
	for up := (i - 1) / 2; i > 0 && ev.before(&h.e[up]); up = (i - 1) / 2 {
		h.e[i] = h.e[up]
		i = up
	}
	h.e[i] = ev
}

func (h *eventHeap) pop() event {
	top := h.e[0]
	n := len(h.e) - 1
	last := h.e[n]
	h.e = h.e[:n]
	i := 0
	for l := 1; l < n; l = 2*i + 1 {
		if r := l + 1; r < n && h.e[r].before(&h.e[l]) {
			l = r
		}
		if last.before(&h.e[l]) {
			break
		}
		h.e[i] = h.e[l]
		i = l
	}
	if n > 0 {
		h.e[i] = last
	}
	return top
}
