package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// shapes are distributions of measurements: symmetric, skewed, and heavy-tailed (with infinite
// variance).
var shapes = []struct {
	name   string
	median float64
	draw   func(*rand.Rand) float64
}{
	{"normal", 10, func(r *rand.Rand) float64 { return 10 + r.NormFloat64() }},
	{"lognormal", 1, func(r *rand.Rand) float64 { return math.Exp(r.NormFloat64()) }},
	{"pareto", math.Pow(2, 1/1.5), func(r *rand.Rand) float64 { return math.Pow(1-r.Float64(), -1/1.5) }},
}

// repetitions is the number of repetitions of each experiment: small, unless `make bench` sets
// more.
var repetitions = func() int {
	if n, err := strconv.Atoi(os.Getenv("PLIMSOLL_SIMULATIONS")); err == nil {
		return n
	}
	return 250
}()

func sample(r *rand.Rand, n int, draw func(*rand.Rand) float64) []float64 {
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = draw(r)
	}
	return xs
}

// share repeats an experiment and returns the share of repetitions in which it was true.
func share(seed uint64, experiment func(r *rand.Rand, i int) bool) float64 {
	r := rand.New(rand.NewPCG(seed, 7))
	n := 0
	for i := range repetitions {
		count(&n, experiment(r, i))
	}
	return float64(n) / float64(repetitions)
}

// simulationError returns three standard errors of an estimated share p.
func simulationError(p float64) float64 { return 3 * math.Sqrt(p*(1-p)/float64(repetitions)) }

// atMost, atLeast and about check a share of the repetitions.
func atMost(t testing.TB, what string, got, most float64) {
	t.Helper()
	if got > most+simulationError(most) {
		t.Errorf("%s: in %.4f, want at most %.4f", what, got, most)
	}
}

func atLeast(t testing.TB, what string, got, least float64) {
	t.Helper()
	if got < least-simulationError(least) {
		t.Errorf("%s: in %.4f, want at least %.4f", what, got, least)
	}
}

func about(t testing.TB, what string, got, want float64) {
	t.Helper()
	atMost(t, what, got, want)
	atLeast(t, what, got, want)
}

// slack returns by how much limits made for a thousand repetitions are widened for fewer.
func slack() float64 { return max(0, simulationError(0.95)-3*math.Sqrt(0.95*0.05/1000)) }

// within checks that n is between the shares lo and hi of the repetitions.
func within(t *testing.T, what string, n int, lo, hi float64) {
	t.Helper()
	if got := float64(n) / float64(repetitions); got < lo-slack() || got > hi+slack() {
		t.Errorf("%s: in %.4f, want %.2f to %.2f", what, got, lo, hi)
	}
}

func TestMedianIntervalCoversAsItSays(t *testing.T) {
	for _, shape := range shapes {
		for _, n := range []int{6, 7, 10, 21, 100} {
			t.Run(fmt.Sprint(shape.name, n), func(t *testing.T) {
				said := 0.0
				covered := share(uint64(100+n), func(r *rand.Rand, _ int) bool {
					i := MedianCI(sample(r, n, shape.draw), 0.95)
					said = i.Conf
					return i.Contains(shape.median)
				})
				if said < 0.95 {
					t.Errorf("confidence %.4f, below what was asked for", said)
				}
				about(t, "covers", covered, said) // exact, so neither lower nor higher
			})
		}
	}
}

func TestRatioIntervalCoversAtLeastAsItSays(t *testing.T) {
	const injected = 1.3
	constant := func(*rand.Rand) float64 { return 1 }
	for _, shape := range shapes {
		for _, n := range []int{5, 7, 11, 30} {
			t.Run(fmt.Sprint(shape.name, n), func(t *testing.T) {
				t.Parallel()
				said := 0.0
				covered := share(1, func(r *rand.Rand, _ int) bool {
					x, y := sample(r, n, shape.draw), sample(r, n, shape.draw)
					for j := range x {
						x[j] *= injected
					}
					ratio := Ratio(x, y, 0.95)
					said = ratio.Conf
					return ratio.Contains(injected)
				})
				atLeast(t, "covers where both vary", covered, said)
				covered = share(2, func(r *rand.Rand, _ int) bool {
					ratio := Ratio(sample(r, n, shape.draw), sample(r, n+3, constant), 0.95)
					said = ratio.Conf
					return ratio.Contains(shape.median)
				})
				atLeast(t, "covers where one varies", covered, said)
			})
		}
	}
}

