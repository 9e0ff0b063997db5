package experiment

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Words of plans of format 1, and of records, are read back to what they were written from.
func TestWordsAreReadBack(t *testing.T) {
	for _, text := range []string{"none", "crash seeders at 50%", "crash 1 seeder at 0s", "crash 25% of leechers at 30% for 10s without data",
		"cut 2 nodes at 0%; cut 1 node at 1m30s for 5s", "rate 10Mbit at 50%", "rate 1Mbit of 25% of leechers at 20s for 10s", "rate 1Mbit of seeders at 5s",
		"crash node at 50% for 2s without data", "rate 1Mbit of node at 0% for 5s", "crash 1 peer at 50%; cut 25% of peers at 10s", "rate 1Mbit of 2 peers at 20s"} {
		faults, err := FaultsOf(text)
		if err != nil || faults.String() != text {
			t.Errorf("%q: %q, %v", text, faults, err)
		}
		for i := range faults {
			if err := faults[i].check(); err != nil {
				t.Errorf("%q: %v", text, err)
			}
		}
	}
	for _, text := range []string{"none", "1 silent", "25% stranger; 2 at 500kbit; 12.5% silent"} {
		if got, err := TroublesOf(text); err != nil || got.String() != text {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"link", "lognormal 8Mbit x3", "uniform 1Mbit..50Mbit", "loguniform 500kbit..50Mbit", "list 1Mbit 5Mbit 1Mbit"} {
		if got, err := SpeedsOf(text); err != nil || got.String() != text {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"together", "waves of 4 every 30s", "poisson 0.5/s"} {
		if got, err := JoinOf(text); err != nil || got.String() != text {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

// What no older version wrote is an error, not a panic; a spread of one size is read.
func TestOldWords(t *testing.T) {
	for _, text := range []string{"", "lognormal"} {
		if got, err := SpeedsOf(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
	for text, want := range map[string]SizeRange{"1MB": {1e6, 1e6}, "1kB..1MB": {1e3, 1e6}} {
		if got, err := typed("data.spread", text); err != nil || got != want {
			t.Errorf("spread %q: %v, %v", text, got, err)
		}
	}
}

func TestParts(t *testing.T) {
	for text, want := range map[string]int{"1": 1, "30%": 3, "25%": 3, "100%": 10, "12": 12} {
		var p Part
		if err := p.parse(text); err != nil || p.Of(10) != want {
			t.Errorf("%s of 10 are %d (%v), want %d", text, p.Of(10), err, want)
		}
	}
	if n := (Part{}).Of(7); n != 7 {
		t.Errorf("all of 7 are %d", n)
	}
}

// Rates that are drawn have the distribution that the text says, and the first
// peers of many have those of few.
func TestSpeedsAreDrawn(t *testing.T) {
	const n = 20_000
	for text, want := range map[string]struct{ median, lowest, highest, sd float64 }{ // sd: of the logarithms
		"lognormal 8Mbit x3":          {8e6, 8e6 / math.Pow(3, 3.1), 8e6 * math.Pow(3, 3.1), math.Log(3)},
		"lognormal 8Mbit x1":          {8e6, 8e6, 8e6, 0},
		"uniform 1Mbit..49Mbit":       {25e6, 1e6, 49e6, 0},
		"loguniform 1Mbit..100Mbit":   {10e6, 1e6, 100e6, math.Log(100) / math.Sqrt(12)},
		"list 1Mbit 5Mbit 25Mbit":     {5e6, 1e6, 25e6, math.Log(5) * math.Sqrt(2.0/3)},
		"loguniform 10Mbit..10.1Mbit": {10.05e6, 10e6, 10.1e6, 0},
	} {
		v, err := SpeedsOf(text)
		if err != nil {
			t.Fatal(err)
		}
		draw := func(n int) []BitRate {
			r := rand.New(rand.NewPCG(1, 2))
			return v.Draw(n, r.Float64)
		}
		rates := draw(n)
		if !slices.Equal(rates[:7], draw(7)) {
			t.Errorf("%s: seven peers have not what the first of many have", text)
		}
		mean, square := 0.0, 0.0
		for _, r := range rates {
			mean += math.Log(float64(r)) / n
		}
		for _, r := range rates {
			square += math.Pow(math.Log(float64(r))-mean, 2) / n
		}
		if sd := math.Sqrt(square); want.sd > 0 && math.Abs(sd/want.sd-1) > 0.03 {
			t.Errorf("%s: standard deviation of the logarithms %g, want %g", text, sd, want.sd)
		}
		slices.Sort(rates)
		if m := float64(rates[n/2]); math.Abs(m/want.median-1) > 0.05 {
			t.Errorf("%s: median %g, want %g", text, m, want.median)
		}
		if lowest, highest := float64(rates[0]), float64(rates[n-1]); lowest < 0.999*want.lowest || highest > 1.001*want.highest || highest < 0.8*want.highest {
			t.Errorf("%s: from %g to %g, want %g to %g", text, lowest, highest, want.lowest, want.highest)
		}
	}
	for _, r := range (Speeds{}).Draw(3, func() float64 { t.Error("asked for chance"); return 0 }) {
		if r != 0 {
			t.Errorf("link: %v", r)
		}
	}
}

// Swarms of format 1 have their rate up in their own section.
func TestRateUpOfOldPlans(t *testing.T) {
	p, err := ReadPlan([]byte(`{"format": 1,
		"experiment": {"scenario": "disseminate", "link": {"rate": [20e6]}, "disseminate": {"up": [0, 5e6]}},
		"cells": [{"factors": [{"path": "disseminate.up", "value": "5Mbit"}], "link": {"rate": 20e6}, "disseminate": {"nodes": 4, "up": 5e6}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	c := p.Cells[0]
	if c.Link.UpRate() != 5e6 || c.Link.DownRate() != 20e6 || c.Factors[0].Path != "link.up" || levelsOf[BitRate](&p.Experiment, "link.up")[1] != 5e6 {
		t.Errorf("%+v of %+v", c, p.Experiment)
	}
}
