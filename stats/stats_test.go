package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.IsNaN(want) && math.IsNaN(got) || got == want {
		return
	}
	if !(math.Abs(got-want) <= 1e-4*math.Abs(want)+1e-12) {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

func upTo(n int) []float64 {
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = float64(n - i)
	}
	return xs
}

func TestMedian(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		xs   []float64
		want float64
	}{
		{nil, math.NaN()},
		{[]float64{3}, 3},
		{[]float64{3, 1}, 2},
		{[]float64{3, 1, 2}, 2},
		{[]float64{4, 1, 3, 2}, 2.5},
		{[]float64{1, math.NaN()}, math.NaN()},
		{[]float64{1, 2, inf}, 2},
		{[]float64{1, inf, inf}, inf},
		{[]float64{1, inf, inf, inf}, inf},
		{[]float64{math.MaxFloat64, math.MaxFloat64}, math.MaxFloat64},
	} {
		near(t, "median", Median(c.xs), c.want)
	}
	xs := []float64{3, 1, 2}
	Median(xs)
	if !slices.Equal(xs, []float64{3, 1, 2}) {
		t.Error("Median changed its argument")
	}
}

// The table in Conover (1999) and other textbooks: ranks and confidence of the 95 % interval of the
// median.
func TestMedianIntervalTable(t *testing.T) {
	for _, c := range []struct {
		n, k int
		conf float64
	}{
		{6, 1, 0.96875}, {7, 1, 0.984375}, {8, 1, 0.9921875}, {9, 2, 0.9609375}, {10, 2, 0.978515625},
		{11, 2, 0.98828125}, {12, 3, 0.961425781}, {15, 4, 0.964843750}, {20, 6, 0.958610535}, {25, 8, 0.956714},
	} {
		i := MedianCI(upTo(c.n), 0.95)
		if i.Lo != float64(c.k) || i.Hi != float64(c.n+1-c.k) || i.N != c.n {
			t.Errorf("n=%d: %+v, want from the value %d to %d", c.n, i, c.k, c.n+1-c.k)
		}
		near(t, "confidence", i.Conf, c.conf)
	}
}

func TestMedianIntervalOfTooFew(t *testing.T) {
	for n, conf := range map[int]float64{1: 0.95, 5: 0.95, 7: 0.99} {
		if i := MedianCI(upTo(n), conf); i.Bounded() || i.Conf != 1 {
			t.Errorf("n=%d: %+v", n, i)
		}
	}
	for conf, needed := range map[float64]int{0.95: 6, 0.99: 8} {
		if n := minMedianN(conf); n != needed || !MedianCI(upTo(n), conf).Bounded() {
			t.Errorf("%v: %d values are needed, want %d", conf, n, needed)
		}
	}
	if i := MedianCI(upTo(5), 0.9); !i.Bounded() || i.Conf != 0.9375 {
		t.Errorf("n=5 at 90 %%: %+v", i)
	}
	if i := MedianCI(nil, 0.95); !math.IsNaN(i.Mid) || i.Bounded() {
		t.Errorf("no values: %+v", i)
	}
}

// p-values of R's wilcox.test and of the published tables.
func TestMannWhitneyTable(t *testing.T) {
	for _, c := range []struct {
		x, y []float64
		want float64
	}{
		{[]float64{1, 2, 3}, []float64{4, 5, 6}, 0.1},
		{[]float64{1, 2, 3, 4, 5}, []float64{6, 7, 8, 9, 10}, 2. / 252},
		{[]float64{6, 7, 8, 9, 10}, []float64{1, 2, 3, 4, 5}, 2. / 252},
		{[]float64{1, 2, 3, 4, 6}, []float64{5, 7, 8, 9, 10}, 4. / 252}, // U = 1
		{[]float64{1, 4}, []float64{2, 3}, 1},
		{[]float64{1, 1, 1}, []float64{1, 1, 1}, 1},
		{[]float64{1, 1, 2}, []float64{2, 3, 3}, 0.2}, // ties: 4 of 20 divisions are at least as far from the mean
		{nil, []float64{1}, math.NaN()},
		{[]float64{math.NaN()}, []float64{1}, math.NaN()},
	} {
		near(t, "p", MannWhitney(c.x, c.y), c.want)
	}
	for n, want := range map[int]float64{3: 0.1, 4: 2. / 70, 5: 2. / 252} {
		near(t, "smallest p", MinP(n, n), want)
	}
}

