package engine

import (
	"slices"
	"testing"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/testbed"
)

func TestValidityNamesWhatSpeaksAgainstATrial(t *testing.T) {
	some := record.Counts{Ops: 1}
	for _, c := range []struct {
		name  string
		out   loaded
		check []record.LinkCheck
		ops   record.Counts
		want  []string
	}{
		{"nothing", loaded{}, []record.LinkCheck{{OK: true}}, some, nil},
		{"no link", loaded{}, nil, some, nil},
		{"link off", loaded{}, []record.LinkCheck{{OK: true}, {}}, some, []string{record.ReasonLinkOff}},
		{"late emulator", loaded{emulatorTrouble: "late"}, nil, some, []string{record.ReasonEmulatorLate}},
		{"dead emulator", loaded{emulatorDied: true}, nil, some, []string{record.ReasonEmulatorDied}},
		{"dead system", loaded{died: struct{ testbed.Process }{}}, nil, some, []string{record.ReasonDaemonDied}},
		{"nothing happened", loaded{}, nil, record.Counts{}, []string{record.ReasonNoOperations}},
	} {
		x := &execution{checks: c.check}
		if got := x.invalidBecause(c.out, c.ops, nil); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
