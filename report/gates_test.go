package report

import (
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/record"
)

// held are the states of rules over a run in which boxo has 80 % of nginx's
// throughput, scattered by 3 %.
func TestRulesOverARun(t *testing.T) {
	run := fakeRun{seed: 4, trials: 12, value: scattered(0.8)}
	r := compute(run.input(t))
	for rule, want := range map[string]string{
		"throughput > 60 MB/s":                                  RulePass,
		"throughput > 90 MB/s":                                  RuleFail, // boxo
		"throughput > 90 MB/s where system == nginx":            RulePass,
		"throughput > 80 MB/s":                                  RuleOpen,
		"throughput < 200MB/s":                                  RulePass,
		"throughput <= 90MB/s where concurrency == 8":           RuleFail,
		"throughput within 30% of nginx":                        RulePass,
		"throughput within 10% of nginx":                        RuleFail,
		"throughput within 20% of nginx":                        RuleOpen,
		"success_rate >= 99%":                                   RulePass,
		"success_rate >= 99.99%":                                RuleOpen, // 4800 operations show 99.93 %
		"success_rate < 90%":                                    RuleFail,
		"throughput > 1 MB/s where system == boxo and c != 100": "",
	} {
		all, err := r.Hold([]string{rule})
		if want == "" {
			if err == nil {
				t.Errorf("%s: no error", rule)
			}
			continue
		}
		must(t, err)
		if all[0].State != want {
			t.Errorf("%s: %s, want %s: %+v", rule, all[0].State, want, all[0].Cells)
		}
	}
	few := run
	few.trials = 4
	all, err := compute(few.input(t)).Hold([]string{"throughput > 1 MB/s", "throughput within 90% of nginx"})
	must(t, err)
	for _, g := range all {
		if g.State != RuleOpen || !strings.Contains(g.Cells[0].Why, "; 5 are needed") {
			t.Errorf("four trials: %+v", g)
		}
	}
	// Thousands of operations of one trial are still one trial.
	for ok, rule := range map[int64]string{4000: "success_rate >= 99.9%", 3000: "success_rate >= 99.9%", 0: "success_rate < 90%"} {
		one := run
		one.trials, one.trial = 1, func(tr *record.Trial) { tr.Outcomes = map[string]int64{"ok": ok, "error": 4000 - ok} }
		all, err := compute(one.input(t)).Hold([]string{rule})
		must(t, err)
		if d := all[0].Cells[0]; d.State != RuleOpen || d.Lo.Known() || d.Hi.Known() || !strings.Contains(d.Why, "in 1 valid trial; 5 are needed") {
			t.Errorf("%s of one trial with %d of 4000: %+v", rule, ok, d)
		}
	}
	// A time that some trials never came to is not the shorter for it.
	late := run
	late.trial = func(tr *record.Trial) {
		tr.Metrics["duration_p50"] = 0.1
		if tr.Block%2 == 0 {
			tr.Outcomes = map[string]int64{"ok": 10, "deadline": 390}
			delete(tr.Metrics, "duration_p50")
		}
	}
	all, err = compute(late.input(t)).Hold([]string{"duration_p50 < 1s"})
	must(t, err)
	if all[0].State == RulePass {
		t.Errorf("half of the trials never came to it: %+v", all[0])
	}
}

func TestRulesOverAComparison(t *testing.T) {
	base := fakeRun{seed: 1, trials: 12, value: scattered(1)}
	slower := fakeRun{seed: 2, trials: 12, value: scattered(0.8)}
	for rule, want := range map[string]string{
		"no worse than BASE by 30%":                                RulePass,
		"no worse than BASE":                                       RuleFail,
		"no worse than BASE by 20%":                                RuleOpen,
		"no worse than BASE by 10% where system == nginx":          RulePass,
		"throughput > 90MB/s":                                      RuleFail,
		"throughput no worse than BASE by 30% where concurrency=8": RulePass,
	} {
		c := comparedRuns(t, RunOptions{}, base, slower)
		must(t, c.Hold([]string{rule}))
		if c.Gates[0].State != want {
			t.Errorf("%s: %s, want %s: %+v", rule, c.Gates[0].State, want, c.Gates[0].Cells)
		}
	}
	c := comparedRuns(t, RunOptions{}, base, slower, base)
	must(t, c.Hold([]string{"no worse than BASE"}))
	if len(c.Gates) != 2 || State(c.Gates) != RuleFail || c.Gates[1].State == RuleFail {
		t.Errorf("%+v", c.Gates)
	}
	text := comparedText(t, c)
	if !strings.Contains(text, "gate: no worse than BASE: FAIL for run1 (of 6 cells 3 pass, 3 fail, 0 cannot be told)") {
		t.Error(text)
	}
	var md strings.Builder
	must(t, c.WriteMarkdown(&md))
	if !strings.Contains(md.String(), "**Gates**") {
		t.Error(md.String())
	}
}

