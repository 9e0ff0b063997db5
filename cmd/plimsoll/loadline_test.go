package main

import (
	"slices"
	"testing"

	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/nginx"
	"github.com/plimsoll-project/plimsoll/system/sftp"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
	"github.com/plimsoll-project/plimsoll/validity"
)

const retrieveLine = `
scenario: retrieve
systems: [nginx, static]
link: {rate: 50Mbit, delay: 10ms}
data: {size: 256KiB, objects: 2}
retrieve: {concurrency: 2, connections: [keep, fresh], duration: 1s}
repetitions: 1
warmup: 0
limits: {others: none, machine: none}
skip: [machine]
`

const overheadLine = `
scenario: overhead
systems: [sftp]
link: {rate: 50Mbit, delay: 10ms}
data: {size: 256KiB}
overhead: {operation: [put, get], count: 5, time: 2s}
repetitions: 1
warmup: 0
limits: {others: none, machine: none}
skip: [machine]
`

// TestNobodyBeatsTheLoadLine: what real servers do over an emulated link stays
// behind what the link allows. A busy machine only adds to times.
func TestNobodyBeatsTheLoadLine(t *testing.T) {
	for _, c := range []struct {
		scenario, file string
		shares         []string
	}{
		{"retrieve", retrieveLine, []string{"load_line_share", "ttfb_line_share", "duration_line_share"}},
		{"overhead", overheadLine, []string{"line_share"}},
	} {
		t.Run(c.scenario, func(t *testing.T) {
			t.Parallel()
			switch c.scenario {
			case "retrieve":
				systemtest.Need(t, "nginx", system.Check(t.Context(), nginx.System{}, nil))
			case "overhead":
				systemtest.Need(t, "sshd", system.Check(t.Context(), sftp.System{}, nil))
			}
			s := startRun(t, c.file)
			if code := s.end(); code != ui.CodeOK && code != ui.CodeInvalid {
				t.Fatalf("plimsoll ended with %d:\n%s", code, s.output())
			}
			r, err := record.Open(s.dir)
			must(t, err)
			defer r.Close()
			trials, err := r.Trials()
			must(t, err)
			for _, trial := range trials {
				if slices.Contains(trial.Notes, record.NoteNotEmulated) {
					t.Skip("links are not emulated on this machine")
				}
				if slices.Contains(trial.Invalid, record.ReasonLinkOff) {
					continue
				}
				for _, key := range c.shares {
					share, has := trial.Metrics[key]
					if !has || share > 1+0.05+validity.BeyondSlack {
						t.Errorf("trial %d (%s): %s is %v (there: %v)", trial.ID, trial.Cell, key, share, has)
					}
					t.Logf("trial %d (%s): %s %.3f", trial.ID, trial.Cell, key, share)
				}
			}
		})
	}
}
