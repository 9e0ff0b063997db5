package findings

import (
	"slices"
	"strings"
	"testing"
)

func TestHarness(t *testing.T) {
	for name, c := range map[string]struct {
		of   CPUs
		says string // empty: nothing
	}{
		"idle":                       {CPUs{"c", []float64{0.02, 0.03, 0.02}, []float64{0.1, 0.1, 0.1}}, ""},
		"nothing known":              {CPUs{"c", nil, nil}, ""},
		"plimsoll":                   {CPUs{"c", []float64{0.2, 0.21, 0.19}, []float64{0.1, 0.1, 0.1}}, "c: plimsoll 20 % of the machine (n = 3)"},
		"the emulator":               {CPUs{"c", nil, []float64{0.58, 0.6, 0.59, 0.63}}, "c: the emulator 60 % of the machine (n = 4)"},
		"both":                       {CPUs{"c", []float64{0.2, 0.21, 0.19}, []float64{0.6, 0.61, 0.59}}, "c: plimsoll 20 % and the emulator 60 % of the machine (n = 3)"},
		"at the limit is not yet":    {CPUs{"c", slices.Repeat([]float64{busyHarness}, 3), slices.Repeat([]float64{busyEmulator}, 3)}, ""},
		"above it by chance is none": {CPUs{"c", []float64{0.045, 0.058, 0.051}, nil}, ""},
		"two trials say little":      {CPUs{"c", []float64{0.08, 0.09}, nil}, ""},
		"unless it is clear":         {CPUs{"c", []float64{0.28, 0.32}, nil}, "c: plimsoll 30 % of the machine (n = 2)"},
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
