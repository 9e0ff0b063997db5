package main

import (
	"slices"
	"testing"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/record"
)

const retrieveLine = `
scenario: retrieve
systems: [nginx, static]
link: {rate: 50Mbit, delay: 10ms}
data: {size: 256KiB, objects: 2}
retrieve: {concurrency: 2, connections: [keep, fresh], duration: 1s}
repetitions: 1
`

const overheadLine = `
scenario: overhead
systems: [sftp]
link: {rate: 50Mbit, delay: 10ms}
data: {size: 256KiB}
overhead: {operation: [put, get], count: 5, time: 2s}
repetitions: 1
`

// TestNobodyBeatsTheLoadLine: what real servers do over an emulated link stays
// behind what the link allows. A busy machine only adds to times.
func TestNobodyBeatsTheLoadLine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		scenario, file, program string
		shares                  []string
	}{
		{"retrieve", retrieveLine, "nginx", []string{"load_line_share", "ttfb_line_share", "duration_line_share"}},
		{"overhead", overheadLine, "sshd", []string{"line_share"}},
	} {
		t.Run(c.scenario, func(t *testing.T) {
			t.Parallel()
			need(t, c.program)
			s := startRun(t, c.file)
			s.endsMeasured()
			for _, trial := range s.trials() {
				if slices.Contains(trial.Notes, record.NoteNotEmulated) {
					t.Skip("links are not emulated on this machine")
				}
				if slices.Contains(trial.Invalid, record.ReasonLinkOff) {
					continue
				}
				for _, key := range c.shares {
					share, has := trial.Metrics[key]
					if !has || share > 1+0.05+analysis.BeyondSlack {
						t.Errorf("trial %d (%s): %s is %v (there: %v)", trial.ID, trial.Cell, key, share, has)
					}
					t.Logf("trial %d (%s): %s %.3f", trial.ID, trial.Cell, key, share)
				}
			}
		})
	}
}

const warmFile = `
scenario: retrieve
systems: [static]
link: {rate: 100Mbit, delay: 20ms}
data: {size: 16MiB}
retrieve: {range: 256KiB, concurrency: 1, duration: 600ms}
repetitions: 3
`

// The first operation of a kept connection is as fast as those that follow: TCP's
// beginning, four round trips more, is before the window.
func TestKeptConnectionsAreWarm(t *testing.T) {
	t.Parallel()
	s := startRun(t, warmFile)
	s.endsMeasured()
	r := readRun(t, s.dir)
	var cold []float64
	for _, trial := range r.trials {
		if slices.Contains(trial.Notes, record.NoteNotEmulated) {
			t.Skip("links are not emulated on this machine")
		}
		var took []int64
		warmups := 0
		for op, err := range r.Ops(trial.ID) {
			must(t, err)
			switch {
			case op.Kind == record.OpWarmup:
				warmups++
			case op.Outcome == record.OK:
				took = append(took, op.LastByte-op.Start)
			}
		}
		if warmups != 1 || len(took) < 3 || trial.Outcomes["ok"] != int64(len(took)) {
			t.Fatalf("trial %d: %d warm-ups, %d operations, outcomes %v", trial.ID, warmups, len(took), trial.Outcomes)
		}
		first := took[0]
		slices.Sort(took)
		cold = append(cold, float64(first)/float64(took[len(took)/2]))
	}
	if slices.Sort(cold); cold[0] > 1.5 {
		t.Errorf("the first operations took %.2f of the median of their trials", cold)
	}
}
