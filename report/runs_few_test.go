package report

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
)

// Four trials against six that do not overlap are a difference, whatever interval
// they are too few for.
func TestFewTrialsThatDoNotOverlapDiffer(t *testing.T) {
	task := func(base, other []float64) RunRatio {
		m := record.Metric{Key: "throughput", Better: record.Higher}
		v := &ComparedValue{}
		tasks := []runTask{{m, base, other, v}}
		tasks[0].compare()
		judgeFamily(m, tasks)
		return v.Ratio
	}
	base := []float64{7.06, 7.05, 7.07, 7.06}
	if q := task(base, []float64{1.75, 1.76, 1.75, 1.74, 1.75, 1.75}); !q.Shown || q.Worth != -1 || !(q.Lo < q.Value && q.Value < q.Hi && q.Hi < 0.26) || !strings.Contains(q.Warn, "range") {
		t.Errorf("a quarter: %+v", q)
	}
	if q := task(base, []float64{1.75, 1.76, 1.75, 1.74, 1.75, 7.1}); q.Shown {
		t.Errorf("they overlap: %+v", q)
	}
	if q := task(base[:3], []float64{1.75, 1.76, 1.75}); q.Shown || q.Lo.Known() && q.Lo > 0 {
		t.Errorf("three and three can show nothing: %+v", q)
	}
	// Of equals, little may be shown, and the range holds the truth as often as it says.
	rng := rand.New(rand.NewPCG(4, 6))
	shown, held, conf := 0, 0, 0.0
	const times = 400
	for range times {
		xs, ys := make([]float64, 4), make([]float64, 6)
		for i := range xs {
			xs[i] = 1 + rng.ExpFloat64()
		}
		for i := range ys {
			ys[i] = 1 + rng.ExpFloat64()
		}
		if task(xs, ys).Shown {
			shown++
		}
		i, ranged := unpairedRatio(xs, ys)
		if !ranged {
			t.Fatalf("%+v", i)
		}
		if i.Contains(1) {
			held++
		}
		conf = i.Conf
	}
	if shown > times/20 || float64(held)/times < conf {
		t.Errorf("of %d equals %d differ; %d ranges hold the truth, of which %.1f %% should", times, shown, held, 100*conf)
	}
	if stats.MinP(4, 6) > alpha {
		t.Error("the premise is gone")
	}
}

// A link that held is not told as one that did not, however short its round trip.
func TestALinkThatHeldHasNoWorstRoundTrip(t *testing.T) {
	r := &Report{Links: []Link{{WantRTT: 0.01, RTTWorst: 0.0107, Tolerance: 0.05, Checks: 9}}}
	if got := r.linksWorst(); got != "within the tolerance" {
		t.Error(got)
	}
	r.Links[0].Off = 1
	if got := r.linksWorst(); got != "+7 %" {
		t.Error(got)
	}
}

// The row of all cells says by which test, and why it may lie beyond the cells.
func TestTheRowOfAllCellsIsExplained(t *testing.T) {
	slow := func(tr *record.Trial) {
		if tr.Block == 0 {
			tr.Metrics["throughput"] /= 2
		}
	}
	level := func(*rand.Rand, string, string) float64 { return 100e6 }
	c := comparedRuns(t, RunOptions{}, fakeRun{seed: 1, trials: 6, value: level}, fakeRun{seed: 2, trials: 6, value: level, trial: slow})
	text := strings.Join(strings.Fields(comparedText(t, c)), " ")
	for _, want := range []string{"p (Holm)", "Student's test over blocks decides", "beyond the cells' ratios"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing:\n%s", want, text)
		}
	}
	c = comparedRuns(t, RunOptions{}, fakeRun{seed: 1, trials: 6, value: scattered(1)}, fakeRun{seed: 2, trials: 6, value: scattered(1)})
	if strings.Contains(comparedText(t, c), "lie far off") {
		t.Error("a mean among its cells is excused")
	}
}
