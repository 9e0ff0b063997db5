package report

import (
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report/internal/synthetic"
)

func TestPlateau(t *testing.T) {
	t.Parallel()
	level := func(median, lo, hi Num) *Cell {
		return &Cell{Metrics: map[string]Summary{"throughput": {Median: median, Lo: lo, Hi: hi}}}
	}
	for name, c := range map[string]struct {
		levels []*Cell
		want   int
	}{
		"grows":       {[]*Cell{level(10, 9, 11), level(20, 19, 21), level(40, 38, 42)}, 2},
		"flat":        {[]*Cell{level(10, 9, 11), level(40, 38, 42), level(41, 39, 43)}, 1},
		"falls":       {[]*Cell{level(10, 9, 11), level(40, 38, 42), level(20, 19, 21)}, 1},
		"overlapping": {[]*Cell{level(10, 5, 20), level(15, 6, 25)}, 0},
		"unknown":     {[]*Cell{level(10, unknown, unknown), level(20, unknown, unknown)}, 1},
		"one":         {[]*Cell{level(10, 9, 11)}, 0},
	} {
		if got := plateau(c.levels); got != c.want {
			t.Errorf("%s: throughput stops growing at level %d, want %d", name, got, c.want)
		}
	}
}

// One endpoint without a baseline that shares a saturated machine with its clients: its
// throughput is a lower bound, and the verdict gives it. Wrong reasons give none.
func TestEndpointThatTheMachineLimits(t *testing.T) {
	const file = `
scenario: retrieve
title: Endpoint
systems: [nginx]
baseline: none
link: {rate: 1Gbit, delay: 20ms}
data: {size: 64MiB}
retrieve: {concurrency: [1, 8], range: 1MiB, requests: 40}
repetitions: 3
`
	for _, c := range []struct {
		reason string
		tone   Tone
	}{{record.ReasonGeneratorSaturated, Warn}, {record.ReasonDaemonDied, Bad}} {
		r := built(t, synthetic.Run{File: file, Blocks: 3, Change: func(_ experiment.Cell, tr *record.Trial) {
			tr.Invalid, tr.Metrics["throughput"] = []string{c.reason}, 1.5e9
		}})
		if r.Run.Valid != 0 || r.Verdict.Tone != c.tone || strings.Contains(r.Verdict.Text, "1.50 GB/s") != (c.tone == Warn) {
			t.Errorf("%s: %d valid, %+v", c.reason, r.Run.Valid, r.Verdict)
		}
	}
}

// Where the highest concurrency has no valid trial, throughput is not said to grow there.
func TestEndpointWithoutItsHighestLevel(t *testing.T) {
	const file = `
scenario: retrieve
title: Endpoint
systems: [nginx]
baseline: none
link: {rate: 1Gbit, delay: 20ms}
data: {size: 64MiB}
retrieve: {concurrency: [1, 8, 64], range: 1MiB, requests: 40}
repetitions: 6
`
	for _, c := range []struct {
		invalid int // concurrency; 0: none
		want    string
	}{{64, "higher concurrency has no valid trial"}, {0, "at higher concurrency"}} {
		r := built(t, synthetic.Run{File: file, Blocks: 6, Change: func(cell experiment.Cell, tr *record.Trial) {
			if cell.Retrieve.Concurrency == c.invalid {
				tr.Invalid = []string{record.ReasonGeneratorSaturated}
			}
			tr.Metrics["throughput"] = 50e6 + float64(tr.ID)
		}})
		if !strings.Contains(r.Verdict.Text, c.want) || strings.Contains(r.Verdict.Text, "still growing") {
			t.Errorf("concurrency %d invalid: %s", c.invalid, r.Verdict.Text)
		}
	}
}
