package testbed

import (
	"os"
	"path/filepath"
	"testing"
)

// The tightest of the groups above counts, and what the page cache holds is free.
func TestGroupLeaves(t *testing.T) {
	root := t.TempDir()
	write := func(path, text string) {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("a/memory.max", "1000\n")
	write("a/memory.current", "700\n")
	write("a/memory.stat", "anon 500\nactive_file 50\ninactive_file 150\n")
	write("a/b/memory.max", "max\n")
	write("a/b/memory.current", "10\n")
	write("c/memory.max", "300\n")
	write("c/memory.current", "400\n")
	write("memory/d/memory.limit_in_bytes", "90\n")
	write("memory/d/memory.usage_in_bytes", "20\n")
	for _, c := range []struct {
		own     string
		left    float64
		limited bool
	}{
		{"0::/a/b\n", 500, true},
		{"0::/c\n", 0, true},
		{"0::/\n", 0, false},
		{"0::/elsewhere\n", 0, false},
		{"", 0, false},
		{"12:cpu,memory:/d\n0::/\n", 70, true},
		{"3:cpu:/d\n", 0, false},
	} {
		if left, limited := groupLeaves(root, c.own); left != c.left || limited != c.limited {
			t.Errorf("%q: %v, %v; want %v, %v", c.own, left, limited, c.left, c.limited)
		}
	}
	if n, err := Here().AvailableMemory(); err != nil || n < 1<<20 {
		t.Errorf("available: %v, %v", n, err)
	}
}
