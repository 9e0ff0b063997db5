package link

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"
)

// sim is a network on a virtual clock.
type sim struct {
	n   *network
	now int64
	got []delivery

	template map[int][]byte // packets by number of segments
	keep     bool           // deliveries' bytes too
}

type delivery struct {
	at   int64
	host int32
	wire int64
	segs int32
	mark uint32 // of the packet's first segment: see send
	buf  []byte
}

func newSim(t *testing.T, hosts int, top Topology) *sim {
	s := &sim{n: newNetwork(1, &pool{limit: 1 << 30})}
	s.n.clock = func() int64 { return s.now }
	s.n.deliver = func(due []event) {
		for _, ev := range due {
			d := delivery{s.now, ev.dst, ev.p.wire(), ev.p.segs, binary.BigEndian.Uint32(ev.p.ip()[24:]), nil}
			if s.keep {
				d.buf = bytes.Clone(ev.p.buf)
			}
			s.got = append(s.got, d)
		}
	}
	for i := range hosts {
		s.n.add(hostName(i), []netip.Addr{hostAddr(i)})
	}
	s.n.reshape(top)
	return s
}

func hostName(i int) string     { return string(rune('a' + i)) }
func hostAddr(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}) }

// send sends a TCP super-packet of segs segments of 1514 bytes on the wire; its
// sequence number starts at seq.
func (s *sim) send(src, dst, segs int, seq uint32) {
	body := 1448 * segs
	if s.template == nil {
		s.template = map[int][]byte{}
	}
	p := s.template[segs]
	if p == nil {
		p = craft{gso: 1448, body: body, flags: 0x10, rng: rand.New(rand.NewPCG(9, 9))}.bytes()
		s.template[segs] = p
	}
	ip := p[headLen:]
	a := hostAddr(dst).As4()
	copy(ip[16:], a[:])
	binary.BigEndian.PutUint32(ip[24:], seq)
	// craft has summed the old addresses.
	binary.BigEndian.PutUint16(ip[36:], rfc1071(pseudo(ip, 6, len(ip)-20)))
	s.n.arrive(int32(src), bytes.Clone(p), s.now)
}

// run advances the clock, from event to event, until nothing is under way.
func (s *sim) run() {
	for {
		next, any := s.n.advance(s.now)
		if !any {
			return
		}
		s.now = max(s.now, next)
	}
}

// until advances the clock to t.
func (s *sim) until(t int64) {
	for {
		next, any := s.n.advance(s.now)
		if !any || next > t {
			break
		}
		s.now = max(s.now, next)
	}
	s.now = t
	s.n.advance(t)
}

func ms(x float64) int64 { return int64(x * 1e6) }

func TestPathTimes(t *testing.T) {
	top := Topology{
		Up:   map[string]Params{"a": {Rate: 1e9, Delay: 10 * time.Millisecond}},
		Down: map[string]Params{"b": {Rate: 1e8, Delay: 5 * time.Millisecond}, "c": {Delay: time.Millisecond}},
	}
	s := newSim(t, 3, top)
	s.send(0, 1, 1, 0) // 1514 bytes: 12.112 µs up, 15 ms, 121.12 µs down
	s.send(0, 2, 1, 0) // behind the first on the uplink, no rate down
	s.send(1, 0, 1, 0) // nothing limits this way
	s.run()
	want := map[int32]int64{1: 15e6 + 12112 + 121120, 2: 11e6 + 2*12112, 0: 0}
	for _, d := range s.got {
		if d.at != want[d.host] {
			t.Errorf("host %d at %d, want %d", d.host, d.at, want[d.host])
		}
	}
	if len(s.got) != 3 {
		t.Errorf("%d deliveries", len(s.got))
	}
	if w := top.Want("a", "b"); w.RTT != 15*time.Millisecond || w.Rate != 1e8 {
		t.Errorf("want %+v", w)
	}
}

