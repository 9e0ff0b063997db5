package report

import (
	"slices"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/report/findings"
)

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
		if fit == nil || len(fit.Rounds) != 1 || len(shares[i].RoundTrips) == 0 {
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
