package findings

import (
	"math"
	"strings"
	"testing"
)

func TestBusy(t *testing.T) {
	nan := math.NaN()
	for name, c := range map[string]struct {
		of         CPUs
		rule, says string // empty: nothing
	}{
		"idle":                    {CPUs{"c", 0.4, 0.1, 0.02, 0.1, "more"}, "", ""},
		"nothing known":           {CPUs{"c", nan, nan, nan, nan, ""}, "", ""},
		"full":                    {CPUs{"c", 0.95, nan, 0.02, 0.1, ""}, "machine-busy", "c: 95 % of the machine in use"},
		"full, by others":         {CPUs{"c", 0.95, 0.4, 0.02, 0.1, "slow"}, "machine-busy", "c: 95 % of the machine in use, by others 40 %; slow"},
		"full, and by us: once":   {CPUs{"c", 0.95, 0.1, 0.2, 0.6, ""}, "machine-busy", "c: 95 % of the machine in use, by plimsoll 20 %, the emulator 60 %, others 10 %"},
		"the harness alone":       {CPUs{"c", 0.5, 0.1, 0.2, 0.1, ""}, "harness-busy", "c: plimsoll 20 % of the machine"},
		"the emulator":            {CPUs{"c", nan, nan, 0.01, 0.6, ""}, "harness-busy", "c: the emulator 60 % of the machine"},
		"at the limit is not yet": {CPUs{"c", BusyMachine, 0, busyHarness, busyEmulator, ""}, "", ""},
	} {
		got := Busy([]CPUs{c.of})
		switch {
		case c.rule == "" && got != nil:
			t.Errorf("%s: found %v", name, got)
		case c.rule != "" && (len(got) != 1 || got[0].Rule != c.rule || strings.Join(got[0].Evidence, "|") != c.says):
			t.Errorf("%s: %v, want %s: %q", name, got, c.rule, c.says)
		}
	}
}
