package engine

import (
	"math"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// Trials too short for the kernel's ticks are judged by a window that ends with them.
func TestShortTrialsAreJudgedByAWindow(t *testing.T) {
	epoch := time.Now()
	const cpus = 2
	sample := func(seconds, share float64) record.Sample { // of others that use a constant share
		return record.Sample{Process: testbed.OthersSample, End: time.Duration(seconds * 1e9),
			CPU: seconds * share * cpus}
	}
	var r recentOthers
	trial := func(from, to, share float64) float64 {
		r.add(epoch, sample(from, share), sample(to, share))
		return r.window()[testbed.OthersSample].share(cpus)
	}
	if got := trial(0, 0.6, 0.5); !math.IsNaN(got) {
		t.Errorf("the first trial, 0.6 s: %v", got)
	}
	if got := trial(0.7, 1.3, 0.5); math.Abs(got-0.5) > 1e-9 {
		t.Errorf("the second: %v, want 0.5", got)
	}
	if got := trial(60, 60.6, 0.5); !math.IsNaN(got) {
		t.Errorf("a minute later: %v", got)
	}
	for i := range 200 {
		from := 61 + float64(i)
		if got := trial(from, from+0.5, 0.25); i > 2 && math.Abs(got-0.25) > 1e-9 {
			t.Fatalf("trial %d: %v, want 0.25", i, got)
		}
	}
	if len(r[testbed.OthersSample]) > 64 {
		t.Errorf("%d counts are kept", len(r[testbed.OthersSample]))
	}
}