// Cells that are not measured again do not pass.
func TestRulesMissCellsOfTheBase(t *testing.T) {
	base := fakeRun{seed: 1, trials: 12, value: scattered(1)}
	fewer, other := fakeRun{seed: 2, trials: 12, value: scattered(1)}, fakeRun{seed: 2, trials: 12, value: scattered(1)}
	fewer.file = strings.Replace(runFile, "[1, 8, 64]", "8", 1)
	other.file = strings.Replace(runFile, "64MiB", "32MiB", 1)
	c := comparedRuns(t, RunOptions{}, base, fewer, other)
	for rule, want := range map[string][]string{
		"no worse than BASE by 30%":                        {RuleOpen, RuleOpen},
		"no worse than BASE by 30% where concurrency == 8": {RulePass, RuleOpen},
		"no worse than BASE by 30% where concurrency != 8": {RuleOpen, RuleOpen},
	} {
		must(t, c.Hold([]string{rule}))
		for k, g := range c.Gates {
			if g.State != want[k] {
				t.Errorf("%s: %s, want %s: %+v", rule, g.State, want[k], g.Cells)
			}
		}
	}
	must(t, c.Hold([]string{"no worse than BASE by 30%"}))
	var md strings.Builder
	rulingsMarkdown(&md, c.Gates)
	for _, want := range []string{"of 6 cells 2 pass, 0 fail, 4 cannot be told", "cannot tell, 4 cells: nginx, concurrency 1; boxo, concurrency 1; nginx, concurrency 64; and 1 more: no ratio; the new run has no such cell", "its settings differ from the base run's"} {
		if !strings.Contains(md.String(), want) {
			t.Errorf("%q is not said:\n%s", want, md.String())
		}
	}
	// The other way round there is nothing to be worse than: that it is said of such cells is enough.
	c = comparedRuns(t, RunOptions{}, fewer, base)
	must(t, c.Hold([]string{"no worse than BASE by 30%"}))
	if g := c.Gates[0]; g.State != RulePass || len(g.Cells) != 2 {
		t.Errorf("%+v", g)
	}
}

// A rule that just holds is not failed more often than one in twenty, in a cell.
func TestGateErrsRarely(t *testing.T) {
	fails, passes, cells := 0, 0, 0
	for i := range uint64(60) {
		r := compute(fakeRun{seed: 100 + i, trials: 7, value: scattered(1)}.input(t))
		all, err := r.Hold([]string{"throughput > 100 MB/s"}) // the true median
		must(t, err)
		for _, d := range all[0].Cells {
			cells++
			switch d.State {
			case RuleFail:
				fails++
			case RulePass:
				passes++
			}
		}
	}
	if fails > cells/12 || passes > cells/12 {
		t.Errorf("at the limit itself, of %d cells %d failed and %d passed", cells, fails, passes)
	}
}

