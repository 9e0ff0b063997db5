package experiment

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat"
)

// Drawn rates have the specified distribution, and the first peers have the same rates whatever the
// number of peers.
func TestSpeedsAreDrawn(t *testing.T) {
	const n = 20_000
	for _, c := range []struct {
		v                           Speeds
		median, lowest, highest, sd float64 // sd: of the logarithms
	}{
		{Speeds{Lognormal: 8e6, Spread: 3}, 8e6, 8e6 / math.Pow(3, 3.1), 8e6 * math.Pow(3, 3.1), math.Log(3)},
		{Speeds{Lognormal: 8e6, Spread: 1}, 8e6, 8e6, 8e6, 0},
		{Speeds{List: []BitRate{1e6, 5e6, 25e6}}, 5e6, 1e6, 25e6, math.Log(5) * math.Sqrt(2.0/3)},
	} {
		v, want, text := c.v, c, c.v.String()
		draw := func(n int) []BitRate {
			r := rand.New(rand.NewPCG(1, 2))
			return v.Draw(n, r.Float64)
		}
		rates := draw(n)
		if !slices.Equal(rates[:7], draw(7)) {
			t.Errorf("%s: seven peers have not what the first of many have", text)
		}
		logs := make([]float64, n)
		for i, r := range rates {
			logs[i] = math.Log(float64(r))
		}
		if sd := stat.StdDev(logs, nil); want.sd > 0 && math.Abs(sd/want.sd-1) > 0.03 {
			t.Errorf("%s: standard deviation of the logarithms %g, want %g", text, sd, want.sd)
		}
		slices.Sort(rates)
		if m := float64(rates[n/2]); math.Abs(m/want.median-1) > 0.05 {
			t.Errorf("%s: median %g, want %g", text, m, want.median)
		}
		if lowest, highest := float64(rates[0]), float64(rates[n-1]); lowest < 0.999*want.lowest ||
			highest > 1.001*want.highest || highest < 0.8*want.highest {
			t.Errorf("%s: from %g to %g, want %g to %g", text, lowest, highest, want.lowest, want.highest)
		}
	}
	for _, r := range (Speeds{}).Draw(3, func() float64 { t.Error("asked for chance"); return 0 }) {
		if r != 0 {
			t.Errorf("link: %v", r)
		}
	}
}

// Settings of cells are written as in the file, whatever their type, so that they can be compared with levels.
func TestSettings(t *testing.T) {
	c := Cell{Link: Link{Rate: 1e7, Loss: 0.01, Delay: Duration(40 * time.Millisecond)},
		Sync: &Sync{Faults: Faults{{Cut: "node", At: When{Share: 0.5}, For: Duration(2 * time.Second)}},
			Options: map[string]string{"batch": "10"}}}
	got := c.Settings()
	for path, want := range map[string]string{"link.rate": "10Mbit", "link.loss": "1%", "link.delay": "40ms",
		"link.queue": "auto", "sync.faults": "cut node at 50% for 2s", "sync.options.batch": "10"} {
		if got[path] != want {
			t.Errorf("%s: %q, want %q", path, got[path], want)
		}
	}
}
