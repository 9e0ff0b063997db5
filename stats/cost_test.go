package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// exactly measures a system without noise.
func exactly(c costTruth) []CostPoint {
	c.noise, c.floor, c.outliers, c.misfit = 0, 0, 0, 0
	return c.measure(rand.New(rand.NewPCG(1, 1)))
}

func TestCostOfExactTimes(t *testing.T) {
	truth := costTruth{a: 0.02, r: 4, b: 1e-7, sizes: ladder(5), rtts: study(), trials: 3}
	points := exactly(truth)
	m, err := FitCost(points, 0.95)
	must(t, err)
	near(t, "A", m.A.Mid, truth.a)
	near(t, "B", m.B.Mid, truth.b)
	near(t, "R", m.R.Mid, truth.r)
	if !m.Holds || m.Why != "" || m.Points != 75 {
		t.Errorf("%+v", m)
	}
	near(t, "time", m.Predict(0.03, 5e5), 0.02+4*0.03+0.05)
	if len(m.Residual) != len(points) ||
		slices.ContainsFunc(m.Residual, func(r float64) bool { return math.Abs(r) > 1e-4 }) {
		t.Errorf("residuals %v", m.Residual)
	}
}

// Residuals belong to the points in their order, regardless of the numbers of their cells.
func TestCostResidualsAreInTheOrderOfThePoints(t *testing.T) {
	points := exactly(costTruth{a: 0.02, r: 4, b: 1e-7, sizes: ladder(5), rtts: study(), trials: 6})
	for i := range points {
		points[i].Cell = 1000 - 7*points[i].Cell
	}
	points[17].Time *= 3
	rand.New(rand.NewPCG(8, 8)).Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
	m, err := FitCost(points, 0.95)
	must(t, err)
	for i, p := range points {
		if got, want := m.Residual[i], p.Time/m.Predict(p.RTT, p.Size)-1; got != want {
			t.Fatalf("residual %d is %v, want %v", i, got, want)
		}
	}
	near(t, "of the outlier", slices.Max(m.Residual), 2)
}

func TestCostWithoutVariation(t *testing.T) {
	truth := costTruth{a: 0.02, r: 4, b: 1e-7, sizes: ladder(5), rtts: milliseconds(10), trials: 6, noise: 0.03}
	rng := rand.New(rand.NewPCG(6, 6))
	points := truth.measure(rng)
	for i := range points { // as measured: no two round trips are exactly equal
		points[i].RTT *= 1 + 0.01*rng.Float64()
	}
	m, err := FitCost(points, 0.95)
	must(t, err)
	if r := m.R; r.Bounded() || !math.IsNaN(r.Mid) {
		t.Errorf("one round trip: R %+v", r)
	}
	if !m.A.Bounded() || math.Abs(m.A.Mid/0.06-1) > 0.05 || !m.B.Contains(1e-7) {
		t.Errorf("one round trip: A %+v, B %+v", m.A, m.B)
	}
	if p := m.Predict(0.010, 1e6); math.Abs(p/0.16-1) > 0.05 {
		t.Errorf("one round trip: predicts %v", p)
	}

	truth.sizes, truth.rtts = []float64{1e6}, study()
	m, err = FitCost(truth.measure(rng), 0.95)
	must(t, err)
	if m.B.Bounded() || !math.IsNaN(m.B.Mid) || !m.A.Bounded() {
		t.Errorf("one size: A %+v, B %+v", m.A, m.B)
	}
	if r := m.R; !r.Contains(4) || !r.Bounded() {
		t.Errorf("one size: R %+v", r)
	}
}

func TestCostOfIdenticalPoints(t *testing.T) {
	points := slices.Repeat([]CostPoint{{RTT: 0.01, Size: 100, Time: 0.5}}, 6)
	m, err := FitCost(points, 0.95)
	must(t, err)
	near(t, "A", m.A.Mid, 0.5)
	if m.B.Bounded() || m.R.Bounded() || m.Holds || !strings.Contains(m.Why, "none is left") {
		t.Errorf("%+v", m)
	}
}

