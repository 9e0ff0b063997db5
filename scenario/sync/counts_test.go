package sync

import (
	"testing"

	"github.com/plimsoll-project/plimsoll/scenario/internal/scenariotest"
	"github.com/plimsoll-project/plimsoll/system"
)

// TestSyncDuplicates: what peers delivered beyond the chain came twice.
func TestSyncDuplicates(t *testing.T) {
	for faults, want := range map[string]float64{"none": 200, "crash peers at 50%": -1} {
		scenariotest.Virtual(t, func(t *testing.T) {
			w := newSyncTest(t, 2, withFaults(faults))
			w.c.nodes[0].answer = func(f *system.Following) error {
				for i := range f.Peers {
					f.Peers[i].Blocks = 600
				}
				return nil
			}
			w.run()
			if got, has := w.m["duplicates"]; has != (want >= 0) || has && got != want {
				t.Errorf("%s: %v (%v)", faults, got, has)
			}
			for i := range w.c.nodes { // one of them does not tell
				w.c.nodes[i].answer = func(f *system.Following) error { f.Peers[0].Blocks = -1; return nil }
			}
			w.run()
			if got, has := w.m["duplicates"]; has {
				t.Errorf("%s: %v, and a share is not known", faults, got)
			}
		})
	}
}

// TestSyncCountsOfTheNode: what timed out and failed is the node's own sum, also
// where it does not know of which peer; of all its lives.
func TestSyncCountsOfTheNode(t *testing.T) {
	for _, c := range []struct {
		faults              string
		timedOut, failed    int64 // of each life
		timeouts, rerequest float64
	}{
		{"none", 5, 1, 5, 6},
		{"crash node at 50% for 2s", 5, 1, 10, 12},
		{"none", -1, -1, -1, -1},
		{"none", 5, -1, 5, -1},
	} {
		scenariotest.Virtual(t, func(t *testing.T) {
			w := newSyncTest(t, 2, withFaults(c.faults))
			w.c.nodes[0].answer = func(f *system.Following) error {
				f.TimedOut, f.Failed = c.timedOut, c.failed
				return nil
			}
			w.run()
			w.want(allOK)
			for key, want := range map[string]float64{"timeouts": c.timeouts, "rerequests": c.rerequest} {
				if got, has := w.m[key]; has != (want >= 0) || has && got != want {
					t.Errorf("%+v: %s is %v (%v)", c, key, got, has)
				}
			}
		})
	}
}
