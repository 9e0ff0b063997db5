package testbed

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

// writeFiles makes a directory with files of these contents.
func writeFiles(t *testing.T, files map[string]string) (root string) {
	t.Helper()
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
	root := writeFiles(t, map[string]string{
		"a/memory.max": "1000\n", "a/memory.current": "700\n",
		"a/memory.stat":  "anon 500\nactive_file 50\ninactive_file 150\n",
		"a/b/memory.max": "max\n", "a/b/memory.current": "10\n",
		"c/memory.max": "300\n", "c/memory.current": "400\n",
	})
	for own, want := range map[string]float64{
		"0::/a/b\n": 500, "0::/c\n": 0, "0::/\n": math.Inf(1), "0::/elsewhere\n": math.Inf(1), "": math.Inf(1),
		"12:memory:/c\n": math.Inf(1), // of version 1
	} {
		if left := memoryLeft(groupsOf(root, own)); left != want {
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
		{"held back", "0::/own", map[string]string{
			"own/cpu.stat": "usage_usec 5\nnr_periods 10\nnr_throttled 3\nthrottled_usec 9900000\n"}, 0.3},
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
		got := throttled(groupsOf(writeFiles(t, c.files), c.own))
		if math.Abs(got-c.want) > 1e-9 || math.IsNaN(got) != math.IsNaN(c.want) {
			t.Errorf("%s: %g s, want %g", c.name, got, c.want)
		}
	}
}
