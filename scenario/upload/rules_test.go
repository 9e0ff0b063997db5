package upload

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/collect"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
)

// wallets returns the readings of polls every ten minutes whose sums of wallet and contracts are
// levels.
func wallets(moved float64, levels ...[]int64) *readings {
	w := &readings{last: map[string]*big.Int{system.ReadBalance: big.NewInt(1000)}}
	for i, v := range slices.Concat(levels...) {
		at := float64(600 * i)
		w.wealth = append(w.wealth, entry{at, at + 1, big.NewInt(v), moved})
	}
	return w
}

func TestMoneyThatDoesNotComeBackIsMissing(t *testing.T) {
	times10 := func(v int64) []int64 { return slices.Repeat([]int64{v}, 10) }
	for _, c := range []struct {
		name     string
		polls    *readings
		amount   int64
		from, to float64 // indexes of polls
	}{
		{"constant", wallets(0, times10(1000), times10(1000)), 0, 0, 0},
		{"lost", wallets(0, times10(1000), times10(960)), 40, 9, 10},
		{"lost twice", wallets(0, times10(1000), times10(960), times10(900)), 100, 9, 10},
		{"came back", wallets(0, times10(1000), times10(960), times10(1000)), 0, 0, 0},
		{"under way at the end", wallets(0, times10(1000), []int64{1000, 960, 960}), 0, 0, 0},
		{"came in", wallets(0, times10(1000), times10(1100)), 0, 0, 0},
		{"too few polls", wallets(0, []int64{1000, 960, 960}), 0, 0, 0},
		{"moves between two calls of a poll", wallets(10, times10(1000), times10(990)), 0, 0, 0},
	} {
		amount, from, to := c.polls.lost()
		if amount == nil {
			amount = new(big.Int)
		}
		if amount.Int64() != c.amount || from.start != 600*c.from || to.start != 600*c.to {
			t.Errorf("%s: %d from %v to %v", c.name, amount, from.start, to.start)
		}
	}
}

func TestCounters(t *testing.T) {
	for _, c := range []struct {
		values   []float64
		from, to float64
		fell     bool
	}{
		{[]float64{1, 2, 3, 3, 4, 5, 6, 7}, 0, 0, false},
		{[]float64{100, 200, 50, 60, 70, 80, 90}, 1, 2, true},
		{[]float64{100, 200, 50, 210, 220, 230, 240, 250}, 0, 0, false}, // one poll saw less
		{[]float64{100, 200, 50, 60}, 0, 0, false},                      // too short
		{[]float64{1e6, 1e6 - 1, 1e6 - 1, 1e6 - 1, 1e6 - 1, 1e6 - 1, 1e6 - 1}, 0, 0, false},
	} {
		var s series
		for i, v := range c.values {
			s = append(s, collect.Reported{Start: float64(i), Value: v})
		}
		if from, to, fell := s.falls(); fell != c.fell || fell && (from.Start != c.from || to.Start != c.to) {
			t.Errorf("%v: fell %v from %v to %v", c.values, fell, from, to)
		}
	}
}

// line returns n points of a line with autocorrelated noise of 5 %.
func line(n int, from, to float64, seed uint64) []analysis.Point {
	r := rand.New(rand.NewPCG(seed, 1))
	var all []analysis.Point
	e := 0.0
	for i := range n {
		e = 0.5*e + 0.05*r.NormFloat64()
		all = append(all, analysis.Point{At: float64(i), Value: (from + (to-from)*float64(i)/float64(n-1)) * (1 + e)})
	}
	return all
}

// At most 1 % of steady load tests, with four series each, are reported as slowing down.
func TestSlowingDownIsSeldomFalse(t *testing.T) {
	const runs, spread = 1000, 0.5
	for name, noise := range map[string]func(*rand.Rand) func() float64{
		"normal": func(r *rand.Rand) func() float64 { return func() float64 { return spread * r.NormFloat64() } },
		"heavy-tailed": func(r *rand.Rand) func() float64 {
			return distuv.StudentsT{Sigma: spread, Nu: 3, Src: r}.Rand
		},
		"autocorrelated": func(r *rand.Rand) func() float64 {
			e := 0.0
			return func() float64 {
				e = 0.5*e + spread*math.Sqrt(0.75)*r.NormFloat64()
				return e
			}
		},
	} {
		for _, n := range []int{leastPoints, 60, 200} {
			fired := 0
			for seed := range uint64(runs) {
				r, any := rand.New(rand.NewPCG(seed, 5)), false
				for _, sign := range []float64{1, 1, 1, -1} {
					var points []analysis.Point
					for next := noise(r); len(points) < n; {
						points = append(points, analysis.Point{At: float64(len(points)), Value: math.Exp(next())})
					}
					_, _, worse := worsening(points, sign)
					any = any || worse
				}
				if any {
					fired++
				}
			}
			t.Logf("%s, %d points: %d of %d", name, n, fired, runs)
			if fired > runs/100 {
				t.Errorf("%s, %d points: %d of %d runs slow down", name, n, fired, runs)
			}
		}
	}
}

