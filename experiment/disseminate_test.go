package experiment

import (
	"cmp"
	"math"
	"testing"
	"time"
)

// A size of 1 MB is 8 Mbit: with rates in Mbit/s, the line is in seconds.
func swarmCell(link Link, d Disseminate) Cell {
	return Cell{Data: Data{Objects: 1, Size: 1e6}, Link: link, Disseminate: &d}
}

// Cases that can be computed by hand, with rates that are all payload. Some leechers of a swarm can
// finish before the last one: fewer copies are needed, and the faster links count.
func TestLoadLine(t *testing.T) {
	const M = 1e6
	for _, c := range []struct {
		name string
		link Link
		d    Disseminate
		some int // leechers; 0: all
		want float64
	}{
		{"one to one", Link{Rate: 8 * M}, Disseminate{Nodes: 2, Seeders: 1}, 0, 1},
		// 3·8 Mbit over 4·8 Mbit/s would take 0.75 s; the seeder's own copy takes 1 s.
		{"one to three", Link{Rate: 8 * M}, Disseminate{Nodes: 4, Seeders: 1}, 0, 1},
		{"two to two", Link{Rate: 8 * M}, Disseminate{Nodes: 4, Seeders: 2}, 0, 1}, // a leecher's own link
		// Nodes send at half the rate at which they receive: 3·8 Mbit over 4·4 Mbit/s; the seeder's
		// copy takes 2 s.
		{"up is half", Link{Rate: 8 * M, Up: 4 * M}, Disseminate{Nodes: 4, Seeders: 1}, 0, 2},
		// Two seeders have sent a copy in 1 s; 2·8 Mbit over 4·4 Mbit/s.
		{"up is half, two seeders", Link{Rate: 8 * M, Up: 4 * M}, Disseminate{Nodes: 4, Seeders: 2}, 0, 1},
		// 6·8 Mbit over 8·2 Mbit/s; two seeders send a copy in 2 s.
		{"sum of all up rates", Link{Rate: 100 * M, Up: 2 * M}, Disseminate{Nodes: 8, Seeders: 2}, 0, 3},
		{"up is more", Link{Rate: 8 * M, Up: 80 * M}, Disseminate{Nodes: 4, Seeders: 1}, 0, 1}, // the leechers' links
		{"a slow leecher", Link{Rate: 8 * M}, Disseminate{Nodes: 5, Seeders: 1, Slow: 0.25, SlowDown: 2 * M}, 0, 4},
		// Four of the seven leechers (more than half, rounded up) send 1 instead of
		// 8 Mbit/s: 7·8 Mbit over (8 + 3·8 + 4·1) Mbit/s.
		{"slow to send", Link{Rate: 8 * M}, Disseminate{Nodes: 8, Seeders: 1, Slow: 0.51, SlowUp: 1 * M}, 0, 56.0 / 36},
		// Slow leechers without a send rate send at the same rate as the others.
		{"slow to receive, up is half", Link{Rate: 8 * M, Up: 4 * M}, Disseminate{Nodes: 3, Seeders: 1, Slow: 0.5,
			SlowDown: 6 * M}, 0, 2},
		{"unlimited", Link{}, Disseminate{Nodes: 8, Seeders: 1}, 0, 0},
		{"only sending is limited", Link{Up: 8 * M}, Disseminate{Nodes: 2, Seeders: 1}, 0, 1},
		{"no leecher is slow", Link{Rate: 8 * M}, Disseminate{Nodes: 2, Seeders: 1, SlowDown: 1 * M}, 0, 1},
		{"the seeder's copy", Link{Rate: 8 * M}, Disseminate{Nodes: 4, Seeders: 1}, 1, 1},
		{"without the slow one", Link{Rate: 8 * M}, Disseminate{Nodes: 5, Seeders: 1, Slow: 0.25, SlowDown: 2 * M}, 3,
			1},
		{"with it", Link{Rate: 8 * M}, Disseminate{Nodes: 5, Seeders: 1, Slow: 0.25, SlowDown: 2 * M}, 4, 4},
		// 3·8 Mbit over 8·2 Mbit/s.
		{"half of the copies", Link{Rate: 100 * M, Up: 2 * M}, Disseminate{Nodes: 8, Seeders: 4}, 2, 1},
		{"three quarters", Link{Rate: 100 * M, Up: 2 * M}, Disseminate{Nodes: 8, Seeders: 4}, 3, 1.5},
		{"some of unlimited", Link{}, Disseminate{Nodes: 8, Seeders: 1}, 4, 0},
	} {
		payload := func(wire float64) float64 {
			if wire == 0 {
				t.Errorf("%s: asked about an unlimited link", c.name)
			}
			return wire
		}
		cell := swarmCell(c.link, c.d)
		got := cell.LoadLine(cmp.Or(c.some, c.d.Leechers()), payload)
		if math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %g s, want %g s", c.name, got, c.want)
		}
	}
	// The share of the payload applies to every link.
	full := swarmCell(Link{Rate: 8e6, Up: 4e6}, Disseminate{Nodes: 4, Seeders: 1})
	if got := full.LoadLine(3, func(wire float64) float64 { return wire / 2 }); math.Abs(got-4) > 1e-9 {
		t.Errorf("half of each rate is payload: %g s, want 4 s", got)
	}
}

func TestPollEvery(t *testing.T) {
	const M = 1e6
	for _, c := range []struct {
		name string
		cell Cell
		want time.Duration
	}{
		{"said", swarmCell(Link{Rate: 8 * M}, Disseminate{Nodes: 2, Seeders: 1, Poll: Duration(30 * time.Millisecond)}),
			30 * time.Millisecond},
		// A hundredth of 10 s × 1538/1448 is 106.2 ms.
		{"of the line", swarmCell(Link{Rate: 0.8 * M}, Disseminate{Nodes: 2, Seeders: 1}), 107 * time.Millisecond},
		{"31 leechers, 80 per second", swarmCell(Link{Rate: 8 * M}, Disseminate{Nodes: 32, Seeders: 1}),
			388 * time.Millisecond},
		{"16 leechers, 80 per second", swarmCell(Link{Rate: 8 * M}, Disseminate{Nodes: 17, Seeders: 1}),
			200 * time.Millisecond},
		{"once a second", swarmCell(Link{Rate: 0.008 * M}, Disseminate{Nodes: 2, Seeders: 1}), time.Second},
		{"many leechers", swarmCell(Link{Rate: 8 * M}, Disseminate{Nodes: 256, Seeders: 1}), time.Second},
		{"unlimited", swarmCell(Link{Rate: 0}, Disseminate{Nodes: 2, Seeders: 1}), 13 * time.Millisecond},
	} {
		if got := c.cell.PollEvery(); got != c.want {
			t.Errorf("%s: every %s, want %s", c.name, got, c.want)
		}
	}
	// A load line of nearly zero for one leecher must not cause a busy loop.
	tiny := swarmCell(Link{Rate: 1e12}, Disseminate{Nodes: 2, Seeders: 1})
	if got := tiny.PollEvery(); got < shortestPoll {
		t.Errorf("every %s", got)
	}
}