// One or two packets leave when they are due; one that more follow leaves with those that are due a fiftieth of the
// delay later, and none is ever early.
func TestPacketsLeaveTogether(t *testing.T) {
	const ms = time.Millisecond
	s := newSim(t, 3, Topology{Up: map[string]Params{"a": {Delay: 5 * ms}, "b": {Delay: 6 * ms}}})
	wakes := func(want int64) {
		t.Helper()
		next, _ := s.n.advance(s.now)
		if at := s.n.wakesAt(next); at != want {
			t.Errorf("wakes at %d, want %d", at, want)
		}
	}
	s.send(0, 1, 1, 0) // due alone at 5 ms
	wakes(5e6)
	s.until(0.05e6)
	s.send(0, 2, 1, 1) // and at 5.05
	wakes(5e6)
	s.send(0, 1, 1, 1) // and, twice, at 5.05
	wakes(5.1e6)
	s.until(5.1e6)
	if len(s.got) != 3 {
		t.Errorf("%d packets have left", len(s.got))
	}
	s.send(0, 1, 1, 2) // due at 10.1 ms
	s.send(1, 0, 1, 3) // and, twice, at 11.1
	s.send(1, 0, 1, 4)
	wakes(10.1e6)
}

func TestPairReplacesDelay(t *testing.T) {
	top := Topology{
		Up:    map[string]Params{"a": {Rate: 1e9, Delay: 10 * time.Millisecond, Loss: 1}},
		Pairs: map[Pair]Params{{"a", "b"}: {Delay: 3 * time.Millisecond}},
	}
	s := newSim(t, 3, top)
	s.send(0, 1, 1, 0)
	s.send(0, 2, 1, 0) // not that pair: lost
	s.run()
	if len(s.got) != 1 || s.got[0].at != 3e6+12112 {
		t.Errorf("%+v", s.got)
	}
	if w := top.Want("a", "b"); w.RTT != 3*time.Millisecond || w.Rate != 1e9 || w.Loss != 0 {
		t.Errorf("want %+v", w)
	}
	if w := top.Want("b", "a"); w.RTT != 3*time.Millisecond || w.Rate != 0 || w.ReturnRate != 1e9 {
		t.Errorf("want %+v", w)
	}
}

// What goes in comes out, is counted as dropped for one cause, or is still held,
// to the segment, under everything at once; and buffers are not leaked.
func TestConservation(t *testing.T) {
	const hosts = 4
	rng := rand.New(rand.NewPCG(5, 6))
	random := func() Params {
		p := Params{Delay: time.Duration(rng.Int64N(50e6)), Loss: rng.Float64() * 0.2}
		p.Jitter = time.Duration(rng.Float64() * float64(p.Delay))
		if rng.IntN(4) > 0 {
			p.Rate = math.Pow(10, 6+3*rng.Float64())
			p.Queue = int64(rng.IntN(200000))
		}
		return p
	}
	topology := func() Topology {
		top := Topology{Up: map[string]Params{}, Down: map[string]Params{}, Pairs: map[Pair]Params{}}
		for i := range hosts {
			top.Up[hostName(i)], top.Down[hostName(i)] = random(), random()
		}
		for range 2 {
			if i, j := rng.IntN(hosts), rng.IntN(hosts); i != j {
				p := random()
				p.Rate, p.Queue = 0, 0
				top.Pairs[Pair{hostName(i), hostName(j)}] = p
			}
		}
		return top
	}
	s := newSim(t, hosts, topology())
	s.n.pool.limit = 4 << 20 // to be hit
	for i := range 20000 {
		s.send(rng.IntN(hosts), rng.IntN(hosts+1), 1+rng.IntN(44), uint32(i)*1e6)
		s.until(s.now + rng.Int64N(400e3))
		if i%1000 == 999 {
			s.n.reshape(topology())
		}
		if s.n.pool.held > s.n.pool.limit {
			t.Fatalf("holds %d bytes, limit %d", s.n.pool.held, s.n.pool.limit)
		}
	}
	s.run()
	st := s.n.stats()
	all := st.all()
	sum, delivered := all.Received.Segments, Count{}
	for _, n := range st.Drops {
		sum += n
	}
	for _, d := range s.got {
		delivered.add(d.segs, d.wire)
	}
	if sum != all.Sent.Segments || delivered != all.Received {
		t.Errorf("%+v, received and dropped %+v, delivered %+v", all, sum, delivered)
	}
	if held := s.n.pool.held; held != 0 {
		t.Errorf("%d bytes of buffers leaked", held)
	}
	for _, cause := range []string{DropUp, DropDown, DropLoss, DropNoRoute, DropMemory} {
		if st.Drops[cause] == 0 {
			t.Errorf("no drop by %s: the test does not reach it", cause)
		}
	}
}

