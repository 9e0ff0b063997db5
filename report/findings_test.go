package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report/internal/synthetic"
)

func (r *Report) found(rule string) *Finding {
	for i := range r.Findings {
		if r.Findings[i].Rule == rule {
			return &r.Findings[i]
		}
	}
	return nil
}

func TestFindingsOfTheSyntheticRun(t *testing.T) {
	r := sharedReport(t)
	for rule, want := range map[string]string{
		"generator-bound": "boxo, concurrency 1, rate 1 Gbit/s: 1 trial of 5",
		"link-off":        "nginx, concurrency 8, rate 1 Gbit/s: 1 trial of 5",
		"failures":        "boxo, concurrency 64",
		"link-bound":      "nginx in 4 of 6 cells", // at 64 too many are cut off to tell
		"waiting":         "boxo in 1 of 6 cells",  // at 64 it fails too often to be judged
		"deadlines":       "the server failed 0",
	} {
		f := r.found(rule)
		if f == nil || !strings.Contains(strings.Join(f.Evidence, "\n"), want) {
			t.Errorf("%s: %+v, want evidence %q", rule, f, want)
		}
	}
	for _, rule := range []string{"wrong-bytes", "box-busy", "drift", "not-compared", "cpu-bound"} {
		if f := r.found(rule); f != nil {
			t.Errorf("found %+v", f)
		}
	}
	if !strings.Contains(r.Verdict.Text, "boxo is slower than nginx in 3 of 6 cells") || !strings.Contains(r.Verdict.Text, "for static no difference") || r.Verdict.Tone != Warn {
		t.Errorf("verdict %+v", r.Verdict)
	}
}

// The study's trap: a healthy server under a burst and a short deadline.
func TestAHealthyServerKeepsItsSuccessRate(t *testing.T) {
	r := sharedReport(t)
	hit := false
	for _, c := range r.Cells {
		if c.System != "nginx" || c.Outcomes["deadline"] == 0 {
			continue
		}
		hit = true
		if c.Success.Value != 1 || c.Success.Censored < 100 {
			t.Errorf("%s: %+v", c.ID, c.Success)
		}
	}
	if !hit {
		t.Fatal("no cell of nginx has deadlines")
	}
}

func TestInvalidAndWarmupTrialsAreInNoStatistic(t *testing.T) {
	r := sharedReport(t)
	for _, c := range r.cells() {
		values := map[float64]bool{}
		for _, x := range c.Metrics["throughput"].values {
			values[x] = true
		}
		for _, trial := range r.Trials {
			if trial.Info != c {
				continue
			}
			if in := values[trial.Metrics["throughput"]]; in != trial.Valid() {
				t.Errorf("%s, trial %d: in the statistics %v, valid %v", c.ID, trial.ID, in, trial.Valid())
			}
		}
	}
	if len(r.Invalid) != 2 || r.Run.Warmup != 18 {
		t.Errorf("%d invalid, %d warm-up", len(r.Invalid), r.Run.Warmup)
	}
}

const smallFile = `
scenario: retrieve
question: Which?
systems: [nginx, boxo]
baseline: %s
link: {rate: 1Gbit, delay: 20ms}
data: {size: 64MiB}
retrieve: {concurrency: [1, 8], range: 1MiB, requests: 60}
repetitions: %d
`

func TestWrongBytesComeFirst(t *testing.T) {
	r := built(t, synthetic.Run{File: fmt.Sprintf(smallFile, "nginx", 2), Blocks: 2, WrongBytes: true})
	if len(r.Findings) == 0 || r.Findings[0].Rule != "wrong-bytes" || r.Findings[0].Tone != Bad {
		t.Errorf("findings %+v", r.Findings)
	}
	if r.Verdict.Text != "Wrong bytes were served by boxo." || r.Verdict.Tone != Bad {
		t.Errorf("verdict %+v", r.Verdict)
	}
}

func TestWithoutABaselineNothingIsCompared(t *testing.T) {
	r := built(t, synthetic.Run{File: fmt.Sprintf(smallFile, "none", 1), Blocks: 1})
	if r.Baseline != "" || len(r.Overall) != 0 || r.Verdict.Tone == Bad {
		t.Errorf("baseline %q, verdict %q", r.Baseline, r.Verdict.Text)
	}
	for _, c := range r.Cells {
		if len(c.Ratios) != 0 {
			t.Errorf("%s has ratios %v", c.ID, c.Ratios)
		}
	}
	page(t, r)
	text(t, r, 100)
}

