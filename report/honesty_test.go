package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/record"
)

// What must never look healthy.

func TestNumbersOfTheBareMachineSaySoFirst(t *testing.T) {
	r := reportOf(map[string][]float64{"base": {1e6, 1e6}, "sys": {1e6, 1e6}}, func(t *record.Trial) {
		t.Notes = append(t.Notes, record.NoteNotEmulated)
	})
	if !strings.HasPrefix(r.Verdict.Text, "Links were not emulated") || r.Verdict.Tone != Bad || r.found("link-not-emulated") == nil {
		t.Errorf("verdict %+v", r.Verdict)
	}
}

func TestAnOverloadedOpenLoopIsNotServed(t *testing.T) {
	r := reportOf(map[string][]float64{"base": {1e6, 1e6}, "sys": {1e6, 1e6}}, func(t *record.Trial) {
		t.Metrics["achieved_share"] = 0.39
	})
	if !strings.HasPrefix(r.Verdict.Text, "The offered load was not kept up with") || r.Verdict.Tone != Bad {
		t.Errorf("verdict %+v", r.Verdict)
	}
	if f := r.found("overloaded"); f == nil || !strings.Contains(strings.Join(f.Evidence, " "), "39 %") {
		t.Errorf("findings %+v", r.Findings)
	}
	r = reportOf(map[string][]float64{"base": {1e6, 1e6}, "sys": {1e6, 1e6}}, func(t *record.Trial) {
		t.Metrics["achieved_share"] = 0.99
	})
	if r.found("overloaded") != nil {
		t.Errorf("a load that was kept up with is a finding: %+v", r.Findings)
	}
}

// A cell whose trials are all invalid has requests that ended: what it lacks is a trial.
func TestACellWithoutValidTrialsIsNotOneWithoutRequests(t *testing.T) {
	r := *sharedReport(t)
	r.Cells = slices.Clone(r.Cells)
	c := &r.Cells[0]
	c.Success, c.Invalid, c.Valid = Proportion{}, c.Valid, 0
	want := fmt.Sprintf("1 of %d cells have no valid trial", len(r.Cells))
	if said, _ := r.served(); said != want {
		t.Errorf("%q, want %q", said, want)
	}
	r.Run.Valid = r.Run.Done - 1
	if said := fmt.Sprint(r.facts()); !strings.Contains(said, " in valid trials}") || !strings.Contains(said, " in all trials}") {
		t.Errorf("operations and time are not of the same trials, which is not said: %s", said)
	}
}

func TestASystemWithoutRequestsIsNotServed(t *testing.T) {
	r := reportOf(map[string][]float64{"base": {1e6, 1e6}, "sys": {1e6, 1e6}}, func(t *record.Trial) {
		if t.ID > 2 { // those of sys
			t.State, t.Error, t.Metrics, t.Outcomes = record.Failed, "drop over https", nil, nil
		}
	})
	silent := 0
	for _, s := range r.Systems {
		known := false
		for _, c := range r.Cells {
			known = known || c.System == s.Name && c.Success.Of > 0
		}
		if !known {
			silent++
			if !strings.Contains(r.Verdict.Text, s.Name) {
				t.Errorf("nothing was measured of %s, and the verdict says %q", s.Name, r.Verdict.Text)
			}
		}
	}
	if silent == 0 {
		t.Error("the test made no system silent")
	}
}

func TestNoPlusMinusOfFewTrials(t *testing.T) {
	if got := plusMinus(summaryOf([]float64{10, 11}, []int{0, 1}), "s"); got != "" {
		t.Errorf("two trials have the interval %q", got)
	}
	if got := plusMinus(summaryOf([]float64{10, 11, 10, 12, 11, 10}, []int{0, 1, 2, 3, 4, 5}), "s"); !strings.HasPrefix(got, "±") {
		t.Errorf("six trials have the interval %q", got)
	}
	// A share of a tiny median says nothing: the interval does.
	if got := plusMinus(summaryOf([]float64{1e-4, 3e-4, 2e-4, 3e-4, 5e-3, 1e-2}, []int{0, 1, 2, 3, 4, 5}), "s"); got != "(100–10000)" {
		t.Errorf("300 µs in 0.1 ms to 10 ms have the interval %q", got)
	}
}

func TestShortTrialsAreNamed(t *testing.T) {
	cut := func(ok int64) *Finding {
		return reportOf(map[string][]float64{"base": {1e6, 1e6}, "sys": {1e6, 1e6}}, func(t *record.Trial) {
			t.Outcomes = map[string]int64{"ok": ok, "in-flight": 4}
		}).found("short-trials")
	}
	if f := cut(24); f == nil || !strings.Contains(f.Evidence[0], "6.0 requests of each connection") {
		t.Errorf("six requests of each connection are not named: %+v", f)
	}
	if f := cut(400); f != nil {
		t.Errorf("a hundred requests of each connection are called few: %+v", f)
	}
}
