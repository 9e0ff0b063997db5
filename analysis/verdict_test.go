package analysis_test

import (
	"cmp"
	"testing"

	"github.com/plimsoll-project/plimsoll/analysis"
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
	type level struct {
		rate   float64 // MB/s
		reason string
	}
	for name, c := range map[string]struct {
		levels [3]level
		want   string
		blocks int // 0: all
	}{
		"grows": {[3]level{{10, ""}, {50, ""}, {90, ""}},
			"nginx: throughput 90.0 (89.1–90.9) MB/s at best (concurrency 64).", 0},
		"grows no more": {[3]level{{10, ""}, {50, ""}, {50.2, ""}}, "nginx: throughput 50.2 (49.7–50.7) MB/s " +
			"at best (concurrency 64); from concurrency 8 on, the intervals overlap with it.", 0},
		"in five trials": {[3]level{{10, ""}, {50, ""}, {50.2, ""}},
			"nginx: throughput 50.1 (49.7–50.5) MB/s at best (concurrency 64).", 5},
		"in one trial": {[3]level{{10, ""}, {50, ""}, {50.2, ""}},
			"nginx: throughput 49.7 MB/s at best (concurrency 64).", 1},
		"falls": {[3]level{{10, ""}, {50, ""}, {30, ""}},
			"nginx: throughput 50.0 (49.5–50.5) MB/s at best (concurrency 8).", 0},
		"generator": {[3]level{{10, ""}, {50, ""}, {90, record.ReasonGeneratorSaturated}},
			"nginx: throughput 50.0 (49.5–50.5) MB/s at best (concurrency 8). nginx: throughput at least 90.0 MB/s " +
				"(concurrency 64), where the limit was this machine.", 0},
		"slower generator": {[3]level{{10, ""}, {50, ""}, {30, record.ReasonGeneratorSaturated}},
			"nginx: throughput 50.0 (49.5–50.5) MB/s at best (concurrency 8).", 0},
		"machine": {[3]level{{10, record.ReasonBoxBusy}, {50, record.ReasonMachineLimited},
			{40, record.ReasonGeneratorSaturated}},
			"No trial is valid. nginx: throughput at least 50.0 MB/s (concurrency 8), where the limit was this " +
				"machine.", 0},
		"nothing can be said": {[3]level{{10, record.ReasonLinkOff}, {50, record.ReasonDaemonDied},
			{40, record.ReasonLinkOff}}, "No trial is valid: nothing can be said about nginx.", 0},
	} {
		var trials []record.Trial
		for block := range cmp.Or(c.blocks, plan.Blocks) {
			for i, cell := range plan.Cells {
				tr := record.Trial{ID: int64(len(trials) + 1), Cell: cell.ID, Block: block, State: record.Done,
					Seconds: 10, Outcomes: map[string]int64{"ok": 400},
					Metrics: map[string]float64{"throughput": c.levels[i].rate * 1e6 * (1 + 0.01*float64(2*block-5)/5),
						"success_rate": 1}}
				if c.levels[i].reason != "" {
					tr.Invalid = []string{c.levels[i].reason}
				}
				trials = append(trials, tr)
			}
		}
		r, err := analysis.Analyse(analysis.FrameOf(plan, retrieve.Scenario{}.View(), simulatedMetrics, trials))
		must(t, err)
		if r.Verdict.Text != c.want {
			t.Errorf("%s: %s\nwant %s", name, r.Verdict.Text, c.want)
		}
	}
}
