package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// noises are factors with median 1, as the latencies and rates of systems have
// them: relative standard deviation cv, for n neighbours in time.
var noises = []struct {
	name string
	draw func(r *rand.Rand, n int, cv float64) []float64
}{
	{"white", func(r *rand.Rand, n int, cv float64) []float64 {
		return factors(n, func(int) float64 { return max(1+cv*r.NormFloat64(), 0.01) })
	}},
	{"lognormal", func(r *rand.Rand, n int, cv float64) []float64 {
		return factors(n, func(int) float64 { return math.Exp(cv * r.NormFloat64()) })
	}},
	{"AR(1) 0.7", func(r *rand.Rand, n int, cv float64) []float64 {
		e := autoregression(r, n, 0.7, normal)
		return factors(n, func(i int) float64 { return math.Exp(cv * e[i]) })
	}},
	{"outliers", func(r *rand.Rand, n int, cv float64) []float64 {
		return factors(n, func(int) float64 {
			v := math.Exp(cv * (r.NormFloat64() - 0.066)) // one in twenty is above: the median is moved
			if r.Float64() < 0.05 {
				v *= 2 + 8*r.Float64()
			}
			return v
		})
	}},
}

func factors(n int, draw func(i int) float64) []float64 {
	f := make([]float64, n)
	for i := range f {
		f[i] = draw(i)
	}
	return f
}

func normal(r *rand.Rand) float64 { return r.NormFloat64() }

// autoregression of first order, with the variance of what is drawn.
func autoregression(r *rand.Rand, n int, phi float64, draw func(*rand.Rand) float64) []float64 {
	e := make([]float64, n)
	v := draw(r)
	for i := range e {
		e[i] = v
		v = phi*v + math.Sqrt(1-phi*phi)*draw(r)
	}
	return e
}

// growthTruth is a class with known parameters; x goes from 0 to 1000.
type growthTruth struct {
	class  GrowthClass
	y      func(u float64) float64 // of x/1000
	params []float64
}

var growthTruths = []growthTruth{
	{Constant, func(float64) float64 { return 1 }, []float64{1}},
	{Linear, func(u float64) float64 { return 1 + 2*u }, []float64{1, 0.002}},
	{Exponential, func(u float64) float64 { return math.Exp(3 * u) }, []float64{1, 0.003}},
	{Saturating, func(u float64) float64 { return 3 - 2*math.Exp(-4*u) }, []float64{1, 3, 250}},
	{Saturating, func(u float64) float64 { return 1 + 4*math.Exp(-5*u) }, []float64{5, 1, 200}},
}

func (g growthTruth) perX() float64 { return g.y(1)/g.y(0) - 1 }

func (g growthTruth) series(r *rand.Rand, n int, e []float64) (x, y []float64) {
	x, y = make([]float64, n), make([]float64, n)
	for i := range x {
		u := float64(i) / float64(n-1)
		x[i], y[i] = 1000*u, g.y(u)*e[i]
	}
	return x, y
}

// growthRates are how often things came out.
type growthRates struct {
	series, right, wrong, untold int
	few                          int // of these untold: too few independent points
	perX, perXOf                 int // covered, of those that have an interval
	params, paramsOf             int
}

func (g *growthRates) add(t testing.TB, truth growthTruth, x, y []float64) {
	f, err := Growth(x, y)
	if err != nil {
		t.Fatal(err)
	}
	g.series++
	count(&g.right, f.Class == truth.class)
	count(&g.untold, f.Class == Unclear)
	count(&g.few, f.Best == "")
	count(&g.wrong, f.Class != Unclear && f.Class != truth.class)
	if f.PerX.Bounded() {
		g.perXOf++
		count(&g.perX, f.PerX.Contains(truth.perX()))
	}
	if f.Class == truth.class {
		for i, want := range truth.params {
			g.paramsOf++
			count(&g.params, f.Params[i].Interval.Contains(want))
		}
	}
}

func (g *growthRates) join(o growthRates) {
	g.series += o.series
	g.right += o.right
	g.wrong += o.wrong
	g.untold += o.untold
	g.few += o.few
	g.perX += o.perX
	g.perXOf += o.perXOf
	g.params += o.params
	g.paramsOf += o.paramsOf
}

func percent(n, of int) float64 { return 100 * float64(n) / float64(max(of, 1)) }

func (g growthRates) String() string {
	return fmt.Sprintf("right %.1f %%, wrong %.1f %%, unclear %.1f %% (of too few points %.1f %%); covered: change %.1f %%, parameters %.1f %%",
		percent(g.right, g.series), percent(g.wrong, g.series), percent(g.untold, g.series), percent(g.few, g.series), percent(g.perX, g.perXOf), percent(g.params, g.paramsOf))
}

func simulateGrowth(t testing.TB, truth growthTruth, noise int, cv float64, n, times int) growthRates {
	r := rand.New(rand.NewPCG(uint64(n), uint64(1000*cv)))
	var g growthRates
	for range times {
		x, y := truth.series(r, n, noises[noise].draw(r, n, cv))
		g.add(t, truth, x, y)
	}
	return g
}

// long is how often a simulation is repeated.
func long(times int) int {
	if testing.Short() {
		return max(times/5, 2)
	}
	return times
}

func TestGrowthClassIsFoundOrUnclear(t *testing.T) {
	for k, truth := range growthTruths {
		for i, noise := range noises {
			t.Run(fmt.Sprint(truth.class, k, " ", noise.name), func(t *testing.T) {
				t.Parallel()
				var all growthRates
				for _, cv := range []float64{0.05, 0.2, 0.5} {
					for _, n := range []int{30, 120, 500, 2000} {
						g := simulateGrowth(t, truth, i, cv, n, long(4))
						all.join(g)
						// Little noise, many points: it has to be told.
						if cv == 0.05 && n >= 500 && g.right < g.series*8/10 {
							t.Errorf("cv %v, n %d: %v", cv, n, g)
						}
					}
				}
				t.Log(all)
				if limit := 5 + 300*math.Sqrt(0.05*0.95/float64(all.series)); percent(all.wrong, all.series) > limit {
					t.Errorf("wrong in %d of %d", all.wrong, all.series)
				}
				if limit := 90 - 300*math.Sqrt(0.1*0.9/float64(all.perXOf)); percent(all.perX, all.perXOf) < limit {
					t.Errorf("the interval of the change covers in %d of %d", all.perX, all.perXOf)
				}
				if limit := 90 - 300*math.Sqrt(0.1*0.9/float64(max(all.paramsOf, 1))); percent(all.params, all.paramsOf) < limit {
					t.Errorf("the intervals of the parameters cover in %d of %d", all.params, all.paramsOf)
				}
			})
		}
	}
}

// BenchmarkGrowthSimulation gives the rates of docs/methodology.md: run it with
// -benchtime=1x.
func BenchmarkSimulatedGrowth(b *testing.B) {
	for range b.N {
		for _, truth := range growthTruths {
			for i, noise := range noises {
				var all growthRates
				for _, cv := range []float64{0.05, 0.2, 0.5} {
					for _, n := range []int{30, 120, 500, 2000} {
						g := simulateGrowth(b, truth, i, cv, n, 50)
						b.Logf("%s, %s, cv %v, n %d: %v", truth.class, noise.name, cv, n, g)
						all.join(g)
					}
				}
				b.Logf("%s, %s, all: %v", truth.class, noise.name, all)
			}
		}
	}
}
