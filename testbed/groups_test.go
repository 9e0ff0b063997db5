package testbed

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

func groupFiles(t *testing.T, files map[string]string) (root string) {
	root = t.TempDir()
	for path, text := range files {
		path = filepath.Join(root, path)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return root
}

// The tightest of the groups above counts, and what the page cache holds is free.
func TestMemoryLeft(t *testing.T) {
	root := groupFiles(t, map[string]string{
		"a/memory.max": "1000\n", "a/memory.current": "700\n",
		"a/memory.stat":  "anon 500\nactive_file 50\ninactive_file 150\n",
		"a/b/memory.max": "max\n", "a/b/memory.current": "10\n",
		"c/memory.max": "300\n", "c/memory.current": "400\n",
		"memory/d/memory.limit_in_bytes": "90\n", "memory/d/memory.usage_in_bytes": "20\n",
	})
	for own, want := range map[string]float64{
		"0::/a/b\n": 500, "0::/c\n": 0, "0::/\n": math.Inf(1), "0::/elsewhere\n": math.Inf(1), "": math.Inf(1),
		"12:memory:/d\n0::/\n": 70, "3:cpu:/d\n": math.Inf(1),
	} {
		if left := memoryLeft(groupsOf(root, own, "memory")); left != want {
			t.Errorf("%q: %v, want %v", own, left, want)
		}
	}
	if n, err := Here().AvailableMemory(); err != nil || n < 1<<20 {
		t.Errorf("available: %v, %v", n, err)
	}
}

func TestThrottled(t *testing.T) {
	for _, c := range []struct {
		name, own string
		files     map[string]string
		want      float64
	}{
		{"version 2", "0::/own", map[string]string{
			"own/cpu.stat": "usage_usec 5\nnr_periods 10\nnr_throttled 3\nthrottled_usec 9900000\n"}, 0.3},
		{"version 1", "4:cpu,cpuacct:/own", map[string]string{
			"cpu,cpuacct/own/cpu.stat":          "nr_periods 10\nnr_throttled 3\nthrottled_time 9900000000\n",
			"cpu,cpuacct/own/cpu.cfs_period_us": "50000\n"}, 0.15},
		{"a shorter period", "0::/own", map[string]string{
			"own/cpu.stat": "nr_periods 10\nnr_throttled 3\n", "own/cpu.max": "5000 10000\n"}, 0.03},
		{"never held back", "0::/own", map[string]string{
			"own/cpu.stat": "nr_periods 10\nnr_throttled 0\nthrottled_usec 0\n"}, 0},
		{"no limit", "0::/own", map[string]string{"own/cpu.stat": "nr_periods 0\nnr_throttled 0\n"}, math.NaN()},
		{"the root", "0::/own", map[string]string{"cpu.stat": "usage_usec 5\n"}, math.NaN()},
		{"a slice that held back others long ago", "0::/own", map[string]string{
			"cpu.stat": "nr_periods 20000\nnr_throttled 10000\n", "own/cpu.stat": "nr_periods 1000\nnr_throttled 600\n",
		}, 1060},
		{"no file", "0::/own", nil, math.NaN()},
	} {
		got := throttled(groupsOf(groupFiles(t, c.files), c.own, "cpu"))
		if math.Abs(got-c.want) > 1e-9 || math.IsNaN(got) != math.IsNaN(c.want) {
			t.Errorf("%s: %g s, want %g", c.name, got, c.want)
		}
	}
}
