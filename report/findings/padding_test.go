package findings

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/stats"
)

func storedSizes(rng *rand.Rand, sizes []float64, noise float64, takes func(s float64) float64) Stored {
	by := map[float64][]float64{}
	for _, s := range sizes {
		for range 5 {
			by[s] = append(by[s], takes(s)*math.Exp(noise*rng.NormFloat64()))
		}
	}
	lots, n := Sized(by)
	return Stored{Name: "sia, put", What: "absolute bytes", Lots: lots, N: n}
}

var someSizes = []float64{1, 1e3, 1e5, 1e6, 3e6, 1e7, 2e7, 5e7}

func TestPadding(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	f := Padding([]Stored{
		storedSizes(rng, someSizes, 0.01, func(s float64) float64 { return 3 * (4 << 20) * math.Ceil(s/(4<<20)) }),
		storedSizes(rng, someSizes, 0.01, func(s float64) float64 { return 3 * (s + 500) }),
	})
	if len(f) != 1 || len(f[0].Evidence) != 1 || f[0].Try == "" {
		t.Fatalf("%+v", f)
	}
	for _, want := range []string{"units of 4 MiB", "8 sizes in 40 values", "for sure from objects of 40.8 MB on"} {
		if !strings.Contains(f[0].Evidence[0], want) {
			t.Errorf("%q lacks %q", f[0].Evidence[0], want)
		}
	}
}

// Where sizes leave open which unit it is, ranges are told, and no warning is given
// that is not sure.
func TestPaddingTellsRanges(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	sizes := []float64{1, 1e2, 1e4, 1e6, 1e7, 1.1e7, 1.15e7, 2.45e7, 2.48e7}
	f := Padding([]Stored{storedSizes(rng, sizes, 0.005, func(s float64) float64 { return 3 * 5e6 * math.Ceil(s/5e6) })})
	if len(f) != 1 {
		t.Fatalf("%+v", f)
	}
	q := stats.Interval{Mid: 8 << 20, Lo: 5e6, Hi: 9.8e6}
	if s := unit(q); s != "5.00 to 9.80 MB" && s != "5.00 MB to 9.80 MB" {
		t.Error(s)
	}
	if s := within(stats.Interval{Mid: 0.68, Lo: 0.6, Hi: 0.84}, "%"); s != "60 % to 84 %" {
		t.Error(s)
	}
	if s := within(stats.Interval{Mid: 3, Lo: 2.95, Hi: 3.05}, "×"); s != "3.00×" && s != "3×" {
		t.Error(s)
	}
	if got, most := fromSize(stats.QuantumFit{Quantum: q}), 9*9.8e6; math.Abs(got/most-1) > 1e-9 {
		t.Errorf("from %g on, not %g", got, most)
	}
}

func TestPaddingOfNothing(t *testing.T) {
	const runs = 300
	said := 0
	for seed := range uint64(runs) {
		rng := rand.New(rand.NewPCG(seed, 2))
		beside := math.Pow(10, 5*rng.Float64())
		if f := Padding([]Stored{storedSizes(rng, someSizes, 0.1*rng.Float64(), func(s float64) float64 { return 3 * (s + beside) })}); f != nil {
			said++
		}
	}
	if said > runs/100 {
		t.Errorf("said %d times in %d", said, runs)
	}
	if f := Padding(nil); f != nil {
		t.Errorf("%+v", f)
	}
}