func TestCostRefuses(t *testing.T) {
	good := exactly(costTruth{a: 0.02, r: 4, b: 1e-7, sizes: ladder(3), rtts: study(), trials: 2})
	with := func(change func(p *CostPoint)) []CostPoint {
		points := slices.Clone(good)
		change(&points[5])
		return points
	}
	for _, c := range []struct {
		points []CostPoint
		says   string
	}{
		{nil, "no points"},
		{with(func(p *CostPoint) { p.RTT = -1 }), "round trip of -1 s"},
		{with(func(p *CostPoint) { p.RTT = math.NaN() }), "round trip of NaN s"},
		{[]CostPoint{{RTT: 0, Size: 1, Time: 1, Cell: 0}, {RTT: 0.08, Size: 1e6, Time: 2, Cell: 1}},
			"2 points for the 3 parameters"},
		{[]CostPoint{{RTT: 0, Size: 1, Time: 1, Cell: 0}, {RTT: 0, Size: 1, Time: 1.1, Cell: 0},
			{RTT: 0.08, Size: 1e6, Time: 2, Cell: 1}, {RTT: 0.08, Size: 1e6, Time: 2.1, Cell: 1}},
			"2 cells for 3 parameters"},
		{[]CostPoint{{RTT: 0, Size: 0, Time: 1, Cell: 0}, {RTT: 0.02, Size: 1e6, Time: 2, Cell: 1},
			{RTT: 0.04, Size: 2e6, Time: 3, Cell: 2}, {RTT: 0.08, Size: 4e6, Time: 5, Cell: 3}},
			"change together"},
	} {
		m, err := FitCost(c.points, 0.95)
		if err == nil || !strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), "cost: ") {
			t.Errorf("want an error that says %q, got %v", c.says, err)
		}
		if !math.IsNaN(m.Predict(0.01, 1)) {
			t.Errorf("%s: nothing was fitted, yet it predicts", c.says)
		}
	}
}

func TestCostSaysWhereItDoesNotHold(t *testing.T) {
	truth := costTruth{a: 0.05, r: 3, b: 1e-7, sizes: ladder(8), rtts: study(), trials: 6, noise: 0.02}
	points := truth.measure(rand.New(rand.NewPCG(9, 9)))
	for i, p := range points {
		if p.Size == 1e7 && p.RTT == 0.08 {
			points[i].Time *= 1.4
		}
	}
	m, err := FitCost(points, 0.95)
	must(t, err)
	if m.Holds || !strings.Contains(m.Why, "worst: 10.0 MB at 80 ms: +") {
		t.Errorf("holds %v: %q", m.Holds, m.Why)
	}
	// One cell of forty does not affect the fit of the others.
	if !m.A.Contains(0.05) || !m.R.Contains(3) || math.Abs(m.B.Mid/1e-7-1) > 0.03 {
		t.Errorf("%+v", m)
	}

	truth.trials = 1
	if m, err = FitCost(truth.measure(rand.New(rand.NewPCG(9, 9))), 0.95); err != nil || m.Holds ||
		!strings.Contains(m.Why, "no cell was repeated") {
		t.Errorf("nothing repeated: %v %q (%v)", m.Holds, m.Why, err)
	}
}

// For any measurements in any design, the result is an error message or intervals around their
// estimates, never a panic.
func TestCostOfAnything(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 11))
	fitted := 0
	for range 1000 {
		cells := 1 + rng.IntN(12)
		var points []CostPoint
		for cell := range cells {
			rtt, size := float64(rng.IntN(4))*0.02, math.Round(math.Pow(10, float64(rng.IntN(8))))*float64(rng.IntN(2))
			for range 1 + rng.IntN(4) {
				points = append(points, CostPoint{rtt, size, math.Pow(10, 18*rng.Float64()-9), cell, 0})
				if rng.IntN(3) == 0 { // a coarse clock
					points[len(points)-1].Time = points[0].Time
				}
			}
		}
		m, err := FitCost(points, 0.95)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "cost: ") {
				t.Error(err)
			}
			continue
		}
		fitted++
		for _, i := range []Interval{m.A, m.R, m.B} {
			if math.IsNaN(i.Lo) || math.IsNaN(i.Hi) || i.Lo > i.Mid || i.Hi < i.Mid || math.IsNaN(i.Mid) &&
				i.Bounded() || math.IsInf(i.Mid, 0) {
				t.Fatalf("%+v of %+v", m, points)
			}
		}
		if !m.Holds && m.Why == "" {
			t.Fatalf("does not hold, without a reason: %+v", m)
		}
	}
	if fitted < 300 {
		t.Errorf("only %d of 1000 could be fitted", fitted)
	}
}
