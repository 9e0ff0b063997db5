package findings

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// drifting makes ratios of a system whose blocks are as given, with noise.
func drifting(rng *rand.Rand, cells int, noise float64, level ...float64) Drifting {
	d := Drifting{System: "sys", Against: "base"}
	for range cells {
		var row []float64
		for _, v := range level {
			row = append(row, v*math.Exp(noise*rng.NormFloat64()))
		}
		d.Ratios = append(d.Ratios, row)
	}
	return d
}

func TestDrift(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for name, c := range map[string]struct {
		of   Drifting
		want string // in the evidence; empty: none
	}{
		"falls":                    {drifting(rng, 3, 0.02, 1, 0.97, 0.93, 0.9, 0.87, 0.84), "% from the first block to the last"},
		"falls, of one cell":       {drifting(rng, 1, 0.01, 1, 0.97, 0.93, 0.9, 0.87, 0.84), "% from the first block to the last"},
		"one block differs":        {drifting(rng, 6, 0.02, 1, 1, 1.3, 1, 1, 1), "block 3 at 12"},
		"falls, too little":        {drifting(rng, 3, 0.002, 1, 0.99, 0.98, 0.97, 0.96, 0.95), ""},
		"noise as large":           {drifting(rng, 3, 0.3, 1, 1, 1.1, 1, 1, 1), ""},
		"one block of one cell":    {drifting(rng, 1, 0.02, 1, 1, 1.3, 1, 1, 1), ""},
		"too few blocks":           {drifting(rng, 5, 0.01, 1, 0.8, 0.7), ""},
		"a value missing, falling": {withGap(drifting(rng, 3, 0.02, 1, 0.95, 0.9, 0.85, 0.8, 0.75)), "block 6 at"},
	} {
		d := Drift{Metric: "Throughput", Systems: []Drifting{c.of, drifting(rng, 3, 0.03, 1, 1, 1, 1, 1, 1)}, Seed: 1}
		got := d.Find()
		switch {
		case c.want == "" && got != nil:
			t.Errorf("%s: found %v", name, got)
		case c.want != "" && (len(got) != 1 || len(got[0].Evidence) != 1 || !strings.Contains(got[0].Evidence[0], c.want)):
			t.Errorf("%s: %v, want %q", name, got, c.want)
		}
	}
}

func withGap(d Drifting) Drifting {
	d.Ratios[1][2] = math.NaN()
	return d
}

// A cell's own series is looked at, the baseline's too, whatever blocks have in common.
func TestDriftOfOwnSeries(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	run := func(last float64) []Finding {
		d := Drift{Metric: "Throughput", Seed: 1}
		common := make([]float64, 8)
		for b := range common {
			common[b] = math.Exp(0.05 * rng.NormFloat64())
		}
		for _, s := range []string{"static", "sys"} {
			of := Drifting{System: s}
			for _, where := range []string{"concurrency 1", "concurrency 8", "concurrency 64"} {
				var row []float64
				for b, block := range common {
					x := block * math.Exp(0.03*rng.NormFloat64())
					if s == "static" && where == "concurrency 8" {
						x *= math.Pow(last, float64(b)/7)
					}
					row = append(row, x)
				}
				of.Where, of.Cells = append(of.Where, where), append(of.Cells, row)
			}
			d.Systems = append(d.Systems, of)
		}
		return d.Find()
	}
	wrong := 0
	for range 200 {
		if run(1) != nil {
			wrong++
		}
	}
	// 1 % of 200 are 2, with a standard deviation of 1.4.
	if wrong > 6 {
		t.Errorf("%d of 200 runs without drift", wrong)
	}
	f := run(0.5)
	if len(f) != 1 || len(f[0].Evidence) != 1 || !strings.Contains(f[0].Evidence[0], "static, concurrency 8: -") {
		t.Errorf("%+v", f)
	}
}
