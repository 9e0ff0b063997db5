package analysis_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario/overhead"
	"github.com/plimsoll-project/plimsoll/scenario/retrieve"
)

var retrieveCell = experiment.Cell{ID: "a", Retrieve: &experiment.Retrieve{}, Link: experiment.Link{Tolerance: 0.05}}

func done(metrics map[string]float64, recorded ...string) record.Trial {
	return record.Trial{Cell: "a", State: record.Done, Metrics: metrics, Invalid: recorded}
}

// A trial is judged by what was recorded of it and by the limits that are asked for,
// whatever was decided before; where a fact is missing, what was decided stays.
func TestReasons(t *testing.T) {
	const busy, limited, beyond, died = record.ReasonBoxBusy, record.ReasonMachineLimited, record.ReasonBeyondLine,
		record.ReasonDaemonDied
	usual := experiment.Limits{Others: 0.25, Machine: 0.85}
	type m = map[string]float64
	for _, c := range []struct {
		name   string
		cell   experiment.Cell
		limits experiment.Limits
		trial  record.Trial
		want   []string
	}{
		{"quiet", retrieveCell, usual, done(m{"others_busy": 0.25, "box_cpu": 0.84}), nil},
		{"others above the limit", retrieveCell, usual, done(m{"others_busy": 0.26}), []string{busy}},
		{"a higher limit", retrieveCell, experiment.Limits{Others: 0.5}, done(m{"others_busy": 0.26}, busy), nil},
		{"a lower limit", retrieveCell, experiment.Limits{Others: 0.1}, done(m{"others_busy": 0.2}), []string{busy}},
		{"no limit", retrieveCell, experiment.Limits{}, done(m{"others_busy": 0.9, "box_cpu": 1}, busy, limited), nil},
		{"no limit, and nothing recorded of others", retrieveCell, experiment.Limits{}, done(nil, busy, died),
			[]string{died}},
		{"nothing recorded", retrieveCell, usual, done(nil, busy), []string{busy}},
		{"more than the machine has is an error of measurement", retrieveCell, usual, done(m{"others_busy": 3.79}), nil},
		{"machine line at its limit", retrieveCell, usual, done(m{"box_cpu": 0.85}), []string{limited}},
		{"one thread of the emulator", retrieveCell, usual, done(m{"box_cpu": 0.5, "emulator_thread": 0.9}),
			[]string{limited}},
		{"polls alone", experiment.Cell{Collect: &experiment.Collect{}}, usual,
			done(m{"others_busy": 0.9, "box_cpu": 1}), nil},
		{"what happened stays", retrieveCell, usual, done(m{"others_busy": 0.9}, died), []string{died, busy}},
		{"within the link's tolerance", retrieveCell, usual, done(m{"load_line_share": 1.069}), nil},
		{"159 % of the line", retrieveCell, usual, done(m{"load_line_share": 1.59}), []string{beyond}},
		{"first byte before the line", retrieveCell, usual, done(m{"ttfb_line_share": 1.2}), []string{beyond}},
		{"overhead", experiment.Cell{Overhead: &experiment.Overhead{}}, usual, done(m{"line_share": 1.2}),
			[]string{beyond}},
		{"swarm", experiment.Cell{Disseminate: &experiment.Disseminate{}}, usual, done(m{"line_share": 1.2}),
			[]string{beyond}},
		{"a replay is no physical limit", experiment.Cell{Sync: &experiment.Sync{}}, usual,
			record.Trial{State: record.Done, Outcomes: map[string]int64{"ok": 1},
				Metrics: m{"line_share": 1.2, "link_line": 5, "chain_time": 9}}, nil},
		{"sync", experiment.Cell{Sync: &experiment.Sync{}}, usual,
			record.Trial{State: record.Done, Outcomes: map[string]int64{"ok": 1},
				Metrics: m{"link_line": 9, "chain_time": 5}}, []string{beyond}},
	} {
		got := analysis.InvalidReasons(c.cell, c.limits, c.trial)
		slices.Sort(got)
		slices.Sort(c.want)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// One trial beyond its line puts out its cell, and no other; executed again within the
// line, it counts no more. Warm-up trials and failed ones are left alone.
func TestJudgeByCell(t *testing.T) {
	other := retrieveCell
	other.ID = "b"
	plan := &experiment.Plan{Cells: []experiment.Cell{retrieveCell, other},
		Experiment: experiment.Experiment{Limits: experiment.Limits{Others: 0.25}}}
	trial := func(id int64, cell string, block int, share float64) record.Trial {
		return record.Trial{ID: id, Cell: cell, Block: block, Warmup: block < 0, State: record.Done,
			Metrics: map[string]float64{"load_line_share": share}}
	}
	trials := []record.Trial{
		trial(1, "a", -1, 0.9), trial(2, "a", 0, 0.9), trial(3, "a", 1, 1.59),
		{ID: 4, Cell: "a", Block: 2, State: record.Failed},
		trial(5, "b", -1, 1.3), trial(6, "b", 0, 1.3), trial(7, "b", 0, 0.9), trial(8, "b", 1, 0.9),
	}
	analysis.Judge(plan, trials)
	var valid []int64
	for _, t := range trials {
		if t.Valid() {
			valid = append(valid, t.ID)
		}
	}
	if !slices.Equal(valid, []int64{7, 8}) || trials[3].Invalid != nil {
		t.Errorf("valid are %v, want 7 and 8; failed: %v", valid, trials[3].Invalid)
	}
	analysis.Judge(plan, trials) // is not changed by what it decided
	if trials[7].Invalid != nil || !slices.Equal(trials[1].Invalid, []string{record.ReasonBeyondLine}) {
		t.Errorf("judged twice: %v, %v", trials[1].Invalid, trials[7].Invalid)
	}
}

// Reasons in the file of words are those that trials are recorded with.
func TestReasonsExplainedAreRecorded(t *testing.T) {
	for _, reason := range analysis.ExplainedReasons() {
		if record.Meaning(reason) == reason {
			t.Errorf("words.yaml explains %q, and no trial is recorded with that", reason)
		}
	}
}

// Without its trials of few operations, which are the slow ones, a percentile would be biased: a cell has none.
func TestPercentilesNeedOperationsInEveryTrial(t *testing.T) {
	plan := simulatedPlan(t, `
scenario: retrieve
systems: [nginx]
data: {size: 1MiB}
retrieve: {concurrency: 1, requests: 200}
repetitions: 3
`)
	for few, want := range map[int64]bool{50: false, 200: true} {
		var trials []record.Trial
		for block, ok := range []int64{200, few, 200} {
			trials = append(trials, trialOf(plan.Cells[0], block, block, ok, map[string]float64{"duration_p99": 1}))
		}
		r := analysed(t, plan, retrieve.Scenario{}.View(), retrieve.Scenario{}.Metrics(), trials)
		if _, has := r.Cells[0].Metrics["duration_p99"]; has != want {
			t.Errorf("with a trial of %d operations the cell has a 99th percentile: %t", few, has)
		}
	}
}

// A run of trials in one cell per system, of which change is done to boxo's.
func cellsOf(t *testing.T, blocks int, change func(block int, x *record.Trial)) *analysis.Result {
	t.Helper()
	plan := simulatedPlan(t, strings.Replace(strings.Replace(simulated, "[1, 8, 64]", "8", 1), "repetitions: 8",
		fmt.Sprint("repetitions: ", blocks), 1))
	var trials []record.Trial
	for block := range blocks {
		for _, c := range plan.Cells {
			x := trialOf(c, block, len(trials), 400, map[string]float64{"throughput": 40e6, "success_rate": 1,
				"duration_p50": 1, "load_line": 50e6, "load_line_share": 0.8})
			if c.System == "boxo" {
				change(block, &x)
			}
			trials = append(trials, x)
		}
	}
	return analysed(t, plan, retrieve.Scenario{}.View(), retrieve.Scenario{}.Metrics(), trials)
}

// Three of twenty trials fail: every median is 100 %, the share of operations is 85 %.
func TestSuccessGatesCountOperations(t *testing.T) {
	good := cellsOf(t, 20, func(int, *record.Trial) {})
	bad := cellsOf(t, 20, func(block int, x *record.Trial) {
		if block%6 == 5 {
			x.Outcomes, x.Metrics["success_rate"] = map[string]int64{"ok": 4, "error": 396}, 0.01
		}
	})
	for _, cell := range compared(t, good, bad).Cells {
		if v := cell.Metrics["success_rate"].New[0]; cell.System == "boxo" && (v.Median != 0.8515 || v.Ratio.Value != 0.8515) {
			t.Errorf("compared: %+v", v)
		}
	}
	slow := cellsOf(t, 20, func(_ int, x *record.Trial) { x.Outcomes["deadline"] = 100 })
	for _, c := range []struct {
		run         *analysis.Result
		gate, state string
	}{
		{good, "success_rate within 5% of nginx", analysis.GatePass},
		{bad, "success_rate within 5% of nginx", analysis.GateInconclusive},
		{bad, "success_rate within 60% of nginx", analysis.GatePass},
		{slow, "success_rate within 5% of nginx", analysis.GateInconclusive}, // had the deadlines been failures
		{slow, "success_rate within 30% of nginx", analysis.GatePass},
		{good, "success_rate no worse than BASE by 5%", analysis.GatePass},
		{bad, "success_rate no worse than BASE by 5%", analysis.GateInconclusive},
	} {
		var rulings []analysis.Ruling
		if with := compared(t, good, c.run); strings.Contains(c.gate, "BASE") {
			must(t, with.DecideGates([]string{c.gate}))
			rulings = with.Gates
		} else {
			var err error
			rulings, err = c.run.DecideGates([]string{c.gate})
			must(t, err)
		}
		if rulings[0].State != c.state {
			t.Errorf("%s: %s, want %s: %+v", c.gate, rulings[0].State, c.state, rulings[0].Cells)
		}
	}
}

// What follows from a median that was cut off is cut off too: half of the trials came near the load line.
func TestSharesOfTheLoadLineAreCensored(t *testing.T) {
	r := cellsOf(t, 12, func(block int, x *record.Trial) {
		if block%2 == 0 {
			x.Outcomes["deadline"] = 500
			delete(x.Metrics, "load_line_share")
		}
	})
	rulings, err := r.DecideGates([]string{"load_line_share >= 50% where system == boxo"})
	must(t, err)
	if rulings[0].State != analysis.GateInconclusive {
		t.Errorf("%+v", rulings[0])
	}
}

// A trial that was executed again counts once, also if its bytes were wrong and its validity is judged anew.
func TestSupersededTrialWithWrongBytes(t *testing.T) {
	plan := simulatedPlan(t, strings.Replace(simulated, "[1, 8, 64]", "8", 1))
	c := plan.Cells[0]
	first := trialOf(c, 0, 0, 400, map[string]float64{"throughput": 1e6})
	first.Outcomes["wrong-bytes"] = 1
	again := trialOf(c, 0, 1, 400, map[string]float64{"throughput": 40e6})
	r := analysed(t, plan, retrieve.Scenario{}.View(), retrieve.Scenario{}.Metrics(), []record.Trial{first, again})
	if m := r.Cells[0].Metrics["throughput"]; m.N != 1 || m.Median != 40e6 || r.Run.Done != 1 || !r.Found("wrong-bytes") {
		t.Errorf("%+v, %d done, %v", m, r.Run.Done, r.Findings)
	}
}

// An operation that never ends by itself in half of the trials has no median. A put has no first byte to wait for.
func TestOnlyWhatOperationsHaveIsCensored(t *testing.T) {
	plan := simulatedPlan(t, strings.Replace(simulatedCosts, "[put, get]", "[put, get, stat]", 1))
	var trials []record.Trial
	for _, c := range plan.Cells {
		x := trialOf(c, 0, len(trials), 9, map[string]float64{})
		x.Outcomes["deadline"] = 1
		trials = append(trials, x)
	}
	s := overhead.Scenario{}
	r := analysed(t, plan, s.View(), s.Metrics(), trials)
	for _, c := range r.Cells {
		op := c.Plan.Overhead.Operation
		for metric, want := range map[string]bool{"duration_p50": true, "first_byte_p50": op == "get",
			"throughput": op != "stat", "put_p50": false} {
			if got := analysis.Censored(r.Frame.Of(c, metric)) > 0; got != want {
				t.Errorf("%s of %s is censored: %t", metric, op, got)
			}
		}
	}
}
