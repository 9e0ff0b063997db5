package analysis_test

import (
	"cmp"
	"regexp"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario/retrieve"
)

// Without a baseline the verdict says what one endpoint did: its best throughput, from
// where on more connections bring no more, and what it did at least where this machine was
// the limit.
func TestVerdictOfOneEndpoint(t *testing.T) {
	plan := simulatedPlan(t, `
scenario: retrieve
systems: [nginx]
data: {size: 64MiB}
retrieve: {concurrency: [1, 8, 64], range: 1MiB, requests: 400}
repetitions: 6
warmup: 0
`)
	said := regexp.MustCompile(`[0-9.]*[0-9]|at least|No trial`)
	type level struct {
		rate   float64 // MB/s
		reason string
	}
	for name, c := range map[string]struct {
		levels [3]level
		want   string // the numbers of the verdict: best throughput, its interval, its concurrency
		blocks int    // 0: all
	}{
		"grows":          {[3]level{{10, ""}, {50, ""}, {90, ""}}, "90.0 89.1 90.9 64", 0},
		"grows no more":  {[3]level{{10, ""}, {50, ""}, {50.2, ""}}, "50.2 49.7 50.7 64 8", 0},
		"in five trials": {[3]level{{10, ""}, {50, ""}, {50.2, ""}}, "50.1 49.7 50.5 64", 5},
		"in one trial":   {[3]level{{10, ""}, {50, ""}, {50.2, ""}}, "49.7 64", 1},
		"falls":          {[3]level{{10, ""}, {50, ""}, {30, ""}}, "50.0 49.5 50.5 8", 0},
		"generator": {[3]level{{10, ""}, {50, ""}, {90, record.ReasonGeneratorSaturated}},
			"50.0 49.5 50.5 8 at least 90.0 64", 0},
		"slower generator": {[3]level{{10, ""}, {50, ""}, {30, record.ReasonGeneratorSaturated}},
			"50.0 49.5 50.5 8", 0},
		"machine": {[3]level{{10, record.ReasonBoxBusy}, {50, record.ReasonMachineLimited},
			{40, record.ReasonGeneratorSaturated}}, "No trial at least 50.0 8", 0},
		"nothing can be said": {[3]level{{10, record.ReasonLinkOff}, {50, record.ReasonDaemonDied},
			{40, record.ReasonLinkOff}}, "No trial", 0},
	} {
		var trials []record.Trial
		for block := range cmp.Or(c.blocks, plan.Blocks) {
			for i, cell := range plan.Cells {
				tr := trialOf(cell, block, len(trials), 400, map[string]float64{"success_rate": 1,
					"throughput": c.levels[i].rate * 1e6 * (1 + 0.01*float64(2*block-5)/5)})
				if c.levels[i].reason != "" {
					tr.Invalid = []string{c.levels[i].reason}
				}
				trials = append(trials, tr)
			}
		}
		r := analysed(t, plan, retrieve.Scenario{}.View(), simulatedMetrics, trials)
		if got := strings.Join(said.FindAllString(r.Verdict.Text, -1), " "); got != c.want {
			t.Errorf("%s: %s\nwant %s", name, r.Verdict.Text, c.want)
		}
	}
}

// Warm-up and invalid trials are in no count beside those of valid ones; without a valid trial the verdict
// still says what failed.
func TestFailuresWithoutValidTrials(t *testing.T) {
	plan := simulatedPlan(t, `
scenario: retrieve
systems: [nginx]
data: {size: 1MiB}
retrieve: {concurrency: 1, requests: 200}
repetitions: 2
`)
	for invalid, want := range map[int]string{1: "nginx failed 5 requests of 105", 2: "nginx failed 10 requests of 210"} {
		var trials []record.Trial
		for block := -1; block < 2; block++ {
			tr := trialOf(plan.Cells[0], block, len(trials), 100, nil)
			tr.Warmup, tr.Outcomes[record.Error.String()] = block < 0, 5
			tr.Outcomes[record.InFlight.String()] = 3
			if block >= 0 && block < invalid {
				tr.Invalid = []string{record.ReasonBoxBusy}
			}
			trials = append(trials, tr)
		}
		r := analysed(t, plan, retrieve.Scenario{}.View(), retrieve.Scenario{}.Metrics(), trials)
		if !strings.Contains(r.Verdict.Text, want) {
			t.Errorf("%d invalid: %s", invalid, r.Verdict.Text)
		}
		if n := 2 - invalid; r.Run.Seconds != float64(10*n) || r.Run.Operations != int64(108*n) {
			t.Errorf("%d invalid: %g s, %d operations", invalid, r.Run.Seconds, r.Run.Operations)
		}
	}
}
