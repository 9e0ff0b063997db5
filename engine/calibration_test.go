package engine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// What the trials of one run took of the machine warns the next plan of 8 nodes, and not
// of 2; before the first run the machine line is unknown.
func TestPlanWarnsOfTheMachine(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv(testbed.CacheVariable, "")
	const file = `
scenario: disseminate
systems: [bittorrent]
data: {size: 20MB}
link: {rate: 100Mbit, delay: 1ms}
disseminate: {nodes: NODES, seeders: 1}
repetitions: 3
`
	plan := func(nodes string, limits string) *experiment.Plan {
		return swarmPlan(t, strings.Replace(file, "NODES", nodes, 1)+limits)
	}
	warned := func(p *experiment.Plan) int {
		warnings := problems(t.Context(), Config{Plan: p}, func(c precondition) bool { return c.name == machineLine })
		for _, w := range warnings {
			if w.Blocking || len(p.Cells) == 2 && (strings.Contains(w.What, p.Cells[0].ID) || !strings.Contains(w.What, p.Cells[1].ID)) {
				t.Errorf("it blocks, or names the wrong cells: %+v", w)
			}
		}
		return len(warnings)
	}
	if n := warned(plan("8", "")); n != 0 {
		t.Fatalf("before the first run: %d warnings", n)
	}

	past := plan("8", "")
	trial := func(block int, share, seconds float64, change func(*record.Trial)) record.Trial {
		tr := record.Trial{ID: int64(block + 2), Cell: past.Cells[0].ID, Block: block, State: record.Done, Seconds: seconds,
			Metrics: map[string]float64{"time_last": seconds, "box_cpu": share, "emulator_thread": 0.2}}
		if change != nil {
			change(&tr)
		}
		return tr
	}
	// 2 s of the machine line for 7 leechers of 20 MB each.
	const cost = 2 / (7 * 0.02)
	trials := []record.Trial{
		trial(0, 0.8, 2.5, nil), // valid
		trial(1, 1, 2, nil),     // limited by the machine
		trial(2, 0.9, 900, func(t *record.Trial) { t.Invalid = []string{record.ReasonDaemonDied} }), // not to be used, as all that follow
		trial(3, 0.9, 900, func(t *record.Trial) { delete(t.Metrics, "time_last") }),
		trial(-1, 0.9, 900, func(t *record.Trial) { t.Warmup = true }),
		trial(4, 0.9, 900, func(t *record.Trial) { t.Notes = []string{record.NoteNotEmulated} }),
		trial(5, 0.9, 900, func(t *record.Trial) { t.State = record.Failed }),
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(calibrate(past, trials))
	known, err := readCalibration()
	must(err)
	for cpus, systems := range known {
		if got := systems["bittorrent"]; got < 0.999*cost || got > 1.001*cost {
			t.Errorf("%s: %v s per GB, want %v", cpus, got, cost)
		}
	}
	for _, c := range []struct {
		nodes, limits string
		want          int
	}{{"8", "", 1}, {"2", "", 0}, {"[2, 8]", "", 1}, {"8", "limits: {machine: none}\n", 0}, {"8", "skip: [machine-line]\n", 0}} {
		if n := warned(plan(c.nodes, c.limits)); n != c.want {
			t.Errorf("%s nodes, %s: %d warnings, want %d", c.nodes, c.limits, n, c.want)
		}
	}

	path := filepath.Join(cache, "plimsoll", calibrationFile)
	must(os.WriteFile(path, []byte("{"), 0o644))
	if n := warned(plan("2", "")); n != 1 {
		t.Errorf("a broken file: %d warnings", n)
	}
	if err := calibrate(past, trials); err == nil {
		t.Error("a broken file is replaced without a word")
	}
}
