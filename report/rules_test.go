package report

import (
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
)

// Rules that speak of a run of theirs, and not of the one beside it.
func TestRulesSpeakWhereTheyShould(t *testing.T) {
	swarm := func(leechers func(*experiment.Cell, int, float64, []leech)) func(testing.TB) *Report {
		return swarmTruth{file: strings.NewReplacer("seeders: 1}", "seeders: 1, faults: ['crash seeders at 50% for 10s']}", "repetitions: 8", "repetitions: 2").Replace(swarmFile), leechers: leechers}.build
	}
	trouble := strings.NewReplacer("  storage: [disk, ram]\n", "  trouble: [2 silent]\n", "repetitions: 6", "repetitions: 2").Replace(syncFile)
	fresh := func(file string, noise, first float64, node func(*experiment.Cell, int, *newcomer)) func(testing.TB) *Report {
		return syncTruth{file: file, noise: noise, truth: func(*experiment.Cell) float64 { return 10 }, node: func(c *experiment.Cell, block int, f *newcomer) {
			f.first = first * f.serve
			f.chain = f.first + 0.9*(f.serve-f.first)
			if node != nil {
				node(c, block, f)
			}
		}}.build
	}
	costing := func(change ...string) func(testing.TB) *Report {
		return costs{file: strings.NewReplacer(change...).Replace(nullOverheadFile)}.built
	}
	loaded := func(change func(*loadTruth)) func(testing.TB) *Report {
		s := plainLoad(2)
		s.hours, s.objects = 30, 1500
		change(&s)
		return s.report
	}
	brief := func(s *loadTruth) { s.hours, s.objects = 1, 24 }
	steady := func(*loadTruth) {}
	for rule, run := range map[string]struct{ is, isNot func(testing.TB) *Report }{
		"leechers-unfinished-faults": {swarm(func(c *experiment.Cell, block int, line float64, all []leech) {
			if c.System == "boxo" && block == 1 {
				all[2] = leech{took: 4 * line, got: 0.5, outcome: record.Stalled, class: "no further byte"}
			}
		}), swarm(nil)},
		"goal-open": {swarmTruth{pace: map[string]float64{"deluge": 1.2, "boxo": 1.44}}.build, swarmTruth{}.build},
		"never-served-faults": {fresh(trouble, 0.02, 0.1, func(_ *experiment.Cell, block int, f *newcomer) {
			if block == 1 {
				f.outcome, f.class, f.height = record.Stalled, "no further block", 0.5
			}
		}), fresh(trouble, 0.02, 0.1, nil)},
		"start-up":       {fresh("", 0.02, 0.5, nil), fresh("", 0.02, 0.1, nil)},
		"cannot-tell":    {fresh("", 0.2, 0.1, nil), fresh("", 0.001, 0.1, nil)},
		"model-untested": {costing("repetitions: 6", "repetitions: 1"), costing()},
		"flat":           {loaded(steady), loaded(brief)},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			if r := run.is(t); r.found(rule) == nil {
				t.Errorf("not found where it is: %s", names(r))
			}
			if r := run.isNot(t); r.found(rule) != nil {
				t.Errorf("found where it is not: %+v", r.found(rule))
			}
		})
	}
}

func names(r *Report) string {
	var all []string
	for _, f := range r.Findings {
		all = append(all, f.Rule)
	}
	return strings.Join(all, " ")
}

// An operation that could not be fitted is named, and one that could is not.
func TestWhatCouldNotBeFittedIsNamed(t *testing.T) {
	for _, c := range []struct {
		model *stats.CostModel
		found bool
	}{{nil, true}, {&stats.CostModel{}, false}} {
		r := &Report{Fits: []Fit{{System: "sftp", Operation: "put", Why: "1 point for 3 parameters", Holds: true, model: c.model}}}
		r.Findings = modelFails(r)
		if f := r.found("no-fit"); (f != nil) != c.found {
			t.Errorf("model %v: %+v", c.model, r.Findings)
		}
	}
}