func TestSlowingDown(t *testing.T) {
	for seed := range uint64(200) {
		if _, _, worse := worsening(line(200, 1, 2, seed), 1); !worse {
			t.Errorf("seed %d: twice as slow is not seen", seed)
		}
		if _, _, worse := worsening(line(200, 2, 1, seed), -1); !worse {
			t.Errorf("seed %d: half the bandwidth is not seen", seed)
		}
		if _, _, worse := worsening(line(200, 2, 1, seed), 1); worse {
			t.Errorf("seed %d: faster passes for slower", seed)
		}
	}
	if _, _, worse := worsening(line(leastPoints-1, 1, 9, 1), 1); worse {
		t.Error("too few points suffice")
	}
}

func TestPointsStopAtGaps(t *testing.T) {
	var s series
	for i := range 1000 {
		if i < 300 || i >= 400 {
			s = append(s, collect.Reported{Start: float64(60 * i), End: float64(60*i + 2), Value: float64(120 * i)})
		}
	}
	s = slices.Delete(s, 10, 12) // two failed polls make no gap
	points := s.points(series.rate)
	none := 0
	for _, p := range points {
		if math.IsNaN(p.Value) {
			none++
		} else if math.Abs(p.Value-2) > 1e-9 || !(p.Lo < 2 && p.Hi > 2) {
			t.Errorf("%+v", p)
		}
	}
	if len(points) > mostPoints || none != 1 {
		t.Errorf("%d points, %d without a value", len(points), none)
	}
}

// TestEveryRule executes the texts of each rule on a load test that has all problems.
func TestEveryRule(t *testing.T) {
	cell := &analysis.Cell{ID: "c001", System: "siad", Plan: experiment.Cell{Upload: &experiment.Upload{}}}
	trial := &analysis.Trial{Trial: record.Trial{ID: 1, State: record.Done}, Info: cell}
	f := &analysis.Frame{View: Scenario{}.View(), Plan: &experiment.Plan{Blocks: 1}, Run: analysis.Run{Done: 1, Valid: 1},
		Trials: []*analysis.Trial{trial}, Cells: []*analysis.Cell{cell},
		Metrics: scenario.Definitions(definitions, "derived"),
		Series:  []analysis.Series{{Trial: trial, Metric: "accept_time", Over: overObjects, Points: line(100, 1, 3, 1)}},
		Spans: []analysis.Span{{Trial: trial, Kind: moneyMissing, From: 600, To: 1200, Note: "40 SC"},
			{Trial: trial, Kind: endedMark, Note: "storage_full: no contract is good for uploads"}}}
	for k, v := range map[key]float64{{"files", ""}: 100, {"missing", ""}: 1, {"failed", ""}: 2,
		{"not_durable", ""}:  3,
		{"stored_bytes", ""}: 1e6, {"polls", ""}: 10, {"polls_missed", ""}: 5, {"money", unnamed}: 30,
		{"money_used", ""}: 100} {
		f.Rows = append(f.Rows, analysis.Row{Trial: trial, Metric: k.metric, Entity: k.entity, Value: v})
	}
	r, err := analysis.Analyse(f)
	must(t, err)
	for _, rule := range f.View.Rules {
		want := map[string]int{"money-unexplained": 2, "objects-lost": 2}[rule.ID]
		if n := len(rule.Holds(r)); n != max(1, want) {
			t.Errorf("%s: %d cases", rule.ID, n)
		}
	}
	for _, f := range r.Findings {
		if text := f.Title + f.Advice + strings.Join(f.Evidence, " "); strings.Contains(text, "template:") ||
			strings.Contains(text, "<") || len(f.Evidence) == 0 {
			t.Errorf("%s: %s", f.Rule, text)
		}
	}
	if !strings.Contains(r.Verdict.Text, "ended by storage_full") || r.Verdict.Tone != analysis.Bad {
		t.Errorf("%+v", r.Verdict)
	}
}
