package report

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report/internal/synthetic"
	"github.com/plimsoll-project/plimsoll/stats"
)

func trialsOf(outcomes ...map[string]int64) []Trial {
	var all []Trial
	for _, o := range outcomes {
		all = append(all, Trial{Trial: record.Trial{State: record.Done, Outcomes: o}, Info: &Cell{}})
	}
	return all
}

func TestSuccessLeavesTheExperimentsLimitsOut(t *testing.T) {
	p := successOf(trialsOf(map[string]int64{"ok": 50, "deadline": 45, "in-flight": 5, "cancelled": 2}))
	if p.Value != 1 || p.Of != 50 || p.Censored != 52 {
		t.Errorf("a healthy server with a short deadline: %+v", p)
	}
	p = successOf(trialsOf(map[string]int64{"ok": 6, "refused": 1, "error": 1, "truncated": 1, "wrong-bytes": 1, "stalled": 2}))
	if p.Value != 0.5 || p.Of != 12 {
		t.Errorf("failures: %+v", p)
	}
	if p := successOf(nil); p.Value.Known() || p.Of != 0 {
		t.Errorf("nothing finished: %+v", p)
	}
}

// When trials differ more than chance allows, operations are worth less than
// their number; when they agree, as much.
func TestSuccessIntervalKnowsThatTrialsDiffer(t *testing.T) {
	even := successOf(trialsOf(map[string]int64{"ok": 90, "error": 10}, map[string]int64{"ok": 90, "error": 10}, map[string]int64{"ok": 90, "error": 10}))
	uneven := successOf(trialsOf(map[string]int64{"ok": 100}, map[string]int64{"ok": 100}, map[string]int64{"ok": 70, "error": 30}))
	// Three trials: (t(299)/t(2))² = 0.209.
	plain := stats.Proportion(56, 62, Confidence)
	if even.Worth != 62 || even.Lo > 0.9 || even.Hi < 0.9 || math.Abs(float64(even.Hi)-plain.Hi) > 1e-9 {
		t.Errorf("even trials: %+v, Clopper-Pearson %+v", even, plain)
	}
	if uneven.Value != even.Value || uneven.Worth > 30 || !(uneven.Lo < even.Lo-0.05) || !(uneven.Hi > even.Hi+0.02) {
		t.Errorf("uneven trials %+v, even ones %+v", uneven, even)
	}
}

func TestFewTrialsShowTheirRange(t *testing.T) {
	s := summaryOf([]float64{3, 1, 2, 5, 4}, []int{0, 1, 2, 3, 4})
	if s.Median != 3 || s.Lo != 1 || s.Hi != 5 || s.Exact || s.Confidence != 0.9375 {
		t.Errorf("five trials: %+v", s)
	}
	s = summaryOf([]float64{3, 1, 2, 5, 4, 6}, []int{0, 1, 2, 3, 4, 5})
	if s.Lo != 1 || s.Hi != 6 || !s.Exact || s.Confidence < 0.95 {
		t.Errorf("six trials: %+v", s)
	}
	s = summaryOf([]float64{3}, []int{0})
	if s.Lo.Known() || s.Hi.Known() || s.Median != 3 {
		t.Errorf("one trial: %+v", s)
	}
}

func TestPercentilesNeedTheirOperations(t *testing.T) {
	few := record.Trial{Outcomes: map[string]int64{"ok": 99, "error": 1000}}
	many := record.Trial{Outcomes: map[string]int64{"ok": 100}}
	for key, want := range map[string][2]bool{"ttfb_p99": {false, true}, "ttfb_p90": {true, true}, "duration_p50": {true, true}, "throughput": {true, true}, "system_rss_peak": {true, true}, "duration_p999": {false, false}} {
		if got := [2]bool{Supported(key, few), Supported(key, many)}; got != want {
			t.Errorf("%s with 99 and 100 operations: %v, want %v", key, got, want)
		}
	}
}

func ratioFor(xs, ys []float64, family int, b record.Better) Ratio {
	q := ratioOf(xs, ys, family)
	q.PHolm = Num(min(1, float64(q.P)*float64(family)))
	q.decide(b)
	return q
}

