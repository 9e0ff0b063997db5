package link

import (
	"math"
	"math/rand/v2"
	"testing"
)

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
