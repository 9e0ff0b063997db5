package main

import (
	"errors"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/facts"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	scenarios "github.com/plimsoll-project/plimsoll/scenario/all"
)

// recomputed checks that the metrics of a run's trials follow from what its directory
// holds, and says of how many trials that is so.
func recomputed(t *testing.T, dir string) (n int) {
	t.Helper()
	r := readRun(t, dir)
	defer r.Close()
	for _, trial := range r.trials {
		if len(trial.Metrics) == 0 {
			continue
		}
		n++
		of := scenarios.ByName(r.plan.Experiment.Scenario)
		got, err := scenario.Recompute(of, r.Reader, trial, r.cell(trial), nil)
		must(t, err)
		keys := maps.Clone(got)
		maps.Copy(keys, trial.Metrics)
		wantSame(t, dir, trial, got, slices.Sorted(maps.Keys(keys)), 1e-9)
	}
	return n
}

// wantSame compares the metrics of a trial with those that were computed again.
func wantSame(t *testing.T, run string, trial record.Trial, again map[string]float64, keys []string,
	tolerance float64) {
	t.Helper()
	for _, key := range keys {
		stored, was := trial.Metrics[key]
		got, is := again[key]
		if was != is || math.Abs(got-stored) > tolerance*math.Abs(stored) {
			t.Errorf("%s: trial %d (%s): %s is stored as %v (there: %v), and computed as %v (there: %v)", run,
				trial.ID, trial.Cell, key, stored, was, got, is)
		}
	}
}

// fromFixtures are the stored metrics that follow from the operations, marks and links of
// the committed runs. Their other metrics were stored without what they are computed from;
// load tests have no rows but those that each report computes from polls and jobs.
var fromFixtures = map[string][]string{
	"retrieve": {"throughput", "ops_rate", "success_rate", "duration_p50", "ttfb_p50"},
	"overhead": {"throughput", "success_rate", "duration_p50"},
	"disseminate": {"time_p25", "time_median", "time_p75", "time_last", "first_byte", "speed_median",
		"ok_rate", "overhead", "seeder_share", "stalls", "system_cpu", "node_rss_peak"},
	"sync": {"sync_time", "chain_time", "net_time", "first_block", "index_lag", "ok_rate"},
}

// The committed runs are of a version that recorded less: their trials keep the metrics
// that were stored, and what can be computed again of each is what was stored.
func TestFixturesRecomputed(t *testing.T) {
	t.Parallel()
	for _, name := range facts.Names(t) {
		r, err := record.Open(facts.Unpack(t, name))
		must(t, err)
		defer r.Close()
		plan, err := experiment.ReadPlan(r.Plan())
		must(t, err)
		trials, err := r.Trials()
		must(t, err)
		s := scenarios.ByName(plan.Experiment.Scenario)
		for _, trial := range trials {
			cell := plan.Cells[slices.IndexFunc(plan.Cells, func(c experiment.Cell) bool { return c.ID == trial.Cell })]
			if _, err := scenario.Recompute(s, r, trial, cell, nil); !errors.Is(err, scenario.ErrNoFacts) {
				t.Errorf("%s, trial %d: got %v", name, trial.ID, err)
			}
			in, err := scenario.ReadFacts(r, trial, cell)
			must(t, err)
			in.Summary, err = r.Summary(trial.ID)
			must(t, err)
			in.Load.Seconds = trial.Seconds
			again := s.Measure(in)
			must(t, in.Err())
			// Times were stored exactly, and are computed from histograms of three digits.
			wantSame(t, name, trial, again, fromFixtures[s.Name()], 1e-3)
		}
	}
}
