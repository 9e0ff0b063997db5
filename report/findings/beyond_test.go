package findings

import (
	"strings"
	"testing"
)

func TestBeyond(t *testing.T) {
	cell := Lined{Where: "nginx, concurrency 1", Measure: "duration", Tolerance: 0.05, Shares: []float64{0.99, 1.02, 1.2, 1.069}}
	got := Beyond([]Lined{{Where: "static", Shares: []float64{0.3, 1.019}}, cell})
	if len(got) != 1 || len(got[0].Evidence) != 1 || !strings.Contains(got[0].Evidence[0], "nginx, concurrency 1: duration of 1 of 4 trials, at up to 120 % of the line") {
		t.Fatalf("%+v", got)
	}
	cell.Shares[2] = 1.06
	if got := Beyond([]Lined{cell}); got != nil {
		t.Errorf("all within tolerance and slack: %+v", got)
	}
}

func TestAcceptedBeyond(t *testing.T) {
	cell := Lined{Where: "s3", Measure: "file bandwidth", Tolerance: 0.05, Shares: []float64{0.4, 3}}
	if got := AcceptedBeyond([]Lined{cell}); len(got) != 1 || got[0].Rule != "accepted-beyond-line" || got[0].Tone != Warn || !strings.Contains(got[0].Evidence[0], "1 of 2 trials, at up to 300 %") {
		t.Errorf("%+v", got)
	}
	cell.Shares[1] = 1.06
	if got := AcceptedBeyond([]Lined{cell}); got != nil {
		t.Errorf("within tolerance and slack: %+v", got)
	}
}