func TestADifferenceIsShownOnlyWhenItIs(t *testing.T) {
	slow, fast := []float64{50, 51, 49, 52, 50, 51}, []float64{100, 101, 99, 102, 98, 100}
	near := []float64{100.2, 100.8, 99.1, 101.9, 98.2, 100.1}
	for _, c := range []struct {
		name         string
		xs, ys       []float64
		family       int
		better       record.Better
		shown        bool
		direction    int
		warn         bool
		below, above float64
	}{
		{"half as fast", slow, fast, 1, record.Higher, true, -1, false, 0.49, 0.53},
		{"half the time is better", slow, fast, 1, record.Lower, true, 1, false, 0.49, 0.53},
		{"half the anything is neither", slow, fast, 1, record.Neither, true, 0, false, 0.49, 0.53},
		{"the same", near, fast, 1, record.Higher, false, 0, false, 0.98, 1.02},
		{"six pairs among ten comparisons: the interval decides", slow, fast, 10, record.Higher, true, -1, true, 0.49, 0.53},
		{"the same among ten comparisons", near, fast, 10, record.Higher, false, 0, true, 0.98, 1.02},
		{"five pairs: the interval decides", slow[:5], fast[:5], 1, record.Higher, true, -1, true, 0.49, 0.53},
		{"three trials can show nothing", slow[:3], fast[:3], 1, record.Higher, false, 0, true, 0.49, 0.53},
	} {
		q := ratioFor(c.xs, c.ys, c.family, c.better)
		if q.Shown != c.shown || q.Better != c.direction || (q.Warn != "") != c.warn || float64(q.Value) < c.below || float64(q.Value) > c.above {
			t.Errorf("%s: %+v", c.name, q)
		}
	}
}

// A difference below the effect floor may be shown and is still no verdict.
func TestTheEffectFloor(t *testing.T) {
	a, b := []float64{97, 97.1, 96.9, 97.2, 96.8, 97}, []float64{100, 100.1, 99.9, 100.2, 99.8, 100}
	if q := ratioFor(a, b, 1, record.Higher); !q.Shown || q.Better != 0 {
		t.Errorf("3 %% less: %+v", q)
	}
}

// Blocks vary by 25 %. A system that is 10 % slower in each of them is shown to be, also
// among several comparisons and with few blocks; identical ones seldom are.
func TestPairsOfBlocksThatVary(t *testing.T) {
	const runs, cells = 400, 4
	for _, n := range []int{4, 5, 6, 8, 12} {
		rng := rand.New(rand.NewPCG(3, uint64(n)))
		draw := func(factor, noise float64) (xs, ys []float64) {
			for range n {
				block := math.Exp(0.25 * rng.NormFloat64())
				xs, ys = append(xs, factor*block*math.Exp(noise*rng.NormFloat64())), append(ys, block*math.Exp(noise*rng.NormFloat64()))
			}
			return xs, ys
		}
		found, wrong, families := 0, 0, 0
		for range runs {
			if xs, ys := draw(0.9, 0.01); ratioFor(xs, ys, cells, record.Higher).Better == -1 {
				found++
			}
			xs, ys := draw(1, 0.05)
			q := ratioFor(xs, ys, 1, record.Higher)
			if q.Shown {
				wrong++
			}
			if q.Shown != (q.Lo > 1 || q.Hi < 1) {
				t.Fatalf("test and interval do not agree: %+v", q)
			}
			any := false
			for range cells {
				xs, ys := draw(1, 0.05)
				any = any || ratioFor(xs, ys, cells, record.Higher).Shown
			}
			if any {
				families++
			}
		}
		// 5 % of 400 are 20, with a standard deviation of 4.4.
		if found < runs*8/10 || wrong > 33 || families > 33 {
			t.Errorf("%d blocks: 10 %% slower shown in %d of %d; of equals %d differ, and %d of families of %d", n, found, runs, wrong, families, cells)
		}
	}
}

