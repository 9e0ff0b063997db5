package experiment

import (
	"math"
	"strings"
	"testing"
)

func TestRoughNumbers(t *testing.T) {
	for n, want := range map[float64]string{
		0: "0 B", 60: "60 B", 999: "999 B", 999.7: "1 kB", 1536: "1.54 kB", 999.9e6: "1 GB", 112_589_990_684_262_400_000: "112,590 PB", 1e15: "1 PB", 999e15: "999 PB", 1e18: "1,000 PB",
	} {
		if got := RoughBytes(n); got != want {
			t.Errorf("%g bytes are %q, want %q", n, got, want)
		}
	}
	for s, want := range map[float64]string{
		0: "0.0 s", 0.0002: "0.2 ms", 0.004: "4 ms", 0.07: "70 ms", 0.12: "0.1 s", 2.5: "2.5 s", 3e10: "951 years", 1e12: "31,688 years", math.Inf(1): "for ever",
	} {
		if got := RoughDuration(s); got != want {
			t.Errorf("%g seconds are %q, want %q", s, got, want)
		}
	}
}

// A data set whose bytes cannot be counted is refused where it is said.
func TestTooMuchData(t *testing.T) {
	const file = "scenario: upload\nsystems: [any]\nupload: {}\n"
	any := Catalog{{Name: "any", Modes: []string{"start"}}}
	for _, set := range [][]string{
		{"data.objects=16384", "data.size=1PiB"},
		{"data.objects=1000000", "data.mix=[{share: 100%, size: 1PiB}]"},
		{"data.objects=1000", "data.spread={from: 900TiB, to: 1PiB}", "data.copies=1000"},
	} {
		if _, err := Parse("", []byte(file), set, any); err == nil || !strings.Contains(err.Error(), "PB is more than a data set can have") {
			t.Errorf("%v: %v", set, err)
		}
	}
	e, err := Parse("", []byte(file), []string{"data.objects=4096", "data.size=1PiB"}, any)
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.Plan()
	if err != nil {
		t.Fatal(err)
	}
	if _, bytes := p.Cells[0].Data.Total(); bytes != 4096*(1<<50) {
		t.Errorf("%g bytes", bytes)
	}
}