// Neither jitter, nor losses, nor reshaping makes one packet of a path overtake
// another, and what arrives is intact.
func TestOrderIsKept(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	s := newSim(t, 3, Topology{})
	s.keep = true
	for i := range uint32(3000) {
		segs := 1 + rng.IntN(20)
		s.send(0, 1, segs, i<<16)
		s.send(2, 1, 1, i<<16|1<<31)
		s.until(s.now + rng.Int64N(2e6))
		if i%50 == 0 {
			d := time.Duration(rng.Int64N(80e6))
			p := Params{Delay: d, Jitter: d, Loss: 0.05, Rate: math.Pow(10, 7+2*rng.Float64())}
			if rng.IntN(3) == 0 {
				p.Rate = 0
			}
			s.n.reshape(symmetric(p, "a", "b", "c"))
		}
	}
	s.run()
	last := map[uint32]int64{0: -1, 1: -1}
	for _, d := range s.got {
		flow := d.mark >> 31
		if int64(d.mark) <= last[flow] {
			t.Fatalf("%#x after %#x", d.mark, last[flow])
		}
		last[flow] = int64(d.mark)
		wireSegments(t, d.buf)
	}
}

func TestJitterIsUniform(t *testing.T) {
	p := Params{Delay: 20 * time.Millisecond, Jitter: 5 * time.Millisecond}
	s := newSim(t, 2, Topology{Up: map[string]Params{"a": p}})
	var sent []int64
	const n = 20000
	for i := range uint32(n) {
		sent = append(sent, s.now)
		s.send(0, 1, 1, i)
		s.until(s.now + 50e6) // far apart: nothing holds another up
	}
	var sum, below float64
	lo, hi := int64(math.MaxInt64), int64(0)
	for i, d := range s.got {
		delay := d.at - sent[i]
		sum += float64(delay)
		lo, hi = min(lo, delay), max(hi, delay)
		if delay < ms(17.5) {
			below++
		}
	}
	if mean := sum / n; math.Abs(mean-20e6) > 0.1e6 {
		t.Errorf("mean %v", mean)
	}
	if lo < ms(15) || hi > ms(25) || lo > ms(15.1) || hi < ms(24.9) {
		t.Errorf("from %v to %v", lo, hi)
	}
	if share := below / n; math.Abs(share-0.25) > 0.015 {
		t.Errorf("%v in the lowest quarter", share)
	}
}

// Losses hit single segments, at the rate asked for, independent of how they were
// bundled, and are the same for the same seed.
func TestLossPerSegment(t *testing.T) {
	for _, loss := range []float64{0.001, 0.01, 0.3, 1} {
		for _, segs := range []int{1, 44} {
			s := newSim(t, 2, Topology{Up: map[string]Params{"a": {Loss: loss}}})
			const total = 110000
			for i := range total / segs {
				s.send(0, 1, segs, uint32(i))
				s.run()
				s.got = s.got[:0]
			}
			all := s.n.stats()
			sent, lost := all.Hosts["a"].Sent, all.Drops[DropLoss]
			got := float64(lost) / float64(sent.Segments)
			sigma := math.Sqrt(loss * (1 - loss) / total)
			if sent.Segments != total || math.Abs(got-loss) > 4*sigma {
				t.Errorf("loss %v in super-packets of %d: %v of %d", loss, segs, got, sent.Segments)
			}
		}
	}
}