func TestMannWhitneyRejectsAtMostAlpha(t *testing.T) {
	const alpha = 0.05
	for _, shape := range shapes {
		for _, n := range [][2]int{{4, 4}, {5, 5}, {6, 9}, {30, 30}} {
			rejected := share(4, func(r *rand.Rand, _ int) bool {
				return MannWhitney(sample(r, n[0], shape.draw), sample(r, n[1], shape.draw)) <= alpha
			})
			atMost(t, fmt.Sprintf("%s, n=%v: true hypotheses are rejected", shape.name, n), rejected, alpha)
			found := share(5, func(r *rand.Rand, _ int) bool {
				x, y := sample(r, n[0], shape.draw), sample(r, n[1], shape.draw)
				for i := range x {
					x[i] += 1000
				}
				return MannWhitney(x, y) <= alpha
			})
			if found < 0.99 {
				t.Errorf("%s, n=%v: finds %.4f of huge differences", shape.name, n, found)
			}
		}
	}
	// Ties: counts of few values.
	rejected := share(6, func(r *rand.Rand, _ int) bool {
		die := func(r *rand.Rand) float64 { return float64(r.IntN(3)) }
		return MannWhitney(sample(r, 6, die), sample(r, 6, die)) <= alpha
	})
	atMost(t, "ties: true hypotheses are rejected", rejected, alpha)
}

// One of ten comparisons has a difference, nine have none: the probability of rejecting any of the
// nine must stay at alpha, and most real findings must remain.
func TestHolmKeepsTheFamilywiseError(t *testing.T) {
	const alpha = 0.05
	found := 0
	wrong := share(8, func(r *rand.Rand, _ int) bool {
		normal := shapes[0].draw
		ps := make([]float64, 10)
		for i := range ps {
			x, y := sample(r, 12, normal), sample(r, 12, normal)
			if i == 3 {
				for j := range x {
					x[j] += 4
				}
			}
			ps[i] = MannWhitney(x, y)
		}
		ps = Holm(ps)
		count(&found, ps[3] <= alpha)
		return slices.Min(slices.Delete(ps, 3, 4)) <= alpha
	})
	atMost(t, "a true hypothesis of a family is rejected", wrong, alpha)
	if found < repetitions*9/10 {
		t.Errorf("the one difference is found in %d of %d families", found, repetitions)
	}
}

func TestProportionCoversAtLeastAsItSays(t *testing.T) {
	for _, n := range []int64{5, 20, 200} {
		for _, p := range []float64{0.01, 0.5, 0.9, 0.999} {
			covered := share(uint64(n), func(r *rand.Rand, _ int) bool {
				k := 0
				for range n {
					count(&k, r.Float64() < p)
				}
				return Proportion(int64(k), n, 0.95).Contains(p)
			})
			atLeast(t, fmt.Sprintf("n=%d, p=%v: covers", n, p), covered, 0.95)
		}
	}
}

// The trials' true failure rates differ, with a mean of 1 %: the 95 % interval of the share of
// successes contains 99 %, and the lower end of the 90 % interval is seldom above.
func TestClusteredProportionCovers(t *testing.T) {
	const operations = 1000
	for name, failures := range map[string]func(r *rand.Rand) float64{
		"alike":       func(*rand.Rand) float64 { return 0.01 },
		"uniform":     func(r *rand.Rand) float64 { return 0.02 * r.Float64() },
		"exponential": func(r *rand.Rand) float64 { return min(1, 0.01*r.ExpFloat64()) },
		"half fail":   func(r *rand.Rand) float64 { return 0.5 },
	} {
		for _, m := range []int{5, 8, 20} {
			r := rand.New(rand.NewPCG(1, uint64(m)))
			truth := 0.99
			if name == "half fail" {
				truth = 0.5
			}
			covered, above := 0, 0
			for range repetitions {
				trials := make([]Count, m)
				for i := range trials {
					failed := distuv.Binomial{N: operations, P: failures(r), Src: r}.Rand()
					trials[i] = Count{operations - failed, operations}
				}
				count(&covered, ClusteredProportion(trials, false, 0.95).Contains(truth))
				count(&above, ClusteredProportion(trials, false, 0.90).Lo >= truth+0.001)
			}
			// Skewed rates reduce the coverage slightly.
			within(t, fmt.Sprintf("%s, %d trials: covered", name, m), covered, 0.92, 1)
			within(t, fmt.Sprintf("%s, %d trials: above", name, m), above, 0, 0.08)
		}
	}
}