// What checks what was stored was not asked for: a gate on the success of a load test
// counts puts alone, and says so.
func TestSuccessOfALoadTestCountsPuts(t *testing.T) {
	plan := plainLoad(1).plan(t)
	in := &input{meta: siadMeta, plan: viewOf(plan), raw: []byte("{}"), name: "run-dir", metrics: []record.Metric{
		{Key: "success_rate", Name: "success rate", Unit: "ratio", Better: record.Higher, Help: "of puts"}}}
	in.plan.Blocks = 8
	for block := range in.plan.Blocks {
		in.trials = append(in.trials, record.Trial{ID: int64(block + 1), Cell: plan.Cells[0].ID, Block: block, State: record.Done, Seconds: 60,
			Outcomes: map[string]int64{"ok": 180 + 10_000, "error": 20, "deadline": 5}, Metrics: map[string]float64{"success_rate": 0.9, "puts_ended": 200}})
	}
	for _, c := range []struct {
		rule, want, why string
	}{
		{"success >= 99%", RuleFail, "1,440 of 1,600 attempts to store an object in 8 valid trials"},
		{"success >= 80%", RulePass, "1,440 of 1,600 attempts to store an object in 8 valid trials"},
	} {
		r := compute(in)
		all, err := r.Hold([]string{c.rule})
		must(t, err)
		if all[0].State != c.want || !strings.Contains(all[0].Cells[0].Why, c.why) {
			t.Errorf("%s: %s (%+v), want %s, %s", c.rule, all[0].State, all[0].Cells, c.want, c.why)
		}
		// Fetches that failed are not forgotten.
		if s := r.Cells[0].Success; s.Of != 1600 || s.OK != 1440 || s.Censored != 40 {
			t.Errorf("the cell's success is %+v", s)
		}
		if f := r.found("failures"); f == nil || !strings.Contains(f.Evidence[0], "160 of 81,600") {
			t.Errorf("operations failed: %+v", f)
		}
	}
	// A run of an older release tells all operations alone.
	for i := range in.trials {
		delete(in.trials[i].Metrics, "puts_ended")
	}
	all, err := compute(in).Hold([]string{"success >= 99%"})
	must(t, err)
	if why := all[0].Cells[0].Why; all[0].State != RulePass || !strings.Contains(why, "of 81,600 operations, fetches that check what was stored among them, in 8") {
		t.Errorf("%s: %s", all[0].State, why)
	}
}

// More repetitions are said to help where an interval is too wide or trials are too
// few, and not where a cell has no such number or the rule no cell.
func TestWhatMoreRepetitionsDecide(t *testing.T) {
	run := fakeRun{seed: 4, trials: 12, value: scattered(0.8)}
	perfect, few, none := run, run, run
	perfect.trial = func(tr *record.Trial) { tr.Outcomes = map[string]int64{"ok": 400} }
	few.trials = 4
	none.trial = func(tr *record.Trial) { tr.Invalid = []string{"machine-busy"} }
	const wide, never = "throughput > 80 MB/s", "success_rate >= 100%"
	for name, c := range map[string]struct {
		run       fakeRun
		rules     []string
		all, some bool
	}{
		"an interval that is too wide":   {run, []string{wide, "throughput > 1 kB/s"}, true, true},
		"too few trials":                 {few, []string{"throughput > 1 kB/s", "throughput within 90% of nginx"}, true, true},
		"what can be shown by no number": {perfect, []string{never}, false, false},
		"one of each":                    {perfect, []string{never, "throughput within 20% of nginx"}, false, true},
		"no valid trial":                 {none, []string{wide}, false, false},
		"all pass":                       {run, []string{"throughput > 1 kB/s"}, false, false},
	} {
		rulings, err := compute(c.run.input(t)).Hold(c.rules)
		must(t, err)
		if all, some := MoreHelps(rulings); all != c.all || some != c.some {
			t.Errorf("%s: all %v, some %v: %+v", name, all, some, rulings)
		}
	}
}

// A rule that means no cell is refused, with what there is.
func TestRulesOfNothingAreRefused(t *testing.T) {
	r := compute(fakeRun{seed: 4, trials: 6, value: scattered(0.8)}.input(t))
	for rule, want := range map[string]string{
		"throughput > 1 kB/s where concurrency == 8 and concurrency == 64": "no cell of the run is meant",
		"throughput > 1 kB/s where concurrency == 9":                       "has no level `9`",
		"no_such > 1 kB/s": "the run has no metric `no_such`",
	} {
		if _, err := r.Hold([]string{rule}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", rule, err, want)
		}
	}
}

