package testbed

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

func TestThrottled(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		want  float64
	}{
		{"version 2", map[string]string{"own/cpu.stat": "usage_usec 5\nnr_periods 10\nnr_throttled 3\nthrottled_usec 9900000\n"}, 0.3},
		{"version 1", map[string]string{"own/cpu.stat": "nr_periods 10\nnr_throttled 3\nthrottled_time 9900000000\n",
			"own/cpu.cfs_period_us": "50000\n"}, 0.15},
		{"a shorter period", map[string]string{"own/cpu.stat": "nr_periods 10\nnr_throttled 3\n", "own/cpu.max": "5000 10000\n"}, 0.03},
		{"never held back", map[string]string{"own/cpu.stat": "nr_periods 10\nnr_throttled 0\nthrottled_usec 0\n"}, 0},
		{"no limit", map[string]string{"own/cpu.stat": "nr_periods 0\nnr_throttled 0\n"}, math.NaN()},
		{"the root", map[string]string{"cpu.stat": "usage_usec 5\n"}, math.NaN()},
		{"a slice that held back others long ago", map[string]string{"cpu.stat": "nr_periods 20000\nnr_throttled 10000\n",
			"own/cpu.stat": "nr_periods 1000\nnr_throttled 600\n"}, 1060},
		{"no file", nil, math.NaN()},
	} {
		top := t.TempDir()
		if err := os.Mkdir(filepath.Join(top, "own"), 0o700); err != nil {
			t.Fatal(err)
		}
		for name, content := range c.files {
			if err := os.WriteFile(filepath.Join(top, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := throttledIn(top, "/own"); math.Abs(got-c.want) > 1e-9 || math.IsNaN(got) != math.IsNaN(c.want) {
			t.Errorf("%s: %g s, want %g", c.name, got, c.want)
		}
	}
}
