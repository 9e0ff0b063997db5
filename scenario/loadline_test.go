package scenario

import (
	"math"
	"testing"

	"github.com/plimsoll-project/plimsoll/record"
)

func TestLoadLine(t *testing.T) {
	const rate, rtt = 12.5e6, 0.04 // 100 Mbit/s of payload, 40 ms
	p := Path{rate, rtt}
	for _, c := range []struct {
		name string
		n    int
		q    Request
		want float64
	}{
		// One connection, and a transfer as long as a round trip: half of the time is waiting.
		{"half waiting", 1, Request{Size: rate * rtt}, rate / 2},
		{"two share it", 2, Request{Size: rate * rtt}, rate},
		{"the link is full", 100, Request{Size: rate * rtt}, rate},
		{"a tiny object is all waiting", 1, Request{Size: 1}, 1 / (rtt + 1/rate)},
		// Two round trips without a pause, since it fits into the first window.
		{"fresh, small", 1, Request{Size: 14_600, Fresh: true}, 14_600 / (2*rtt + 14_600/rate)},
		// After 14.6, 29.2, 58.4, 116.8, 233.6 and 467.2 kB (which take 37 ms to send), the server
		// waits for the rest of the round trip; later windows fill it.
		{"fresh", 1, Request{Size: 5e6, Fresh: true}, 5e6 / (2*rtt + 6*rtt + (5e6-63*14_600)/rate)},
		{"fresh over TLS", 1, Request{Size: 5e6, Fresh: true, TLS: true}, 5e6 / (3*rtt + 5*rtt + (5e6-62*14_600)/rate)},
		{"kept over TLS", 1, Request{Size: rate * rtt, TLS: true}, rate / 2},
	} {
		if got := p.LoadLine(c.n, c.q); math.Abs(got-c.want) > 1e-9*c.want {
			t.Errorf("%s: %g B/s, want %g", c.name, got, c.want)
		}
	}
	if got := (Path{math.Inf(1), 0}).LoadLine(1, Request{Size: 1}); !math.IsNaN(got) {
		t.Errorf("a link that limits nothing has a load line of %g", got)
	}
	if got := p.LoadLine(1, Request{}); !math.IsNaN(got) {
		t.Errorf("no bytes have a load line of %g B/s", got)
	}
}

// Slow start cannot make a transfer shorter, nor longer than with one window per round trip.
func TestSlowStartIsBetweenItsBounds(t *testing.T) {
	for _, p := range []Path{{12.5e6, 0.04}, {1e5, 0.2}, {1e9, 0.001}, {math.Inf(1), 0.1}, {1e6, 0}} {
		before := 0.0
		for size := 1.0; size < 1e9; size *= 1.7 {
			kept, fresh := p.Time(Request{Size: size}), p.Time(Request{Size: size, Fresh: true})
			doublings := math.Ceil(math.Log2(size/14_600 + 1))
			if least, most := kept+p.RTT, kept+p.RTT*(1+max(0, doublings)); fresh < least-1e-9*least ||
				fresh > most*(1+1e-9) {
				t.Errorf("%+v, %g B: %g s on a fresh connection, want %g to %g", p, size, fresh, least, most)
			}
			if fresh < before {
				t.Errorf("%+v: %g B take less than fewer do", p, size)
			}
			before = fresh
		}
	}
}

func TestPathOf(t *testing.T) {
	for _, c := range []struct {
		name  string
		check *record.LinkCheck
		want  Path
		ok    bool
	}{
		{"none", nil, Path{}, false},
		{"as measured, not as asked for", &record.LinkCheck{WantRate: 8e6, Rate: 7.6e6, WantRTT: 0.1, RTT: 0.103},
			Path{0.95e6, 0.103}, true},
		{"a delay alone", &record.LinkCheck{Rate: 3e9, WantRTT: 0.1, RTT: 0.1}, Path{math.Inf(1), 0.1}, true},
		{"a rate alone", &record.LinkCheck{WantRate: 8e6, Rate: 8e6, RTT: 3e-4}, Path{1e6, 0}, true},
		{"not limited", &record.LinkCheck{Rate: 3e9, RTT: 5e-5}, Path{math.Inf(1), 0}, false},
		{"not measured", &record.LinkCheck{WantRate: 8e6}, Path{}, false},
	} {
		if p, ok := PathOf(c.check); p != c.want || ok != c.ok {
			t.Errorf("%s: %+v, %v; want %+v, %v", c.name, p, ok, c.want, c.ok)
		}
	}
}

// A kept connection fetches twice its share of the bytes that fill the path, at least TCP's
// initial window.
func TestWarmupFillsThePath(t *testing.T) {
	for _, c := range []struct {
		path Path
		n    int
		want int64
	}{
		{Path{Rate: 12e6, RTT: 0.04}, 1, 960_000},
		{Path{Rate: 12e6, RTT: 0.04}, 16, 60_000},
		{Path{Rate: 12e6, RTT: 0.04}, 1000, 14_600},
		{Path{Rate: math.Inf(1), RTT: 0.04}, 1, 64 << 20},
		{Path{Rate: math.Inf(1)}, 1, 14_600},
		{Path{}, 1, 14_600},
	} {
		if got := c.path.Warmup(c.n); got != c.want {
			t.Errorf("%+v, %d connections: %d bytes, want %d", c.path, c.n, got, c.want)
		}
	}
}