// For sizes at which both are defined, they must agree.
func TestMannWhitneyApproximationMeetsTheExact(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		x, y := sample(r, 22, shapes[0].draw), sample(r, 24, shapes[0].draw)
		ranks, w := doubledRanks(x, y)
		exact, normal := rankSumExact(ranks, 22, w), rankSumNormal(ranks, 22, w)
		if math.Abs(exact-normal) > 0.01 {
			t.Fatalf("exact %v, normal %v", exact, normal)
		}
	}
}

func TestHolm(t *testing.T) {
	got := Holm([]float64{0.04, 0.01, math.NaN(), 0.03, 0.005})
	for i, want := range []float64{0.06, 0.03, math.NaN(), 0.06, 0.02} {
		near(t, "adjusted", got[i], want)
	}
	near(t, "at most 1", Holm([]float64{0.9, 0.8})[0], 1)
	if len(Holm(nil)) != 0 {
		t.Error("of nothing something")
	}
}

// R: binom.test(k, n)$conf.int.
func TestProportionTable(t *testing.T) {
	for _, c := range []struct {
		k, n   int64
		lo, hi float64
	}{
		{0, 10, 0, 0.3084971},
		{10, 10, 0.6915029, 1},
		{5, 10, 0.1870860, 0.8129140},
		{1, 20, 0.001265089, 0.2487328},
		{995, 1000, 0.9883691, 0.9983748},
	} {
		i := Proportion(c.k, c.n, 0.95)
		near(t, "low end", i.Lo, c.lo)
		near(t, "high end", i.Hi, c.hi)
	}
}

func TestPercentileRefuses(t *testing.T) {
	for _, c := range []struct {
		q    float64
		need int64
	}{{0.5, 10}, {0.9, 10}, {0.1, 10}, {0.95, 20}, {0.99, 100}, {0.01, 100}, {0.999, 1000}, {1, math.MaxInt64},
		{0, math.MaxInt64}, {math.NaN(), math.MaxInt64}} {
		if got := PercentileN(c.q); got != c.need {
			t.Errorf("percentile %v needs %d, want %d", c.q, got, c.need)
		}
	}
}

func TestRatio(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	x, y := sample(r, 30, shapes[1].draw), sample(r, 30, shapes[1].draw)
	a := Ratio(x, y, 0.95)
	near(t, "estimate", a.Mid, Median(x)/Median(y))
	if !a.Contains(a.Mid) || !a.Bounded() {
		t.Errorf("%+v", a)
	}
	slices.Reverse(x)
	if c := Ratio(x, y, 0.95); c != a {
		t.Error("the order of the values matters")
	}

	if five := Ratio(upTo(5), upTo(5), 0.95); five.Conf != 0.9375 || !five.Bounded() ||
		!strings.Contains(five.Warn, "93.75 %") {
		t.Errorf("n=5: %+v", five)
	}
	for name, i := range map[string]Interval{
		"4 values":          Ratio(upTo(4), upTo(9), 0.95),
		"zero":              Ratio(upTo(9), make([]float64, 9), 0.95),
		"positive, finite":  Ratio(upTo(9), []float64{-1, -1, -1, -1, -1, -1}, 0.95),
		"no values":         Ratio(nil, upTo(9), 0.95),
		"positive, finite ": Ratio(upTo(9), []float64{math.Inf(1), math.Inf(1), math.Inf(1), 1, 2}, 0.95),
	} {
		if i.Bounded() || i.Warn == "" && name != "no values" {
			t.Errorf("%s: %+v", name, i)
		}
	}
	// A few infinite values do not make the interval unbounded.
	if i := Ratio([]float64{1, 1, 1, 1, 1, 1, 1, 1, math.Inf(1)}, upTo(9), 0.95); !i.Bounded() {
		t.Errorf("one infinite value: %+v", i)
	}
}
