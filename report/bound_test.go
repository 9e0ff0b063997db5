package report

import (
	"slices"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report/findings"
	"github.com/plimsoll-project/plimsoll/report/internal/synthetic"
	"github.com/plimsoll-project/plimsoll/scenario"
)

// A megabyte on a fresh connection over a long way is at its line with the link nearly
// empty: what it waits for are the pauses of slow start, which are round trips.
func TestRoundTripsOfSlowStart(t *testing.T) {
	file := strings.NewReplacer("[1, 2, 4, 8, 16, 32, 64], range: 1MiB, requests: 256", "1, range: 1MB, requests: 20, connections: fresh").Replace(kneeFile)
	r := built(t, synthetic.Run{File: file, Blocks: 6})
	line := scenario.LoadLine(1, 1e6, 125e6, 0.08, true)
	for i := range r.Trials {
		tr := &r.Trials[i]
		tr.Metrics["load_line_share"], tr.Metrics["duration_p50"] = 0.97, 1e6/line/0.97
		r.checks[tr.ID] = record.LinkCheck{WantRate: 1e9, Rate: 1e9, WantRTT: 0.08, RTT: 0.08}
	}
	for _, b := range findings.Bound(r.sharesOfCells()) {
		if !slices.Contains(b.By, findings.Link) || !slices.Contains(b.By, findings.RoundTrips) {
			t.Errorf("%s is bound by %v, round trips %v", b.Cell.System, b.By, b.Cell.RoundTrips)
		}
	}
}

// Of single operations the fit tells which are mostly round trips: small ones over a
// long way, and none where the way is short.
func TestRoundTripsOfSingleOperations(t *testing.T) {
	r := sharedCosts(t)
	f := r.found("rtt-bound")
	if f == nil || !strings.Contains(strings.Join(f.Evidence, "\n"), "sftp in ") {
		t.Fatalf("found %+v", f)
	}
	judged := 0
	shares := r.sharesOfCells()
	for i, b := range findings.Bound(shares) {
		c := r.cells()[i]
		fit := r.fitOf(c.task())
		if fit == nil || !fit.Rounds.Value.Known() || len(shares[i].RoundTrips) == 0 {
			continue
		}
		judged++
		truth := truths[c.System][c.overhead().Operation]
		trips := truth.rounds * r.roundTrip(c)
		of := trips / float64(c.Metrics["duration_p50"].Median)
		if is := slices.Contains(b.By, findings.RoundTrips); is && of < 0.45 || !is && of > 0.7 {
			t.Errorf("%s, %s, %s: %.2f of the time is round trips, bound by %v", c.System, c.overhead().Operation, r.placeOf(c), of, b.By)
		}
	}
	if judged < 10 {
		t.Errorf("%d cells were judged", judged)
	}
}