// A rule over several runs may name the level of a factor that the new run does not
// vary: it is meant where it has that level.
func TestARuleNamesALevelThatTheNewRunDoesNotVary(t *testing.T) {
	base, one := fakeRun{seed: 1, trials: 12, value: scattered(1)}, fakeRun{seed: 2, trials: 12, value: scattered(1)}
	one.file = strings.Replace(runFile, "[1, 8, 64]", "8", 1)
	c := comparedRuns(t, RunOptions{}, base, one)
	for rule, cells := range map[string]int{
		"throughput > 1 kB/s where concurrency == 8":                    2,
		"throughput > 1 kB/s where concurrency != 1":                    2,
		"throughput within 90% of nginx where concurrency == 8":         1,
		"throughput > 1 kB/s where concurrency == 64":                   0,
		"throughput > 1 kB/s where concurrency != 8":                    0,
		"throughput > 1 kB/s where concurrency == 8 and system != boxo": 1,
	} {
		err := c.Hold([]string{rule})
		if cells == 0 {
			if err == nil {
				t.Errorf("%s: no error", rule)
			}
			continue
		}
		if err != nil || len(c.Gates[0].Cells) != cells || c.Gates[0].State != RulePass {
			t.Errorf("%s: %v, %+v; want %d cells", rule, err, c.Gates, cells)
		}
	}
}

// The rules of the file can be left out: then those that are asked decide alone.
func TestRulesOfTheFileLeftOut(t *testing.T) {
	fails := fakeRun{seed: 2, trials: 12, value: scattered(0.8)}
	fails.file = runFile + "gates: [throughput > 90 MB/s]\n"
	c := comparedRuns(t, RunOptions{}, fakeRun{seed: 1, trials: 12, value: scattered(1)}, fails)
	const asked = "throughput > 1 kB/s"
	must(t, c.Hold([]string{asked}))
	if len(c.Gates) != 2 || State(c.Gates) != RuleFail {
		t.Errorf("with those of the file: %+v", c.Gates)
	}
	must(t, c.HoldOnly([]string{asked}))
	if len(c.Gates) != 1 || State(c.Gates) != RulePass {
		t.Errorf("alone: %+v", c.Gates)
	}
	r := compute(fails.input(t))
	if len(r.Gates) != 1 || r.Verdict.Tone != Bad {
		t.Fatalf("%+v, %+v", r.Gates, r.Verdict)
	}
	r.LeaveGates()
	if len(r.Gates) != 0 || strings.Contains(r.Verdict.Text, "gate") {
		t.Errorf("%+v, %+v", r.Gates, r.Verdict)
	}
}

// Where trials have too few operations for a percentile, that is said: more trials
// are no remedy.
func TestAGateOnAPercentileOfTooFewOperations(t *testing.T) {
	run := fakeRun{seed: 4, trials: 12, value: scattered(1)}
	run.trial = func(tr *record.Trial) {
		tr.Outcomes = map[string]int64{"ok": 48}
		tr.Metrics["ttfb_p99"] = 0.01
	}
	in := run.input(t)
	in.metrics = append(in.metrics, record.Metric{Key: "ttfb_p99", Name: "TTFB, p99", Unit: "s", Better: record.Lower})
	r := compute(in)
	for _, rule := range []string{"p99(ttfb) < 1s", "ttfb_p99 within 20% of nginx"} {
		all, err := r.Hold([]string{rule})
		must(t, err)
		d := all[0].Cells[0]
		if d.State != RuleOpen || d.helps || !strings.Contains(d.Why, "in 12 of 12 valid trials too few operations succeeded for this percentile (it needs 100, these have at most 48)") {
			t.Errorf("%s: %+v", rule, d)
		}
	}
}

// What ran into the experiment's own deadline, or was starved by the link, is no failure, and no success either: a
// gate does not pass on the rest alone.
func TestSuccessDoesNotPassOverDeadlines(t *testing.T) {
	run := fakeRun{seed: 4, trials: 12, value: scattered(1)}
	for late, want := range map[int64]string{0: RulePass, 2: RulePass, 400: RuleOpen} {
		run.trial = func(tr *record.Trial) {
			tr.Outcomes = map[string]int64{"ok": 400, "deadline": late / 2, "starved": late / 2}
		}
		all, err := compute(run.input(t)).Hold([]string{"success >= 99%"})
		must(t, err)
		for _, d := range all[0].Cells {
			if d.State != want || (want == RuleOpen) != strings.Contains(d.Why, "4,800 more ended past the deadline or starved") || d.helps {
				t.Errorf("%d late: %s, %s", late, d.State, d.Why)
			}
		}
	}
}
