package scenario

import (
	"math"
	"testing"
)

func TestLoadLine(t *testing.T) {
	const rate, rtt = 12.5e6, 0.04 // 100 Mbit/s of payload, 40 ms
	for _, c := range []struct {
		name        string
		n           int
		size, trips float64
		want        float64
	}{
		// One connection, a transfer as long as a round trip: half the time is waiting.
		{"half waiting", 1, rate * rtt, 1, rate / 2},
		{"two share it", 2, rate * rtt, 1, rate},
		{"the link is full", 100, rate * rtt, 1, rate},
		{"fresh TLS waits three trips", 1, rate * rtt, 3, rate / 4},
		{"a tiny object is all waiting", 1, 1, 1, 1 / (rtt + 1/rate)},
	} {
		if got := LoadLine(c.n, c.size, rate, rtt, c.trips); math.Abs(got-c.want) > 1e-9*c.want {
			t.Errorf("%s: %g B/s, want %g", c.name, got, c.want)
		}
	}
	if got := LoadLine(1, 1, 0, rtt, 1); !math.IsNaN(got) {
		t.Errorf("a link that is not shaped has load line %g, want none", got)
	}
}

func TestRoundTrips(t *testing.T) {
	for _, c := range []struct {
		fresh, tls bool
		want       float64
	}{{false, false, 1}, {false, true, 1}, {true, false, 2}, {true, true, 3}} {
		if got := RoundTrips(c.fresh, c.tls); got != c.want {
			t.Errorf("fresh=%v tls=%v: %g, want %g", c.fresh, c.tls, got, c.want)
		}
	}
}