// blockedRun is a run of so many cells of a baseline and a system that are equal but
// for an effect of each system in each block.
func blockedRun(rng *rand.Rand, cells, blocks int, effect float64) *input {
	in := &input{plan: planView{Scenario: "retrieve", Baseline: "base", Blocks: blocks, Systems: []System{{Name: "base", Baseline: true}, {Name: "sys", Slot: 1}}}, metrics: synthetic.Metrics()}
	for _, s := range in.plan.Systems {
		for i := range cells {
			in.plan.Cells = append(in.plan.Cells, Cell{ID: fmt.Sprint(s.Name, i), System: s.Name, Baseline: s.Baseline, Group: fmt.Sprint(i), Factors: []Factor{
				{Path: "system", Label: "system", Value: s.Name}, {Path: "retrieve.concurrency", Label: "concurrency", Value: fmt.Sprint(1 + i)}}})
		}
	}
	for block := range blocks {
		of := map[string]float64{}
		for _, s := range in.plan.Systems {
			of[s.Name] = effect * rng.NormFloat64()
		}
		for _, c := range in.plan.Cells {
			in.trials = append(in.trials, record.Trial{ID: int64(len(in.trials) + 1), Cell: c.ID, Block: block, State: record.Done,
				Outcomes: map[string]int64{"ok": 1000}, Metrics: map[string]float64{"throughput": 1e8 * math.Exp(of[c.System]+0.02*rng.NormFloat64())}})
		}
	}
	return in
}

// Equal systems of which each is slower in some blocks, in all its cells alike, are
// seldom told apart over all cells, in a run or between two runs; fewer than six blocks
// claim nothing.
func TestBlocksAreTheUnitOverAllCells(t *testing.T) {
	const runs, cells = 200, 4
	for _, blocks := range []int{3, 5, 6, 8} {
		rng := rand.New(rand.NewPCG(7, uint64(blocks)))
		shown, covered, between, coveredBetween := 0, 0, 0, 0
		for range runs {
			a, b := blockedRun(rng, cells, blocks, 0.07), blockedRun(rng, cells, blocks, 0.07)
			r := summarised(a)
			r.lens.compared = []string{"throughput"}
			r.compare()
			o, ok := r.overall("sys", "throughput")
			if !ok || o.N != blocks {
				t.Fatalf("%+v", o)
			}
			if o.Shown {
				shown++
			}
			if o.Lo <= 1 && 1 <= o.Hi {
				covered++
			}
			c := &RunComparison{base: r, news: []*Report{summarised(b)}, New: make([]ComparedRun, 1), Metrics: []record.Metric{{Key: "throughput", Better: record.Higher}}}
			for i := range r.Cells {
				c.Cells = append(c.Cells, ComparedCell{Metrics: map[string]ComparedMetric{}, base: &r.Cells[i], news: []*Cell{&c.news[0].Cells[i]}})
			}
			c.measure()
			if o := c.Overall[0]; o.Shown {
				between++
			}
			if o := c.Overall[0]; o.Lo <= 1 && 1 <= o.Hi {
				coveredBetween++
			}
		}
		if blocks < 6 && shown+between+covered+coveredBetween > 0 {
			t.Errorf("%d blocks: %d and %d claims, %d and %d intervals", blocks, shown, between, covered, coveredBetween)
		}
		// 5 % of 200 are 10, with a standard deviation of 3.1.
		if blocks >= 6 && (shown > 19 || between > 19 || covered < 181 || coveredBetween < 181) {
			t.Errorf("%d blocks: of %d equals %d and %d differ, %d and %d intervals hold 1", blocks, runs, shown, between, covered, coveredBetween)
		}
	}
}

