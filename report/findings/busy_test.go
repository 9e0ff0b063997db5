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
		"above it in both of two":    {CPUs{"c", []float64{0.08, 0.09}, nil}, "c: plimsoll 8.5 % of the machine (n = 2)"},
		"a single one":               {CPUs{"c", []float64{0.06}, nil}, "c: plimsoll 6 % of the machine (n = 1)"},
		"much, and much apart":       {CPUs{"c", []float64{0.12, 0.35, 0.2}, nil}, "c: plimsoll 20 % of the machine (n = 3)"},
		"much, in most of them":      {CPUs{"c", []float64{0.01, 0.35, 0.2}, nil}, "c: plimsoll 20 % of the machine (n = 3)"},
		"much, in the fewest":        {CPUs{"c", []float64{0.01, 0.35, 0.02}, nil}, ""},
		"nearly all, twice":          {CPUs{"c", nil, []float64{0.95, 0.96}}, "c: the emulator 96 % of the machine (n = 2)"},
		"near the limit, and shown":  {CPUs{"c", []float64{0.049, 0.058, 0.057, 0.059, 0.06, 0.058}, nil}, "c: plimsoll 5.8 % of the machine (n = 6)"},
		"near the limit, and not":    {CPUs{"c", []float64{0.03, 0.058, 0.04, 0.059, 0.06, 0.055}, nil}, ""},
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

// The more cells there are, the more may be at the limit by chance; what is plainly
// too much is not lost among them.
func TestHarnessAmongManyCells(t *testing.T) {
	for name, loud := range map[string]CPUs{
		"a little in each": {"c", []float64{0.12, 0.14, 0.1}, nil},
		"much in one":      {"c", []float64{0.06, 0.8, 0.07}, nil},
		"the emulator":     {"c", nil, []float64{0.95, 0.8, 0.99}},
		"in two trials":    {"c", nil, []float64{0.55, 0.96}},
	} {
		if f := Harness(slices.Repeat([]CPUs{loud}, 20)); len(f) != 1 || len(f[0].Evidence) != 20 {
			t.Errorf("%s: %+v", name, f)
		}
		among := append(slices.Repeat([]CPUs{{"quiet", []float64{0.049, 0.052, 0.051}, []float64{0.1, 0.1, 0.1}}}, 19), loud)
		if f := Harness(among); len(f) != 1 || len(f[0].Evidence) != 1 {
			t.Errorf("%s, of one cell: %+v", name, f)
		}
	}
}
