package report

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
)

const predictFile = `
scenario: overhead
title: Synthetic costs to predict from
systems:
  - {use: tahoe, with: {needed: 2, total: 3}}
  - sftp
baseline: sftp
link: {rate: 100Mbit, delay: [0s, 5ms, 20ms, 40ms]}
data: {size: [48B, 1kB, 30kB, 1MB, 10MB]}
overhead: {operation: [put, get], longest: 5m}
repetitions: 4
`

func predicted(t *testing.T, dir string, set ...string) (*Prediction, error) {
	t.Helper()
	run, err := record.Open(dir)
	must(t, err)
	defer run.Close()
	all, err := Predict(run, set)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// A cell that was not run is predicted as the truth has it, in an interval that
// is not wide.
func TestCellsAreForetold(t *testing.T) {
	t.Parallel()
	dir := costs{file: predictFile, trial: linedCost}.write(t)
	p, err := predicted(t, dir, "data.size=300kB", "rtt=60ms")
	must(t, err)
	if len(p.Answers) != 4 {
		t.Fatalf("%d answers for two operations of two systems: %+v", len(p.Answers), p.Answers)
	}
	for _, a := range p.Answers {
		want := truths[a.System][strings.Split(a.What, ",")[0]]
		truth := want.a + want.rounds*0.06 + 300e3/want.rate
		if a.Refused != "" || a.Cells < 12 || a.Inside < a.Cells*85/100 {
			t.Errorf("%s, %s: %+v", a.System, a.What, a)
		}
		if math.Abs(float64(a.Trial.Value)/truth-1) > 0.03 || !(float64(a.Trial.Lo) < truth && truth < float64(a.Trial.Hi)) || a.Trial.Hi/a.Trial.Lo > 1.2 {
			t.Errorf("%s, %s: %+v, the truth is %g", a.System, a.What, a.Trial, truth)
		}
		// The synthetic operations of a trial are alike.
		if math.Abs(float64(a.Single.Lo/a.Trial.Lo)-1) > 0.01 || math.Abs(float64(a.Single.Hi/a.Trial.Hi)-1) > 0.01 {
			t.Errorf("%s, %s: a single operation is in %+v, the median of a trial in %+v", a.System, a.What, a.Single, a.Trial)
		}
		// A round trip, and the bytes that cross at the link's rate.
		line := 0.06 + 300e3*8/95e6
		if a.System == "tahoe" && strings.HasPrefix(a.What, "put") {
			line += (truthExpansion - 1) * 300e3 * 8 / 95e6
		}
		if math.Abs(float64(a.Line)/line-1) > 0.02 || a.Line > a.Trial.Value || a.Measured != nil {
			t.Errorf("%s, %s: the link alone needs %v s of %v, want %v; measured %+v", a.System, a.What, a.Line, a.Trial.Value, line, a.Measured)
		}
	}
	must(t, p.Only([]string{"sftp"}))
	if len(p.Answers) != 2 || p.Answers[0].System != "sftp" {
		t.Errorf("only sftp: %+v", p.Answers)
	}
	if err := p.Only([]string{"stfp"}); err == nil {
		t.Error("a system that is not there was accepted")
	}
	var b bytes.Buffer
	must(t, p.WriteText(&b, 100))
	for _, want := range []string{"Size 300 kB and delay 30 ms", "sftp", "put, connections keep", "of 2"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	for _, l := range strings.Split(b.String(), "\n") {
		if len([]rune(l)) > 100 {
			t.Errorf("longer than 100: %q", l)
		}
	}

	for _, c := range []struct {
		set  []string
		want string // of every answer
	}{
		{[]string{"data.size=1GB", "rtt=60ms"}, "a size of 1 GB is outside of what the fit rests on"},
		{[]string{"data.size=300kB", "rtt=200ms"}, "a round trip of 200 ms is outside"},
		{[]string{"data.size=300kB", "rtt=60ms", "link.rate=1Gbit"}, "no term for link.rate: it can only be what was run, 100 Mbit/s"},
		{[]string{"data.size=300kB", "rtt=60ms", "overhead.concurrency=4"}, "one operation under way at a time"},
		{[]string{"data.size=300kB", "rtt=60ms", "link.rate=100Mbit"}, ""},
	} {
		p, err := predicted(t, dir, c.set...)
		must(t, err)
		for _, a := range p.Answers {
			if (a.Refused == "") != (c.want == "") || !strings.Contains(a.Refused, c.want) || p.Refused() != (c.want != "") {
				t.Errorf("%v: %s, %s: refused: %q, want %q", c.set, a.System, a.What, a.Refused, c.want)
			}
		}
	}
	p, err = predicted(t, dir, "data.size=50B", "rtt=60ms", "overhead.operation=put")
	must(t, err)
	if len(p.Answers) != 2 || !strings.Contains(p.Answers[0].Refused, "never leave the client") || p.Answers[1].Refused != "" {
		t.Errorf("objects that never leave tahoe's client: %+v", p.Answers)
	}
	p, err = predicted(t, dir, "data.size=30kB", "rtt=40ms", "overhead.operation=get")
	must(t, err)
	if len(p.Answers) != 2 || p.Refused() || p.Try != "" {
		t.Errorf("a cell that was run: %+v", p)
	}
	for _, a := range p.Answers {
		want := truths[a.System]["get"]
		truth := want.a + want.rounds*0.04 + 30e3/want.rate
		if m := a.Measured; m == nil || m.Trials != 4 || math.Abs(float64(m.Value)/truth-1) > 0.05 || !a.Trial.Value.Known() {
			t.Errorf("%s: measured %+v beside %+v, the truth is %g", a.System, m, a.Trial, truth)
		}
	}
	b.Reset()
	must(t, p.WriteText(&b, 120))
	if words := showRange(p.Answers[0].Measured.Value, p.Answers[0].Measured.Lo, p.Answers[0].Measured.Hi, "s"); !strings.Contains(b.String(), "measured") || !strings.Contains(b.String(), words) {
		t.Errorf("no %q in\n%s", words, b.String())
	}
	// What was measured is told even where the model must not answer.
	p, err = predicted(t, dir, "size=48B", "delay=20ms", "operation=put")
	must(t, err)
	if len(p.Answers) != 2 || p.Answers[0].Refused == "" || p.Answers[0].Measured == nil || p.Answers[0].Measured.Cell == "" || p.Refused() {
		t.Errorf("a cell that was run and is not in the fit: %+v", p.Answers)
	}
	for _, c := range []struct {
		set  []string
		want string
	}{
		{[]string{"rtt=60ms"}, "data.size varies in this run (48 B"},
		{[]string{"data.size=1kB"}, "link.delay varies in this run"},
		{[]string{"data.size=1kB", "rtt=60ms", "link.delay=1ms"}, "link.delay is set twice"},
		{[]string{"data.size"}, "is not key=value"},
		{[]string{"rtt=fast"}, "rtt: link.delay"},
		{[]string{"data.szie=1kB"}, "did you mean `data.size`"},
		{[]string{"sise=1kB", "rtt=60ms"}, "did you mean `size`?"},
		{[]string{"size=1kB", "rt=60ms"}, "did you mean `rtt`?"},
		{[]string{"size=1kB", "rtt=60ms", "data.size=1kB"}, "data.size is set twice"},
		{[]string{"size=1kB", "up=60ms"}, "`up` is no factor of this experiment"},
		{[]string{"data.size=1kB", "rtt=60ms", "overhead.operation=stat"}, "no operation of this run is what was asked for"},
	} {
		if _, err := predicted(t, dir, c.set...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q in it", c.set, err, c.want)
		}
	}
}

// A check tells a model that predicts from one that only describes.
func TestChecksShowWhatPredictsAndWhatDoesNot(t *testing.T) {
	t.Parallel()
	check := func(s costs) *Prediction {
		run, err := record.Open(s.write(t))
		must(t, err)
		defer run.Close()
		p, err := CheckPredictions(run)
		must(t, err)
		var b bytes.Buffer
		must(t, p.WriteJSON(&b))
		back := &Prediction{}
		must(t, json.Unmarshal(b.Bytes(), back))
		return back
	}
	cells, inside, trials, within := 0, 0, 0, 0
	for _, c := range check(costs{file: predictFile}).Checks {
		cells, inside, trials, within = cells+c.Cells, inside+c.Inside, trials+c.Trials, within+c.Within
		if c.Refused != "" || len(c.Held) != c.Cells+c.Unasked {
			t.Errorf("%s, %s: %+v", c.System, c.What, c)
		}
	}
	if cells < 50 || inside < cells*85/100 || within < trials*88/100 {
		t.Errorf("%d of %d cells and %d of %d trials are in their intervals", inside, cells, within, trials)
	}
	// A time that grows with the cube of the round trip is no such sum.
	crooked := costs{file: predictFile, time: func(c experiment.Cell, rtt float64) float64 {
		return 0.02 + 0.3*math.Pow(rtt/0.04, 3) + float64(c.Data.Size)/1e7
	}}
	for _, c := range check(crooked).Checks {
		if c.Refused == "" {
			t.Errorf("%s, %s is not refused: %d of %d", c.System, c.What, c.Inside, c.Cells)
		}
	}
	p, err := predicted(t, crooked.write(t), "data.size=30kB", "rtt=60ms")
	must(t, err)
	if !p.Refused() || slices.ContainsFunc(p.Answers, func(a Predicted) bool { return a.Trial.Value.Known() }) {
		t.Errorf("a model that does not hold predicts: %+v", p.Answers)
	}
}

// An interval ends where the link does, and says so; a middle beyond it is refused.
func TestIntervalsEndWhereTheLinkEnds(t *testing.T) {
	for name, c := range map[string]struct {
		most    bool
		off     Num
		trial   Estimate
		want    Estimate
		refused bool
	}{
		"a time above the line":           {false, 0.07, Estimate{12, 11, 13}, Estimate{12, 11, 13}, false},
		"a time about the line":           {false, 0.07, Estimate{10.5, 8, 13}, Estimate{10.5, 10 / 1.07, 13}, false},
		"a time below the line":           {false, 0.07, Estimate{9, 8, 10}, noEstimate, true},
		"a rate below the line":           {true, 0.07, Estimate{9, 8, 10}, Estimate{9, 8, 10}, false},
		"a rate about the line":           {true, 0.07, Estimate{9.9, 9, 12}, Estimate{9.9, 9, 10.7}, false},
		"a rate above the line":           {true, 0.07, Estimate{11, 10, 12}, noEstimate, true},
		"a time without an interval":      {false, 0.07, Estimate{10, unknown, unknown}, Estimate{10, unknown, unknown}, false},
		"nothing where nothing is said":   {false, 0.07, noEstimate, noEstimate, false},
		"a rate that a lax link may have": {true, 0.12, Estimate{11, 10, 12}, Estimate{11, 10, 11.2}, false},
	} {
		a := Predicted{Unit: "s", Line: 10, Trial: c.trial, Single: noEstimate}
		a.cut(c.most, c.off)
		same := func(x, y Num) bool { return math.Abs(float64(x-y)) < 1e-9 || !x.Known() && !y.Known() }
		if !same(a.Trial.Value, c.want.Value) || !same(a.Trial.Lo, c.want.Lo) || !same(a.Trial.Hi, c.want.Hi) || (a.Refused != "") != c.refused {
			t.Errorf("%s: %+v, refused %q", name, a.Trial, a.Refused)
		}
		if cut := c.trial.Lo.Known() && c.trial != c.want && !c.refused; cut != strings.Contains(a.Note, "the model alone would go to") {
			t.Errorf("%s: note %q", name, a.Note)
		}
	}
}

// A link that may be off by more lets a trial be as much further beyond its line; what a
// finding lets pass no prediction refuses.
func TestLinksMayBeOffByTheirTolerance(t *testing.T) {
	for tolerance, want := range map[experiment.Fraction]Num{0: 0.07, 0.01: 0.07, 0.05: 0.07, 0.1: 0.12} {
		c := &Cell{}
		c.plan.Link.Tolerance = tolerance
		if got := linkMayBeOff(c); math.Abs(float64(got/want)-1) > 1e-9 {
			t.Errorf("with a tolerance of %v: %v, want %v", tolerance, got, want)
		}
	}
}

const ratesFile = `
scenario: overhead
title: Synthetic costs over links of two rates
systems: [sftp]
baseline: sftp
link: {rate: [100Mbit, 1Gbit], delay: [0s, 5ms, 20ms, 40ms]}
data: {size: [1kB, 30kB, 300kB, 1MB]}
overhead: {operation: [get, stat], longest: 5m}
repetitions: 4
`

// Where what is asked for leaves a factor open, several cells are what was asked for,
// over links of several rates: none is "not run", and no one line is all of theirs.
func TestQuestionsThatLeaveAFactorOpen(t *testing.T) {
	dir := costs{file: ratesFile, time: func(_ experiment.Cell, rtt float64) float64 { return 0.2 + rtt },
		trial: func(c experiment.Cell, trial *record.Trial) {
			if linedCost(c, trial); c.Overhead.Operation == "stat" {
				delete(trial.Metrics, "line")
				if c.Link.Delay > 0 {
					trial.Metrics["line"] = 2 * c.Link.Delay.Seconds()
				}
			}
		}}.write(t)
	run, err := record.Open(dir)
	must(t, err)
	defer run.Close()
	open := []string{"size=30kB", "rtt=40ms"}
	all, err := Predict(run, open, append(slices.Clone(open), "rate=100Mbit"), []string{"size=40kB", "rtt=40ms"})
	must(t, err)
	for i, ran := range []int{2, 1, 0} {
		get, stat := all[i].Answers[0], all[i].Answers[1]
		if get.Refused != "" || get.Ran != ran || (get.Measured != nil) != (ran == 1) {
			t.Errorf("question %d: %d cells, measured %+v, want %d cells; refused %q", i, get.Ran, get.Measured, ran, get.Refused)
		}
		if get.Line.Known() != (i == 1) || get.Line.Known() && math.Abs(float64(get.Line)/(0.04+30e3*8/95e6)-1) > 0.02 {
			t.Errorf("question %d: the line is %v", i, get.Line)
		}
		// A stat moves no object: one line for all rates, and without a delay none.
		if stat.What != "stat, connections keep" || math.Abs(float64(stat.Line)/0.04-1) > 0.02 {
			t.Errorf("question %d, %s: the line is %v", i, stat.What, stat.Line)
		}
	}
	var b bytes.Buffer
	must(t, WritePredictions(&b, all, 0))
	for _, want := range []string{"several cells", "not run", "rate", "any", "100 Mbit/s", "30 kB", "40 kB"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// A factor may be called by its last name where that is of one alone, or of one that
// varies.
func TestFactorsHaveShortNames(t *testing.T) {
	e := costs{file: predictFile}.plan(t).Experiment
	for key, want := range map[string]string{"size": "data.size", "data.size": "data.size", "delay": "link.delay", "rate": "link.rate", "operation": "overhead.operation", "nonsense": "nonsense", "ata.size": "ata.size"} {
		if got, err := fullPath(&e, key); err != nil || got != want {
			t.Errorf("%s: %q (%v), want %q", key, got, err, want)
		}
	}
}
