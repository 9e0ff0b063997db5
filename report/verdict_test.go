package report

import (
	"slices"
	"strings"
	"testing"
)

// A difference that is shown, and too small to speak of, is not one that is not shown.
func TestVerdictOfASmallDifference(t *testing.T) {
	r := *sharedReport(t)
	r.Overall = slices.Clone(r.Overall)
	i := slices.IndexFunc(r.Overall, func(o Overall) bool { return o.System == "static" && o.Metric == r.headline })
	o := &r.Overall[i]
	answer := func() string {
		for _, a := range r.comparisons() {
			if a.System == "static" {
				return a.Text
			}
		}
		return ""
	}
	o.N, o.Value, o.Lo, o.Hi, o.P, o.Shown, o.Better = 6, 0.98, 0.974, 0.986, 0.003, true, 0
	if v := r.verdict().Text; !strings.Contains(v, "for static a difference to nginx is shown, below the effect floor of 5 %") || strings.Contains(v, "no difference") {
		t.Errorf("verdict %q", v)
	}
	if a := answer(); !strings.Contains(a, "0.980× (0.974–0.986) what nginx does, over all cells (shown, below the effect floor of 5 %)") {
		t.Errorf("answer %q", a)
	}
	o.Shown, o.P = false, 0.2 // the interval and the test do not agree
	if v := r.verdict().Text; !strings.Contains(v, "for static no difference to nginx is shown") {
		t.Errorf("verdict %q", v)
	}
	if a := answer(); strings.Contains(a, "0.986") || !strings.Contains(a, "cannot be told apart from nginx: 0.980× over all cells") {
		t.Errorf("an interval without 1, and no difference: %q", a)
	}
}

func TestWhyADifferenceIsNotShown(t *testing.T) {
	for _, c := range []struct {
		o    Overall
		want string
	}{
		{Overall{N: 9, Least: Extreme{"nodes 8", 0.82}, Most: Extreme{"nodes 2", 1.19}}, " (a difference is not shown: cells lie on both sides of 1×)"},
		{Overall{N: 9, Least: Extreme{"nodes 8", 0.82}, Most: Extreme{"nodes 2", 0.9}}, " (a difference is not shown)"},
		{Overall{N: 5, Least: Extreme{"nodes 8", 0.82}, Most: Extreme{"nodes 2", 0.9}}, " (5 blocks, too few to show a difference)"},
		{Overall{N: 4}, " (a difference is not shown)"},
		{Overall{N: 3}, " (3 blocks, too few to show a difference)"},
	} {
		if got := c.o.notShown(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.o, got, c.want)
		}
	}
}