// The mean over all cells lies among the cells' ratios beside it, however far a single
// slow block lies off.
func TestTheMeanOverAllCellsLiesAmongThem(t *testing.T) {
	in := &input{plan: planView{Scenario: "retrieve", Baseline: "base", Blocks: 6, Systems: []System{{Name: "base", Baseline: true}, {Name: "sys", Slot: 1}}}, metrics: synthetic.Metrics()}
	for level, rates := range map[string][]float64{"1": {98, 98.1, 97.9, 76, 98, 98.2}, "8": {98.3, 98.1, 98.4, 98.2, 98.2, 70}} {
		for _, s := range in.plan.Systems {
			id := s.Name + level
			in.plan.Cells = append(in.plan.Cells, Cell{ID: id, System: s.Name, Baseline: s.Baseline, Factors: []Factor{
				{Path: "system", Label: "system", Value: s.Name}, {Path: "retrieve.concurrency", Label: "concurrency", Value: level}}})
			for block, x := range rates {
				if s.Baseline {
					x = 100
				}
				in.trials = append(in.trials, record.Trial{ID: int64(len(in.trials) + 1), Cell: id, Block: block, State: record.Done,
					Outcomes: map[string]int64{"ok": 1000}, Metrics: map[string]float64{"throughput": x * 1e6}})
			}
		}
	}
	r := compute(in)
	at := slices.IndexFunc(r.Overall, func(o Overall) bool { return o.System == "sys" && o.Metric == "throughput" })
	if at < 0 {
		t.Fatalf("%+v", r.Overall)
	}
	o := r.Overall[at]
	if !(o.Least.Value-1e-12 <= o.Value && o.Value <= o.Most.Value+1e-12) || o.Least.Where == o.Most.Where || o.N != 6 {
		t.Errorf("%+v", o)
	}
}

// A trial whose median lies beyond its deadline counts as larger than any other,
// in the cell's median, and lets nothing be said of the ratio.
func TestTimesBeyondTheDeadlineAreNotLeftOut(t *testing.T) {
	build := func(late int) *Report {
		return reportOf(map[string][]float64{"base": {1e6, 1e6, 1e6, 1e6, 1e6, 1e6, 1e6}, "sys": {1e6, 1e6, 1e6, 1e6, 1e6, 1e6, 1e6}}, func(t *record.Trial) {
			t.Metrics["duration_p50"] = float64(t.Block + 1)
			if t.Cell == "c001" && t.Block >= 7-late {
				delete(t.Metrics, "duration_p50")
				t.Outcomes = map[string]int64{"ok": 40, "deadline": 60}
			}
		})
	}
	r := build(2)
	m := r.Cells[1].Metrics["duration_p50"]
	if m.N != 7 || m.Median != 4 || m.Hi.Known() {
		t.Errorf("with two of seven trials beyond: %+v, want the median of seven, 4, with no upper end", m)
	}
	if q, ok := r.Cells[1].Ratios["duration_p50"]; ok {
		t.Errorf("a ratio of the trials that were in time: %+v", q)
	}
	if m, ok := build(4).Cells[1].Metrics["duration_p50"]; ok {
		t.Errorf("with four of seven trials beyond: %+v", m)
	}
	if q := build(0).Cells[1].Ratios["duration_p50"]; q.Value != 1 || q.N != 7 {
		t.Errorf("with none beyond: %+v", q)
	}
}

// A trial in which a system delivered nothing is a pair like any other.
func TestNothingDeliveredIsCompared(t *testing.T) {
	r := reportOf(map[string][]float64{"base": {1e6, 1e6, 1e6, 1e6, 1e6, 1e6}, "sys": {0, 0, 0, 0, 0, 0}}, nil)
	q := r.Cells[1].Ratios["throughput"]
	if q.N != 6 || q.Value != 0 || q.Better != -1 {
		t.Errorf("%+v, want 6 pairs, ratio 0, worse", q)
	}
	if r.Verdict.Tone == Good {
		t.Errorf("verdict %+v", r.Verdict)
	}
	f := r.ratioFigure("throughput")
	for _, p := range f.Panels {
		if b, err := json.Marshal(p); err != nil {
			t.Errorf("%v: %s", err, b)
		}
	}
}

// A load test is one trial, whose puts have an interval all the same.
func TestSuccessOfALoadTestHasAnInterval(t *testing.T) {
	one := trialsOf(map[string]int64{"ok": 400})
	if p := successOf(one); p.Lo.Known() {
		t.Errorf("one trial of retrieve: %+v", p)
	}
	one[0].Info.plan.Upload = &experiment.ResolvedUpload{}
	if p := successOf(one); p.Lo < 0.99 || p.Lo > 0.991 || p.Worth != 400 {
		t.Errorf("a load test: %+v", p)
	}
}
