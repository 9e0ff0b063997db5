package testbed

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

func TestThrottled(t *testing.T) {
	for _, c := range []struct {
		name, stat string
		want       float64
	}{
		{"version 2", "usage_usec 5\nnr_periods 10\nnr_throttled 3\nthrottled_usec 2500000\n", 2.5},
		{"version 1", "nr_periods 10\nnr_throttled 3\nthrottled_time 2500000000\n", 2.5},
		{"never held back", "nr_periods 10\nnr_throttled 0\nthrottled_usec 0\n", 0},
		{"no limit", "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n", math.NaN()},
		{"the root", "usage_usec 5\n", math.NaN()},
	} {
		path := filepath.Join(t.TempDir(), "cpu.stat")
		if err := os.WriteFile(path, []byte(c.stat), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := throttledIn(path); got != c.want && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("%s: %g s, want %g", c.name, got, c.want)
		}
	}
	if got := throttledIn("/none"); !math.IsNaN(got) {
		t.Errorf("no file: %g s", got)
	}
}
