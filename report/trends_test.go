package report

import (
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
)

const fillFile = `
scenario: overhead
systems: [tahoe]
link: {rate: 100Mbit, delay: 0s}
data: {size: 1kB}
overhead: {operation: fill, objects: 1000, longest: 5m}
repetitions: 8
`

// Trials whose median is beyond what was watched are the slow ones: without them
// a slope is too flat, so that none among the others says nothing, and that they
// are missing is said.
func TestTrialsThatWereCutOffAreNotDroppedSilently(t *testing.T) {
	cutAt := func(most float64) *Report {
		return costs{file: fillFile, trial: func(_ experiment.Cell, trial *record.Trial) {
			delete(trial.Metrics, "stat_p50")
			if trial.Metrics["stored_objects"] > most {
				delete(trial.Metrics, "get_p50")
			}
		}, outcomes: func(trial *record.Trial) map[string]int64 {
			if _, ok := trial.Metrics["get_p50"]; ok {
				return map[string]int64{"ok": 1010}
			}
			return map[string]int64{"ok": 1002, record.Deadline.String(): 8}
		}}.built(t)
	}
	r := cutAt(5000)
	var get, put Trend
	for _, s := range summaryJSON(t, r).Trends {
		switch s.Operation {
		case "get":
			get = s
		case "put":
			put = s
		case "stat":
			t.Errorf("nobody asked: %+v", s)
		}
	}
	if get.N != 5 || get.Cut != 3 || put.Cut != 0 || put.N != 8 {
		t.Errorf("get %+v, put %+v", get, put)
	}
	f := r.found("objects-cut")
	if f == nil || f.Tone != Warn || len(f.Evidence) != 1 || !strings.Contains(f.Evidence[0], "tahoe, get: 3 trials left out, 5 others") {
		t.Errorf("findings %+v", r.Findings)
	}
	if f := r.found("objects-flat"); f != nil && strings.Contains(strings.Join(f.Evidence, " "), "get") {
		t.Errorf("no slope is claimed of what is left: %+v", f.Evidence)
	}
	// All of them.
	r = cutAt(0)
	if f := r.found("objects-cut"); f == nil || !strings.Contains(f.Evidence[0], "8 trials left out") {
		t.Errorf("findings %+v", r.Findings)
	}
	text(t, r, 100)
	page(t, r)
}
