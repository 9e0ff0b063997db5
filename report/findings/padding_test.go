package findings

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
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
	for _, want := range []string{"units of 4 MiB", "8 sizes in 40 values", "from objects of 37.7 MB on"} {
		if !strings.Contains(f[0].Evidence[0], want) {
			t.Errorf("%q lacks %q", f[0].Evidence[0], want)
		}
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
