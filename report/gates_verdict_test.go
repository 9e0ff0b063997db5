package report

import (
	"strings"
	"testing"
)

// A gate that does not pass leads the verdict, but behind what is graver; a goal and
// what needs a base run do not change its tone.
func TestGatesLeadTheVerdict(t *testing.T) {
	of := func(states ...string) (all []Ruling) {
		for i, s := range states {
			all = append(all, Ruling{Rule: "rule-" + string(rune('a'+i)), State: s})
		}
		return all
	}
	served := Verdict{"Every request was served.", Good}
	for _, c := range []struct {
		was   Verdict
		gates []Ruling
		want  Verdict
	}{
		{served, nil, served},
		{served, []Ruling{{Rule: "x", State: RuleFail, Goal: true}}, served},
		{served, of(RulePass), Verdict{"Every request was served. The gate passes.", Good}},
		{served, of(RulePass, RulePass), Verdict{"Every request was served. All 2 gates pass.", Good}},
		{served, of(RulePass, RuleBase), Verdict{"Every request was served. 1 of 2 gates passes; 1 of 2 gates needs a base run (plimsoll compare): rule-b.", Good}},
		{served, of(RuleBase), Verdict{"Every request was served. The gate needs a base run (plimsoll compare): rule-a.", Good}},
		{served, of(RuleFail), Verdict{"The gate fails: rule-a. Every request was served.", Bad}},
		{served, of(RulePass, RuleFail, RuleOpen, RuleFail, RuleFail), Verdict{"3 of 5 gates fail: rule-b; rule-d; and 1 more; 1 of 5 gates cannot be told: rule-c. Every request was served.", Bad}},
		{served, of(RuleOpen, RulePass), Verdict{"1 of 2 gates cannot be told: rule-a. Every request was served.", Warn}},
		{Verdict{"Wrong bytes were served by boxo.", Bad}, of(RuleFail), Verdict{"Wrong bytes were served by boxo. The gate fails: rule-a.", Bad}},
		{served, append(of(RulePass), Ruling{Rule: "rule-a", Run: "another", State: RuleFail}), Verdict{"The gate fails: rule-a. Every request was served.", Bad}},
	} {
		if got := c.was.holding(c.gates); got != c.want {
			t.Errorf("%+v: %+v, want %+v", c.gates, got, c.want)
		}
	}
}

// A run that fails its own gate says so on the first screen, in the navigation and
// on the terminal; one that goes on does not complain of what it cannot tell yet.
func TestARunTellsItsGates(t *testing.T) {
	run := fakeRun{seed: 4, trials: 12, value: scattered(0.8)}
	in := run.input(t)
	in.plan.Gates = []string{"throughput > 1 kB/s", "throughput > 90 MB/s"}
	r := compute(in)
	if !strings.HasPrefix(r.Verdict.Text, "1 of 2 gates fails: throughput > 90 MB/s. ") || r.Verdict.Tone != Bad {
		t.Errorf("verdict %+v", r.Verdict)
	}
	var b strings.Builder
	must(t, r.WriteHTML(&b))
	if !strings.Contains(b.String(), `<a href="#gates">Gates</a>`) || !strings.Contains(b.String(), `<section id="gates">`) {
		t.Error("no way to the gates")
	}
	b.Reset()
	must(t, r.WriteText(&b, 100))
	if !strings.Contains(b.String(), "1 of 2 gates fails: throughput > 90 MB/s. ") || !strings.Contains(b.String(), "gate: throughput > 90 MB/s: FAIL") {
		t.Errorf("the terminal says %s", b.String())
	}
	b.Reset()
	must(t, compute(run.input(t)).WriteHTML(&b))
	if strings.Contains(b.String(), `<a href="#gates">`) {
		t.Error("a way to gates that there are not")
	}
	r.Gates[1].State = RuleOpen
	r.judge()
	if r.Verdict.Tone != Warn || !strings.HasPrefix(r.Verdict.Text, "1 of 2 gates cannot be told") {
		t.Errorf("verdict %+v", r.Verdict)
	}
	r.Run.State = "running"
	r.judge()
	if strings.Contains(r.Verdict.Text, "cannot be told") {
		t.Errorf("verdict %+v", r.Verdict)
	}
}
