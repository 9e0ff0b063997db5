package report

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/report/internal/synthetic"
)

const kneeFile = `
scenario: retrieve
title: Knee
question: How many at once?
systems: [nginx, static]
baseline: nginx
link: {rate: 1Gbit, delay: 20ms}
data: {size: 64MiB}
retrieve: {concurrency: [1, 2, 4, 8, 16, 32, 64], range: 1MiB, requests: 256}
repetitions: 6
limits: {deadline: 60s}
`

// A system that gets slower beyond 16 at once beside one that the link limits: the
// one has a knee where it was put, with its curve in the figure; the other has none,
// and the link is named.
func TestKneeOfARun(t *testing.T) {
	t.Parallel()
	falls := func(n float64) float64 { return 12e6 * n / (1 + 0.03*(n-1) + 4e-3*n*(n-1)) } // most at 15.6
	r := built(t, synthetic.Run{File: kneeFile, Blocks: 6, Own: func(system string, n float64) float64 {
		if system == "static" {
			return falls(n)
		}
		return 4e9
	}})
	keepPage(t, r, "knee")
	knee, none := r.found("knee"), r.found("no-knee")
	if knee == nil || len(knee.Evidence) != 1 || !strings.HasPrefix(knee.Evidence[0], "static: N* = 1") || !strings.Contains(knee.Evidence[0], "MB/s at 64; median time of an operation") {
		t.Errorf("found %+v", knee)
	}
	if none == nil || len(none.Evidence) != 1 || !strings.HasPrefix(none.Evidence[0], "nginx: none up to 64") || !strings.Contains(none.Evidence[0], "the link is the limit") {
		t.Errorf("found %+v", none)
	}
	if v := r.Verdict; v.Tone == Good || !strings.Contains(v.Text, "; static is slower beyond N* = 1") || strings.Contains(v.Text, "nginx is slower beyond") {
		t.Errorf("verdict: %+v", v)
	}
	if said := r.Answer[1]; said.System != "static" || !strings.Contains(said.Text, "; slower beyond N* = 1") || !strings.Contains(said.Text, " at 64.") || strings.Contains(r.Answer[0].Text, "slower beyond") {
		t.Errorf("answers: %+v", r.Answer)
	}
	for _, k := range r.knees {
		if at := k.Fit.Peak.Mid; k.Seen && (at < 13.5 || at > 18) {
			t.Errorf("the knee is at %g, it was put at 15.6", at)
		}
	}
	raw, err := json.Marshal(r.Hero)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(raw), "static: most at N*") || strings.Contains(string(raw), "nginx: most at N*") || !strings.Contains(string(raw), "law of scalability") {
		t.Error("the figure lacks the knee")
	}
	// A fall at levels at which the machine's CPUs are full is not the system's.
	for i := range r.Trials {
		tr := &r.Trials[i]
		if f, ok := tr.Info.Factor("retrieve.concurrency"); ok && f.Number > 8 && tr.Info.System == "static" {
			tr.Metrics["box_cpu"] = 0.97
		}
	}
	r.scaling()
	for _, f := range knees(r) {
		if f.Rule != "no-knee" || !strings.Contains(strings.Join(f.Evidence, ";"), "static: none up to 64") || !strings.Contains(strings.Join(f.Evidence, ";"), "at 16, 32 and 64 the machine is the limit") {
			t.Errorf("of a full machine: %+v", f)
		}
	}
	// One that is slower from the first level on has none either, and its fall is told.
	for i := range r.Trials {
		tr := &r.Trials[i]
		if f, ok := tr.Info.Factor("retrieve.concurrency"); ok && tr.Info.System == "static" {
			delete(tr.Metrics, "box_cpu")
			tr.Metrics["throughput"] = 12e6 / f.Number * (1 + 0.02*float64(tr.Block%3))
		}
	}
	r.scaling()
	if r.Findings = knees(r); r.found("throughput-falls") == nil || r.found("knee") != nil {
		t.Errorf("of a fall from the first level: %+v", r.Findings)
	}
	// A system that grows has none, and no curve is drawn.
	grows := built(t, synthetic.Run{File: kneeFile, Blocks: 6, Own: func(_ string, n float64) float64 { return 1.5e6 * n }})
	if strings.Contains(grows.Verdict.Text+grows.Answer[0].Text, "slower beyond") {
		t.Errorf("verdict %+v, answers %+v", grows.Verdict, grows.Answer)
	}
	if f := grows.found("knee"); f != nil {
		t.Errorf("found %+v", f)
	}
	if raw, err := json.Marshal(grows.Hero); err != nil || strings.Contains(string(raw), "N*") {
		t.Error("a curve without a knee is drawn")
	}
}