// Losses are independent: the run lengths between them are geometric, so the
// share of losses that directly follow another is the loss rate itself.
func TestLossesAreIndependent(t *testing.T) {
	s := newSim(t, 2, Topology{Up: map[string]Params{"a": {Loss: 0.1}}})
	path := s.n.hosts[0].paths[1]
	zeros := 0
	const n = 200000
	for range n {
		if path.nextGap() == 0 {
			zeros++
		}
	}
	if share := float64(zeros) / n; math.Abs(share-0.1) > 0.003 {
		t.Errorf("%v follow directly, want 0.1", share)
	}
}

// A burst larger than the queue loses its tail, not its whole super-packets.
func TestDropTailSplitsSuperPackets(t *testing.T) {
	s := newSim(t, 2, Topology{Up: map[string]Params{"a": {Rate: 1e8, Queue: 100 * 1514}}})
	for i := range 5 {
		s.send(0, 1, 40, uint32(i)<<20)
	}
	s.run()
	st := s.n.stats()
	if out := st.all().Received; out != (Count{100, 100 * 1514}) || st.Drops[DropUp] != out.Segments {
		t.Errorf("out %+v, dropped %+v; want 100 segments each", out, st.Drops)
	}
	if len(s.got) != 3 || s.got[2].segs != 20 {
		t.Errorf("%+v", s.got)
	}
}

// Two hosts that send to a third share its downlink fairly, and fill it.
func TestDownlinkIsShared(t *testing.T) {
	top := Topology{Down: map[string]Params{"c": {Rate: 1e8, Queue: 64 * 1514}}}
	s := newSim(t, 3, top)
	rng := rand.New(rand.NewPCG(1, 3))
	sent := [2]uint32{}
	for s.now < 1e9 {
		src := rng.IntN(2)
		s.send(src, 2, 4, uint32(src)<<31|sent[src])
		sent[src]++
		s.until(s.now + 200e3) // 2.4 × the downlink
	}
	share := [2]float64{}
	for _, d := range s.got {
		share[d.mark>>31] += float64(d.wire)
	}
	total := share[0] + share[1]
	if want := 1e8 / 8; math.Abs(total-want) > want/100 {
		t.Errorf("%v bytes in a second, want %v", total, want)
	}
	if r := share[0] / total; r < 0.45 || r > 0.55 {
		t.Errorf("one host got %v", r)
	}
}

func TestQueueDefaults(t *testing.T) {
	top := Topology{
		Up:   map[string]Params{"a": {Rate: 1e9, Delay: 20 * time.Millisecond}, "b": {Rate: 1e6}, "c": {Rate: 1e10}},
		Down: map[string]Params{"a": {Rate: 1e9, Delay: 20 * time.Millisecond}, "b": {Rate: 1e9, Queue: 5}},
	}
	r := top.resolve([]string{"a", "b", "c"})
	for what, c := range map[string][2]int64{
		"one round trip of 40 ms at 1 Gbit/s": {r.Up["a"].Queue, 5e6},
		"least":                               {r.Up["b"].Queue, 64 * 1514},
		"as given":                            {r.Down["b"].Queue, 5},
		"eight super-packets":                 {Params{Rate: 1e10}.withQueue(0).Queue, 8 * 43 * 1514},
		"no rate":                             {r.Down["c"].Queue, 0},
	} {
		if c[0] != c[1] {
			t.Errorf("%s: %d, want %d", what, c[0], c[1])
		}
	}
}

func TestLateness(t *testing.T) {
	times := make([]time.Duration, 1<<14)
	for i := range times {
		times[i] = time.Duration(i)
	}
	first := lateness(times...)
	if q := first.Quantile(0.5); q < 1<<13-1 || float64(q) > 1.0625*(1<<13) {
		t.Errorf("median %v", q)
	}
	d := lateness(append(times, 5*time.Second, math.MaxInt64, -1)...).plus(first, -1)
	if q := d.Quantile(0.5); d.N() != 3 || q < 5*time.Second || q > 5400*time.Millisecond || d.Quantile(1) < time.Hour {
		t.Errorf("%d, median %v, most %v", d.N(), q, d.Quantile(1))
	}
	if mean := lateness(time.Millisecond, 3*time.Millisecond).Mean(); mean < 1900*time.Microsecond ||
		mean > 2125*time.Microsecond {
		t.Errorf("mean of 1 and 3 ms: %v", mean)
	}
	var none Lateness
	if none.Quantile(0.99) != 0 || none.Mean() != 0 || none.N() > 0 {
		t.Error("nothing counted, yet late")
	}
}