func TestAPartialRunSaysSo(t *testing.T) {
	for _, stop := range []int{1, 5, 7} { // nothing, warm-up only, some
		r := built(t, synthetic.Run{File: fmt.Sprintf(smallFile, "nginx", 2), Blocks: 2, Stop: stop})
		if r.Run.State == "complete" || r.Run.Done >= r.Run.Planned {
			t.Errorf("after %d trials: %+v", stop, r.Run)
		}
		page(t, r)
		if got := text(t, r, 100); !strings.Contains(got, fmt.Sprintf("%d of 8 trials", r.Run.Done)) {
			t.Errorf("after %d trials the table says:\n%s", stop, got)
		}
	}
}

// reportOf computes a report from made-up trials of two systems in one cell each.
func reportOf(throughput map[string][]float64, change func(*record.Trial)) *Report {
	in := &input{plan: planView{Scenario: "retrieve", Baseline: "base", Blocks: 6, Systems: []System{{Name: "base", Baseline: true}, {Name: "sys", Slot: 1}}},
		metrics: synthetic.Metrics(), meta: map[string]string{"environment": `{"cpu.count":"2"}`}}
	for i, s := range in.plan.Systems {
		id := fmt.Sprintf("c%03d", i)
		in.plan.Cells = append(in.plan.Cells, Cell{ID: id, System: s.Name, Baseline: s.Baseline, Factors: []Factor{{Path: "system", Label: "system", Value: s.Name}}})
		for block, x := range throughput[s.Name] {
			t := record.Trial{ID: int64(len(in.trials) + 1), Cell: id, Block: block, State: record.Done, Outcomes: map[string]int64{"ok": 1000},
				Metrics: map[string]float64{"throughput": x, "load_line": 125e6, "load_line_share": x / 125e6, "system_cpu_per_gb": 1, "generator_cpu_per_gb": 0.5}}
			if change != nil {
				change(&t)
			}
			in.trials = append(in.trials, t)
		}
	}
	return compute(in)
}

// Drift is looked for in the baseline, too, and reaches the verdict.
func TestDrift(t *testing.T) {
	falling := []float64{100e6, 91e6, 80e6, 72e6, 66e6, 61e6, 55e6, 50e6}
	steady := []float64{100e6, 101e6, 100e6, 99e6, 100e6, 100e6, 101e6, 100e6}
	for name, c := range map[string]struct {
		of   map[string][]float64
		want int // lines of evidence
	}{
		"none":              {map[string][]float64{"base": steady, "sys": steady}, 0},
		"the baseline":      {map[string][]float64{"base": falling}, 1},
		"both alike":        {map[string][]float64{"base": falling, "sys": falling}, 2},
		"the other, itself": {map[string][]float64{"base": steady, "sys": falling}, 2},
	} {
		r := reportOf(c.of, nil)
		f := r.found("drift")
		if (f != nil) != (c.want > 0) || f != nil && len(f.Evidence) != c.want {
			t.Errorf("%s: %+v", name, f)
		}
		if got := strings.Contains(r.Verdict.Text, "changed during the run"); got != (c.want > 0) || got && r.Verdict.Tone == Good {
			t.Errorf("%s: verdict %+v", name, r.Verdict)
		}
	}
}

