package main

import (
	"math"
	"testing"

	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/sftp"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

// Polls are an hour apart, so that the test is over between two of them. It takes four
// seconds, of which the poll at its end is a small part.
const sparsePolls = `
scenario: upload
systems: [sftp]
link: {rate: 8Mbit}
data: {objects: 40, size: 100kB}
upload: {concurrency: 2, poll: 1h, verify: 100%}
repetitions: 1
warmup: 0
limits: {others: none, machine: none}
skip: [machine]
`

// Report and metrics of a load test have one bandwidth, of the time in which it
// stored.
func TestBandwidthOfSparsePolls(t *testing.T) {
	systemtest.Need(t, "sshd", system.Check(t.Context(), sftp.System{}, nil))
	t.Parallel()
	s := startRun(t, sparsePolls)
	if code := s.end(); code != ui.CodeOK {
		t.Fatalf("plimsoll ended with %d:\n%s", code, s.output())
	}
	rd, err := record.Open(s.dir)
	check(t, err)
	defer rd.Close()
	r, err := report.Build(rd)
	check(t, err)
	cell, m := r.Cells[0].Metrics, r.Frame.Trials[0].Metrics
	for _, key := range []string{"file_bandwidth", "absolute_bandwidth"} {
		at := float64(cell[key].Median)
		if !(m[key] > 0) || math.Abs(at/m[key]-1) > 1e-6 {
			t.Errorf("%s: the metric is %v, the report says %v", key, m[key], at)
		}
		least, bounded := cell[key+"_least"]
		if most := cell[key+"_most"]; bounded && (float64(least.Median) > at*(1+1e-6) ||
			float64(most.Median) < at*(1-1e-6)) {
			t.Errorf("%s is %v, and between %v and %v", key, at, least.Median, most.Median)
		}
	}
	if ratio := m["absolute_bandwidth"] / m["file_bandwidth"]; math.Abs(ratio-m["expansion"]) > 1e-6 {
		t.Errorf("%v times the bytes came in the same time, and the ratio of the bandwidths is %v: %v", m["expansion"],
			ratio, m)
	}
}
