package engine

import (
	"math"
	"slices"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/testbed"
)

func TestValidityNamesWhatSpeaksAgainstATrial(t *testing.T) {
	limits := experiment.Limits{Others: 0.25}
	quiet := scenario.Usage{OthersBusy: 0.1}
	some := record.Counts{Ops: 1}
	for _, c := range []struct {
		name  string
		out   loaded
		check *record.LinkCheck
		ops   record.Counts
		want  []string
	}{
		{"nothing", loaded{usage: quiet}, &record.LinkCheck{OK: true}, some, nil},
		{"no link, nothing known of others", loaded{usage: scenario.Usage{OthersBusy: math.NaN()}}, nil, some, nil},
		{"link off", loaded{usage: quiet}, &record.LinkCheck{}, some, []string{record.ReasonLinkOff}},
		{"busy box", loaded{usage: scenario.Usage{OthersBusy: 0.26}}, nil, some, []string{record.ReasonBoxBusy}},
		{"late emulator", loaded{usage: quiet, emulatorTrouble: "late"}, nil, some, []string{record.ReasonEmulatorLate}},
		{"dead emulator", loaded{usage: quiet, emulatorDied: true}, nil, some, []string{record.ReasonEmulatorDied}},
		{"dead system", loaded{usage: quiet, died: new(testbed.Process)}, nil, some, []string{record.ReasonDaemonDied}},
		{"nothing happened", loaded{usage: quiet}, nil, record.Counts{}, []string{record.ReasonNoOperations}},
	} {
		if got := validity(limits, c.out, c.check, c.ops); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