func TestWhatBounds(t *testing.T) {
	same := func(x float64) []float64 { return []float64{x, x * 1.01, x, x * 0.99, x, x} }
	cpu := func(perGB float64) func(*record.Trial) {
		return func(t *record.Trial) { t.Metrics["system_cpu_per_gb"] = perGB }
	}
	for _, c := range []struct {
		name  string
		rate  float64
		perGB float64
		want  string
	}{
		{"near the line", 120e6, 1, "link-bound"},
		{"all CPUs busy", 50e6, 36, "machine-busy"},        // 1.8 of 2
		{"one thread", 50e6, 20, "cpu-bound"},              // 1.0
		{"neither", 50e6, 2, "waiting"},                    // 0.1
		{"between, nothing to say", 100e6, 2, "(nothing)"}, // 80 % of the line
	} {
		r := reportOf(map[string][]float64{"base": same(c.rate), "sys": same(c.rate)}, cpu(c.perGB))
		got := "(nothing)"
		for _, rule := range []string{"link-bound", "cpu-bound", "machine-busy", "waiting"} {
			if r.found(rule) != nil {
				got = rule
			}
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// A system that is as fast in one cell and far slower in the others is slower.
func TestADifferenceInSomeCellsIsNotAveragedAway(t *testing.T) {
	file := strings.Replace(strings.Replace(synthetic.File, "%d", "6", 1), "[100Mbit, 1Gbit]", "1Gbit", 1)
	r := built(t, synthetic.Run{File: file, Blocks: 6})
	if !strings.Contains(r.Verdict.Text, "boxo is slower than nginx in 2 of 3 cells") {
		t.Errorf("verdict %q", r.Verdict.Text)
	}
	if o, ok := r.overall("boxo", "throughput"); !ok || !o.Shown || o.Better != -1 {
		t.Errorf("over all cells: %+v", o)
	}
}

func TestTrialsThatCouldNotRunAreAFinding(t *testing.T) {
	r := reportOf(map[string][]float64{"base": {1e6, 1e6}, "sys": {1e6, 1e6}}, func(t *record.Trial) {
		if t.ID == 2 {
			t.State, t.Error, t.Metrics = record.Failed, "testbed: not ready", nil
		}
	})
	if f := r.found("not-executed"); f == nil || f.Evidence[0] != "base, 1 trial: testbed: not ready" {
		t.Errorf("findings %+v", r.Findings)
	}
}

func TestNoValidTrialMeansNoVerdict(t *testing.T) {
	r := reportOf(map[string][]float64{"base": {1e6, 1e6}, "sys": {1e6, 1e6}}, func(t *record.Trial) { t.Invalid = []string{record.ReasonBoxBusy} })
	if r.Run.Valid != 0 || r.Verdict.Tone != Bad || !strings.Contains(r.Verdict.Text, "nothing can be said") || r.found("box-busy") == nil {
		t.Errorf("verdict %+v, findings %+v", r.Verdict, r.Findings)
	}
}

func TestFewValidTrialsTemperTheVerdict(t *testing.T) {
	r := reportOf(map[string][]float64{"base": {1e6, 1e6, 1e6, 1e6}, "sys": {1e6, 1e6, 1e6, 1e6}}, func(t *record.Trial) {
		if t.Block > 1 {
			t.Invalid = []string{record.ReasonBoxBusy}
		}
	})
	if !strings.HasPrefix(r.Verdict.Text, "Only 4 of 8 trials are valid.") || r.Verdict.Tone != Warn {
		t.Errorf("verdict %+v", r.Verdict)
	}
}

func TestDropModeIsNamed(t *testing.T) {
	r := reportOf(map[string][]float64{"base": {1e6}, "sys": {1e6}}, func(t *record.Trial) { t.Notes = []string{"receive: drop: raw http/1.1"} })
	if r.found("not-compared") == nil {
		t.Errorf("findings %+v", r.Findings)
	}
}

// Systems that connect differently have different limits; one line for both
// would be wrong for each.
func TestLoadLinesOfTheirOwn(t *testing.T) {
	x := []float64{1e6, 1e6}
	of := func(sys float64) []limit {
		return reportOf(map[string][]float64{"base": x, "sys": x}, func(t *record.Trial) {
			if t.Cell == "c001" {
				t.Metrics["load_line"] = sys
			}
		}).loadLines("load_line")
	}
	if got := of(125.5e6); len(got) != 1 || got[0].system != "" {
		t.Errorf("nearly equal lines: %+v", got)
	}
	if got := of(60e6); len(got) != 2 || got[0].system != "base" || got[1].system != "sys" || got[1].y != 60e6 {
		t.Errorf("different lines: %+v", got)
	}
}

// A trial that failed and was executed again by a resumed run is one trial.
func TestATrialExecutedAgainCountsOnce(t *testing.T) {
	again := reportOf(map[string][]float64{"base": {1e6, 1e6}, "sys": {1e6, 1e6}}, func(t *record.Trial) {
		if t.ID == 1 { // the first of base: its second trial is its repetition
			t.State, t.Error, t.Metrics, t.Outcomes = record.Failed, "it was not to be", nil, nil
		}
		if t.ID == 2 {
			t.Block = 0
		}
	})
	if again.Run.Done != 3 || again.Run.Failed != 0 || again.Run.Valid != 3 {
		t.Errorf("%+v, want 3 done, all of them valid", again.Run)
	}
	if f := again.found("not-executed"); f != nil {
		t.Errorf("found %+v", f)
	}
	if c := again.Cells[0]; c.Valid != 1 || c.Failed != 0 {
		t.Errorf("the cell has %d valid and %d failed trials, want 1 and 0", c.Valid, c.Failed)
	}
}