func TestSegmentsAndPayload(t *testing.T) {
	for _, c := range []struct{ got, want float64 }{
		{TCPPayloadRate(1e9, false), 956.407e6}, {TCPPayloadRate(1e9, true), 943.197e6},
		{float64(segmentsPerBurst(0)), 65535}, {float64(segmentsPerBurst(1e6)), 1},
		{float64(segmentsPerBurst(1e8)), 8}, {float64(segmentsPerBurst(1e9)), 82},
		{float64(segmentsPerBurst(1e13)), 65535},
	} {
		if math.Abs(c.got-c.want) > 1e-6*c.want {
			t.Errorf("%v, want %v", c.got, c.want)
		}
	}
}

func TestNetemAttributes(t *testing.T) {
	for _, c := range []struct {
		p    Params
		want [5]uint64 // latency and jitter in µs, loss in 1/1000 %, limit, rate in byte/s
	}{
		{Params{Rate: 1e8, Delay: 20 * time.Millisecond, Loss: 0.01, Queue: 500000}, [5]uint64{20000, 0, 1000, 497,
			12.5e6}},
		{Params{Rate: 1e7, Queue: 1514 * 64}, [5]uint64{0, 0, 0, 64, 1.25e6}},
		{Params{Rate: 4e10, Delay: 10 * time.Millisecond, Queue: 1}, [5]uint64{10000, 0, 0, 33027, 5e9}},
		// Jitter needs a rate to keep order.
		{Params{Delay: 2 * time.Millisecond, Jitter: time.Millisecond}, [5]uint64{2000, 1000, 0, 24769, orderRate}},
	} {
		a := netemAttrs(c.p, c.p.Rate)
		got := [5]uint64{uint64(a.Latency), uint64(a.Jitter), uint64(math.Round(float64(a.Loss) * 1000)),
			uint64(a.Limit), a.Rate64}
		if got != c.want {
			t.Errorf("%+v: %v, want %v", c.p, got, c.want)
		}
	}
	// Acknowledgements of the fastest link fit into the slowest one's delay.
	slow := Params{Rate: 1e6, Delay: 40 * time.Millisecond, Queue: 64 * 1514}
	if a := netemAttrs(slow, 1e9); a.Limit < 64+3303 {
		t.Errorf("limit %d", a.Limit)
	}
}

// sized is a packet that occupies segs × (size) bytes on the wire.
func sized(size, segs int) packet {
	if segs == 1 {
		return packet{buf: make([]byte, vnetLen+size-Framing), hdr: int32(size - Framing), segs: 1}
	}
	const hdr = 52
	gso := size - Framing - hdr
	return packet{buf: make([]byte, vnetLen+hdr+gso*segs), hdr: hdr, gso: int32(gso), segs: int32(segs)}
}

func TestShaperDeparture(t *testing.T) {
	var s shaper
	s.set(8e6, 1e6) // 1 byte per µs
	for _, c := range []struct{ at, bytes, want int64 }{
		{0, 1000, 1000e3},
		{0, 500, 1500e3},           // behind the first
		{1500e3, 500, 2000e3},      // just in time
		{10_000e3, 100, 10_100e3},  // idle in between: nothing is saved up
		{10_050e3, 1000, 11_100e3}, // half of the last one waits
	} {
		if got := s.take(c.at, c.bytes); got != c.want {
			t.Errorf("%d bytes at %d leave at %d, want %d", c.bytes, c.at, got, c.want)
		}
	}
	if got := s.backlog(10_600e3); math.Abs(got-500) > 1e-6 {
		t.Errorf("backlog %v, want 500", got)
	}
}

