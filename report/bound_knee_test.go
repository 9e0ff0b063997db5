package report

import (
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
// throughput of the one falls, that of the other does not.
func TestThroughputFallsUnderLoad(t *testing.T) {
	t.Parallel()
	falls := func(n float64) float64 { return 12e6 * n / (1 + 0.03*(n-1) + 4e-3*n*(n-1)) } // most at 15.6
	r := built(t, synthetic.Run{File: kneeFile, Blocks: 6, Own: func(system string, n float64) float64 {
		if system == "static" {
			return falls(n)
		}
		return 4e9
	}})
	said := r.found("throughput-falls")
	if said == nil || len(said.Evidence) != 1 || len(said.Subjects) != 1 || said.Subjects[0] != "static" {
		t.Errorf("found %+v", said)
	}
	if v := r.Verdict; v.Tone == Good || !strings.Contains(v.Text, "static is slower with 64 at once than with 16") || strings.Contains(v.Text, "nginx is slower with") {
		t.Errorf("verdict: %+v", v)
	}
	// A fall at levels at which the machine's CPUs are full is not the system's.
	for i := range r.Trials {
		tr := &r.Trials[i]
		if f, ok := tr.Info.Factor("retrieve.concurrency"); ok && f.Number > 8 && tr.Info.System == "static" {
			tr.Metrics["box_cpu"] = 0.97
		}
	}
	r.throughputFalls()
	if f := throughputFallsFound(r); f != nil {
		t.Errorf("of a full machine: %+v", f)
	}
	grows := built(t, synthetic.Run{File: kneeFile, Blocks: 6, Own: func(_ string, n float64) float64 { return 1.5e6 * n }})
	if f := grows.found("throughput-falls"); f != nil {
		t.Errorf("found %+v", f)
	}
}
