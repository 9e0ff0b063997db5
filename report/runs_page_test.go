package report

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/record"
)

// slowerRun compares a run and one in which boxo is slower, with gates.
func slowerRun(t testing.TB) *RunComparison {
	t.Helper()
	more := func(tr *record.Trial) {
		tr.Metrics["duration_p50"] = 1e6 / tr.Metrics["throughput"]
		tr.Metrics["ttfb_p50"] = 0.02 + 1e4/tr.Metrics["throughput"]
	}
	meta := func(version string) map[string]string {
		return map[string]string{"plimsoll": version, "environment": `{"cpu.model":"one"}`}
	}
	base := fakeRun{seed: 1, trials: 10, value: scattered(1), trial: more, meta: meta("v1")}
	slower := fakeRun{seed: 2, trials: 10, trial: more, meta: meta("v2"), file: strings.Replace(runFile, "[1, 8, 64]", "[8, 64, 128]", 1), value: func(rng *rand.Rand, system, concurrency string) float64 {
		return scattered(map[string]float64{"8": 0.8, "64": 1.3}[concurrency])(rng, system, concurrency)
	}}
	c := comparedRuns(t, RunOptions{}, base, slower)
	must(t, c.Hold([]string{"no worse than BASE by 10%", "throughput > 1kB/s"}))
	return c
}

func TestComparisonPage(t *testing.T) {
	c := slowerRun(t)
	var b bytes.Buffer
	must(t, c.WriteHTML(&b))
	html := b.String()
	for _, want := range []string{"What changed from run0 to run1?", "better in 1 of 4 cells and worse in 1", "plimsoll: version v1 → v2", "Cells that only one run has", "no worse than BASE by 10%",
		"FAIL (of 6 cells", `id="fig-hero"`, `id="fig-cells"`, "default-src &#39;none&#39;"} {
		if !strings.Contains(html, want) {
			t.Errorf("%q is missing", want)
		}
	}
	// Its figures come as those of a run's page do, without the digits and parts that
	// nobody sees.
	d, err := c.page()
	must(t, err)
	raw, err := json.Marshal(append([]Figure{*d.Hero}, d.Figures...))
	must(t, err)
	if !strings.Contains(string(d.Data), `"shared":{`) || len(d.Data) > len(raw)*4/5 {
		t.Errorf("the figures are %d bytes, whole %d", len(d.Data), len(raw))
	}
	if first, second := strings.Index(html, `id="differs"`), strings.Index(html, `id="figures"`); first < 0 || second < first {
		t.Error("what differed is not said before the numbers")
	}
	// A ratio stands on the side of its change, and a worse one points down.
	f := c.forest("x", c.Metrics[:1], 0)
	values := f.Panels[0].Spec["data"].(spec)["values"].([]spec)
	if len(values) != 4 {
		t.Fatalf("%d marks", len(values))
	}
	for _, v := range values {
		want, below := markOpen, false
		switch row := v["row"].(string); {
		case row == "boxo, concurrency 8":
			want, below = markWorse, true
		case row == "boxo, concurrency 64":
			want = markBetter
		}
		if v["kind"] != want || want != markOpen && (v["x"].(float64) < 1) != below {
			t.Errorf("%v, want %s", v, want)
		}
	}
	if few := c.forest("x", c.Metrics[:1], 2).Panels[0].Spec["data"].(spec)["values"].([]spec); len(few) != 2 || few[0]["kind"] != markWorse || few[1]["kind"] != markBetter {
		t.Errorf("the two that are farthest from 1: %v", few)
	}
}

func TestComparisonPageInChromium(t *testing.T) {
	c := slowerRun(t)
	var b bytes.Buffer
	must(t, c.WriteHTML(&b))
	path := filepath.Join(t.TempDir(), "compare.html")
	must(t, os.WriteFile(path, b.Bytes(), 0o644))
	s := look(t, "file://"+path)
	for _, n := range append(s.Noise, s.Nameless...) {
		t.Error(n)
	}
	if len(s.Requests) != 2 || s.Pictures != s.Plots || s.Pictures < 3 || !s.Themed {
		t.Errorf("%d plots, %d pictures, requests %q, the theme changed: %v", s.Plots, s.Pictures, s.Requests, s.Themed)
	}
	for width, want := range map[string]int{"1280": 1280, "360": 360} {
		if s.Widths[width] != want {
			t.Errorf("at %s px the page is %d px wide", width, s.Widths[width])
		}
	}
}
