package findings

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// drifting makes cells of a system whose blocks are as given, with noise.
func drifting(rng *rand.Rand, cells int, noise float64, level ...float64) Drifting {
	d := Drifting{System: "sys", Against: "base"}
	for range cells {
		var row []float64
		for _, v := range level {
			row = append(row, v*math.Exp(noise*rng.NormFloat64()))
		}
		d.Cells = append(d.Cells, row)
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
	d.Cells[1][2] = math.NaN()
	return d
}