// The sum of what passes in a busy period is rate × time, to the rounding of one
// nanosecond, however long it is.
func TestShaperKeepsItsRate(t *testing.T) {
	for _, rate := range []float64{1e4, 1e7, 123456789, 1e9, 1e10, 1e11} {
		var s shaper
		s.set(rate, math.MaxInt64)
		rng := rand.New(rand.NewPCG(1, 1))
		const origin = int64(3600e9)
		var bytes, last int64
		for range 100000 {
			n := int64(60 + rng.IntN(65000))
			bytes += n
			at := s.take(origin, n)
			if at < last {
				t.Fatalf("rate %g: departures go back", rate)
			}
			last = at
		}
		want := float64(bytes) * 8e9 / rate
		if got := float64(last - origin); math.Abs(got-want) > 1+want*1e-9 {
			t.Errorf("rate %g: %d bytes took %v ns, want %v", rate, bytes, got, want)
		}
	}
}

func TestShaperQueueLimit(t *testing.T) {
	var s shaper
	if at, fit := s.take(5, 1<<40), s.fit(5, sized(1514, 40)); at != 5 || fit != 40 {
		t.Errorf("without a rate: departure %d, %d of 40 fit", at, fit)
	}
	s.set(8e6, 10000)
	p := sized(1000, 4)
	for i, want := range []int32{4, 4, 2, 0, 0} { // 4000, 8000, 10000 bytes
		fit := s.fit(0, p)
		if fit != want {
			t.Fatalf("packet %d: %d segments fit, want %d", i, fit, want)
		}
		if fit > 0 {
			s.take(0, int64(fit)*1000)
		}
	}
	for _, c := range []struct {
		at   int64 // ns
		p    packet
		want int32
	}{
		{999e3, p, 0}, // 999 bytes have left
		{1000e3, p, 1},
		{1000e3, sized(900, 1), 1},
		{20_000e3, sized(20000, 1), 1}, // an idle link with a short queue takes the first segment
		{20_000e3, sized(20000, 2), 1},
	} {
		if got := s.fit(c.at, c.p); got != c.want {
			t.Errorf("at %d ns %d segments of %d bytes fit, want %d", c.at, got, c.p.wire(), c.want)
		}
	}
}

// A new rate neither moves what was accepted nor lets later packets overtake.
func TestShaperReshape(t *testing.T) {
	for _, rate := range []float64{0, 8e3, 8e9} {
		var s shaper
		s.set(8e6, 1e6)
		before := s.take(0, 10000)
		s.set(rate, 5000)
		if fit := s.fit(1000, sized(1000, 5)); fit != 5 {
			t.Errorf("rate %g: %d fit into the new queue, want 5: the old one's bytes do not count", rate, fit)
		}
		after := s.take(1000, 1000)
		if after < before {
			t.Errorf("rate %g: leaves at %d, before %d", rate, after, before)
		}
		if rate > 0 && after-before != int64(1000*8e9/rate) {
			t.Errorf("rate %g: %d ns on the wire", rate, after-before)
		}
	}
}

// Settings that are in force already change nothing: a full queue stays full,
// however often other links change.
func TestShaperSameSettings(t *testing.T) {
	var s shaper
	s.set(8e9, 3000) // a byte in a nanosecond
	p := sized(1000, 1)
	for s.fit(0, p) == 1 {
		s.take(0, p.wire())
	}
	full := s.backlog(0)
	s.set(8e9, 3000)
	if s.fit(0, p) != 0 || s.backlog(0) != full {
		t.Errorf("a queue with %g bytes has %g after the same settings", full, s.backlog(0))
	}
	s.set(8e8, 3000) // others: what was accepted keeps its departure and does not count
	if s.fit(0, p) != 1 || s.backlog(0) != 0 {
		t.Errorf("after other settings the queue has %g bytes", s.backlog(0))
	}
	if at := s.take(0, 100); float64(at) != full+1000 {
		t.Errorf("the next packet leaves at %d, after %g that were accepted before", at, full)
	}
}
