package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func grow(t *testing.T, x, y []float64) GrowthFit {
	t.Helper()
	f, err := Growth(x, y)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestGrowthOfExactCurves(t *testing.T) {
	for _, truth := range growthTruths {
		x, y := truth.series(nil, 60, factors(60, func(int) float64 { return 1 }))
		f := grow(t, x, y)
		if f.Class != truth.class || !f.Fits {
			t.Errorf("%s: %+v", truth.class, f)
			continue
		}
		for i, want := range truth.params {
			if got := f.Params[i].Value; math.Abs(got/want-1) > 1e-3 {
				t.Errorf("%s: %s is %v, not %v", truth.class, f.Params[i].Name, got, want)
			}
		}
		for _, at := range []float64{0, 300, 1000} {
			if want := truth.y(at / 1000); math.Abs(f.At(at)/want-1) > 1e-3 {
				t.Errorf("%s at %v: %v, not %v", truth.class, at, f.At(at), want)
			}
		}
		if math.Abs(f.PerX.Mid-truth.perX()) > 1e-3*math.Abs(truth.perX()) {
			t.Errorf("%s: changes by %v, not %v", truth.class, f.PerX.Mid, truth.perX())
		}
		sum := 0.0
		for _, w := range f.Weights {
			sum += w
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Errorf("%s: weights %v", truth.class, f.Weights)
		}
	}
}

// The units of x and y, and where x begins, say nothing about a class.
func TestGrowthInOtherUnits(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for _, truth := range growthTruths {
		x, y := truth.series(r, 300, noises[0].draw(r, 300, 0.05))
		a := grow(t, x, y)
		for i := range x {
			x[i] = 1.7e9 + 3600*x[i]
			y[i] *= 1e-6
		}
		b := grow(t, x, y)
		if a.Class != b.Class || math.Abs(a.PerX.Lo-b.PerX.Lo) > 1e-3*(1+math.Abs(a.PerX.Lo)) {
			t.Errorf("%s: %+v\nand %+v", truth.class, a, b)
		}
		if got, want := b.At(x[100])/a.At((x[100]-1.7e9)/3600), 1e-6; math.Abs(got/want-1) > 1e-3 {
			t.Errorf("%s: fitted y changes by %v", truth.class, got)
		}
	}
}

func TestGrowthOfWhatIsNone(t *testing.T) {
	x := factors(50, func(i int) float64 { return float64(i) })
	for name, y := range map[string][]float64{
		"zero":     make([]float64, 50),
		"constant": factors(50, func(int) float64 { return 1e12 }),
	} {
		if f := grow(t, x, y); f.Class != Constant || f.PerX.Lo != 0 || f.PerX.Hi != 0 || f.At(7) != y[7] {
			t.Errorf("%s: %+v", name, f)
		}
	}
	// Around 0 there is no relative change, and none is made up.
	r := rand.New(rand.NewPCG(1, 1))
	f := grow(t, x, factors(50, func(int) float64 { return r.NormFloat64() }))
	if f.Class != Unclear || f.Why == "" {
		t.Errorf("noise around 0: %+v", f)
	}
	// A mixture that no class is: up, and down again.
	f = grow(t, x, factors(50, func(i int) float64 { return 2 + math.Sin(float64(i)/49*math.Pi) + 0.01*r.NormFloat64() }))
	if f.Class != Unclear || f.Fits {
		t.Errorf("a hill: %+v", f)
	}
}

func TestGrowthSaysWhatItCannotTell(t *testing.T) {
	up := factors(9, func(i int) float64 { return float64(i) })
	if f := grow(t, up, up); f.Class != Unclear || !strings.Contains(f.Why, "at least 10") || f.PerX.Bounded() || !math.IsNaN(f.At(1)) {
		t.Errorf("nine points: %+v", f)
	}
	for name, c := range map[string][2][]float64{
		"infinite": {up, {1, 2, 3, 4, math.Inf(1), 5, 6, 7, 8}},
		"NaN in x": {{1, 2, 3, 4, math.NaN(), 5, 6, 7, 8}, up},
		"lengths":  {up, up[1:]},
		"one x":    {make([]float64, 40), factors(40, func(i int) float64 { return float64(i) })},
	} {
		if f, err := Growth(c[0], c[1]); err == nil || !strings.HasPrefix(err.Error(), "growth: ") {
			t.Errorf("%s: %+v, %v", name, f, err)
		}
	}
	// A random walk is worth hardly any independent point: no class.
	wrong := 0
	r := rand.New(rand.NewPCG(2, 2))
	for range 50 {
		v := 100.0
		y := factors(150, func(int) float64 { v += r.NormFloat64(); return v })
		if f := grow(t, factors(150, func(i int) float64 { return float64(i) }), y); f.Class != Unclear {
			wrong++
		}
	}
	if wrong > 10 {
		t.Errorf("a class is told for %d of 50 random walks", wrong)
	}
}

// Bursts of slow answers, a hundred times as slow, one after the other.
func TestGrowthUnderBursts(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for _, truth := range growthTruths {
		x, y := truth.series(r, 3000, noises[0].draw(r, 3000, 0.05))
		for range 30 {
			at := r.IntN(2990)
			for i := at; i < at+6; i++ {
				y[i] *= 100
			}
		}
		if f := grow(t, x, y); f.Class != truth.class {
			t.Errorf("%s: %+v", truth.class, f)
		}
	}
}

func BenchmarkGrowth(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, truth := range growthTruths {
		x, y := truth.series(r, 50_000, noises[2].draw(r, 50_000, 0.2))
		b.Run(string(truth.class), func(b *testing.B) {
			for range b.N {
				if _, err := Growth(slices.Clone(x), slices.Clone(y)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
