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
		got, err := scenario.Recompute(scenarios.ByName(r.plan.Experiment.Scenario), r.Reader, trial, r.cell(trial), nil)
		must(t, err)
		keys := maps.Clone(got)
		maps.Copy(keys, trial.Metrics)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			stored, was := trial.Metrics[key]
			again, is := got[key]
			if was != is || math.Abs(again-stored) > 1e-9*math.Abs(stored) {
				t.Errorf("%s: trial %d (%s): %s is stored as %v (there: %v), and computed as %v (there: %v)", dir,
					trial.ID, trial.Cell, key, stored, was, again, is)
			}
		}
	}
	return n
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
	for _, name := range facts.Names(t) {
		r, err := record.Open(facts.Unpack(t, name))
		must(t, err)
		defer r.Close()
		plan, err := experiment.ReadPlan(r.Plan())
		must(t, err)
		trials, err := r.Trials()
		must(t, err)
		compared, s := 0, scenarios.ByName(plan.Experiment.Scenario)
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
			for _, key := range fromFixtures[plan.Experiment.Scenario] {
				stored, was := trial.Metrics[key]
				got, is := again[key]
				compared++
				// Times were stored exactly, and are computed from histograms of three digits.
				if was != is || math.Abs(got-stored) > 1e-3*math.Abs(stored) {
					t.Errorf("%s, trial %d: %s is stored as %v (there: %v), and computed as %v (there: %v)",
						name, trial.ID, key, stored, was, got, is)
				}
			}
		}
		if want := fromFixtures[plan.Experiment.Scenario]; compared != len(want)*len(trials) {
			t.Errorf("%s: %d numbers of %d trials", name, compared, len(trials))
		}
	}
}
