package report

import (
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
)

const localFile = `
scenario: overhead
systems: [tahoe, sftp]
baseline: sftp
link: {rate: 100Mbit, delay: [0s, 5ms, 20ms, 40ms]}
data: {size: [1kB, 10kB, 100kB, 1MB, 10MB]}
overhead: {operation: [put, get, stat], longest: 5m}
repetitions: 6
`

// localAt makes the operations of a system local: their time is that of its
// client, and the link carries what daemons say to one another.
func localAt(system string, talk float64) costs {
	return costs{file: localFile, time: func(c experiment.Cell, rtt float64) float64 {
		if c.Overhead.Operation == "stat" {
			return 0.001 + rtt
		}
		return 0.003 + 2*rtt + float64(c.Data.Size)/11e6
	}, trial: func(c experiment.Cell, t *record.Trial) {
		if c.System != system {
			if c.Overhead.Operation == "stat" {
				t.Metrics["wire_bytes"] = 300
			}
			return
		}
		took := 0.002 + float64(c.Data.Size)/50e6 // 10 MB take longer than any round trip
		if c.Overhead.Operation == "stat" {
			took, t.Details = 0.001, nil
		}
		noise := t.Metrics["system_cpu_per_op"] / 0.01
		t.Metrics["duration_p50"], t.Metrics["wire_bytes"], t.Metrics["expansion"] = took*noise, talk, 0
		t.Metrics["disk_per_byte"] = 0
	}}
}

// What never crosses the link has no place beside what does: no ratio, no rate of
// the link, and the words say so.
func TestLocalOperationsAreComparedWithNothing(t *testing.T) {
	for _, talk := range []float64{0, 400} {
		r := localAt("tahoe", talk).built(t)
		for _, op := range []string{"put", "get", "stat"} {
			f := fitIn(t, r, "tahoe", op)
			if !f.Inline.whole() || f.Inline.Stays != 1e7 || f.Against != nil || f.LineShare.Value.Known() {
				t.Errorf("%s: inline %+v, against %+v, of the line %v", op, f.Inline, f.Against, f.LineShare.Value)
			}
			if w := f.words(); strings.Contains(w, "then") || !strings.Contains(w, "nothing crossed the link") || strings.Contains(w, "round trip") {
				t.Errorf("%s: %q", op, w)
			}
			if base := fitIn(t, r, "sftp", op); base.Inline != nil {
				t.Errorf("%s of the baseline: %+v", op, base.Inline)
			}
		}
		for _, c := range r.cells() {
			if _, ok := c.Ratios["duration_p50"]; ok {
				t.Fatalf("%s %s is compared", c.System, c.overhead().Operation)
			}
		}
		if len(r.Overall) != 0 || strings.Contains(r.Verdict.Text, "than sftp") {
			t.Errorf("overall %+v, verdict %q", r.Overall, r.Verdict.Text)
		}
		if f := r.found("inline"); f == nil || len(f.Evidence) != 3 || r.found("same-bytes") != nil {
			t.Errorf("findings %+v", r.Findings)
		}
		text(t, r, 100)
		page(t, r)
	}
}

// Nor has what crosses a place beside a baseline that is local.
func TestALocalBaselineIsNone(t *testing.T) {
	r := localAt("sftp", 0).built(t)
	if f := fitIn(t, r, "tahoe", "get"); f.Against != nil || f.Inline != nil || len(r.Overall) != 0 {
		t.Errorf("against %+v, inline %+v, overall %+v", f.Against, f.Inline, r.Overall)
	}
}

func TestRatiosOfSmallObjectsThatStay(t *testing.T) {
	r := sharedCosts(t)
	compared := 0
	for _, c := range r.cells() {
		if c.System != "tahoe" || !c.sequential() {
			continue
		}
		_, ok := c.Ratios["duration_p50"]
		if want := c.overhead().Operation != "put" || c.size() > truthInline; ok != want {
			t.Errorf("%s of %g bytes compared: %v", c.overhead().Operation, c.size(), ok)
		}
		if ok {
			compared++
		}
	}
	if compared == 0 {
		t.Error("nothing is compared")
	}
}

// A system that is merely quick, or near, is not local.
func TestQuickIsNotLocal(t *testing.T) {
	r := costs{file: localFile, time: func(c experiment.Cell, rtt float64) float64 { return 0.0005 + rtt + float64(c.Data.Size)/11e6 }}.built(t)
	for _, f := range r.Fits {
		if f.Inline != nil {
			t.Errorf("%s, %s: %+v", f.System, f.Operation, f.Inline)
		}
	}
}

// Where only sizes that stay have valid trials, nothing is known of the others.
func TestSmallSizesDoNotSpeakForLargeOnes(t *testing.T) {
	r := costs{trial: func(c experiment.Cell, trial *record.Trial) {
		if c.System == "tahoe" && c.Data.Size > truthInline {
			trial.Invalid = []string{record.ReasonBoxBusy}
		}
	}}.built(t)
	f := fitIn(t, r, "tahoe", "put")
	if f.model != nil || f.Why == "" || f.Inline == nil || f.Inline.Whole || f.Inline.Stays != 40 || strings.Contains(r.Verdict.Text, "tahoe nothing") {
		t.Errorf("%+v, inline %+v, verdict %q", f, f.Inline, r.Verdict.Text)
	}
	text(t, r, 100)
}
