package main

import (
	"math"
	"testing"

	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report"
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

// The page and the metrics of a load test tell one bandwidth, of the time in which
// it stored.
func TestBandwidthOfSparsePolls(t *testing.T) {
	systemtest.Need(t, "sshd", sftp.System{}.Check(t.Context(), nil))
	s := startRun(t, sparsePolls)
	if code := s.end(); code != ui.CodeOK {
		t.Fatalf("plimsoll ended with %d:\n%s", code, s.output())
	}
	rd, err := record.Open(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rd.Close()
	r, err := report.Build(rd)
	if err != nil {
		t.Fatal(err)
	}
	m, l := r.Trials[0].Metrics, r.Loads[0]
	for _, c := range []struct {
		name         string
		metric, page float64
	}{
		{"file bandwidth", m["file_bandwidth"], float64(l.FileRate.Value)},
		{"absolute bandwidth", m["absolute_bandwidth"], float64(l.AbsoluteRate.Value)},
	} {
		if !(c.metric > 0) || math.Abs(c.page/c.metric-1) > 1e-6 {
			t.Errorf("%s: the metric is %v, the page says %v", c.name, c.metric, c.page)
		}
	}
	if ratio := m["absolute_bandwidth"] / m["file_bandwidth"]; math.Abs(ratio-m["expansion"]) > 1e-6 {
		t.Errorf("%v times the bytes came in the same time, and the ratio of the bandwidths is %v: %v", m["expansion"], ratio, m)
	}
}
