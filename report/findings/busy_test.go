package findings

import (
	"math"
	"strings"
	"testing"
)

func TestHarness(t *testing.T) {
	for name, c := range map[string]struct {
		of   CPUs
		says string // empty: nothing
	}{
		"idle":                    {CPUs{"c", 0.02, 0.1}, ""},
		"nothing known":           {CPUs{"c", math.NaN(), math.NaN()}, ""},
		"plimsoll":                {CPUs{"c", 0.2, 0.1}, "c: plimsoll 20 % of the machine"},
		"the emulator":            {CPUs{"c", math.NaN(), 0.6}, "c: the emulator 60 % of the machine"},
		"both":                    {CPUs{"c", 0.2, 0.6}, "c: plimsoll 20 % and the emulator 60 % of the machine"},
		"more than there is":      {CPUs{"c", 0.2, 1.03}, "c: plimsoll 20 % and the emulator 100 % of the machine"},
		"at the limit is not yet": {CPUs{"c", busyHarness, busyEmulator}, ""},
	} {
		got := Harness([]CPUs{c.of})
		switch {
		case c.says == "" && got != nil:
			t.Errorf("%s: found %v", name, got)
		case c.says != "" && (len(got) != 1 || got[0].Rule != "harness-busy" || strings.Join(got[0].Evidence, "|") != c.says):
			t.Errorf("%s: %v, want %q", name, got, c.says)
		}
	}
}
