package report

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// An index of 200 runs of one experiment, whose trend has them all, has a size that a
// browser opens at once: what every page brings along is 0.8 MB, the library that
// draws, and a run adds a row, its points and their rows in the trend's table.
// `make bench` shows what it takes.
func TestIndexOfManyRuns(t *testing.T) {
	const runs, most, eachMost = 200, 2 << 20, 5 << 10
	root := t.TempDir()
	first := filepath.Join(root, "run-000")
	written{title: "Nightly", version: "v1", gate: "throughput > 1kB/s", summary: true}.write(t, first)
	size := func() int {
		var page bytes.Buffer
		begun := time.Now()
		must(t, WriteIndex(&page, root))
		ids, _, err := FindRuns(root)
		must(t, err)
		t.Logf("%d runs: %.2f MB in %.2f s", len(ids), float64(page.Len())/1e6, time.Since(begun).Seconds())
		return page.Len()
	}
	one := size()
	for i := 1; i < runs; i++ {
		must(t, os.CopyFS(filepath.Join(root, fmt.Sprintf("run-%03d", i)), os.DirFS(first)))
	}
	if many := size(); many > most || many-one > (runs-1)*eachMost {
		t.Errorf("the page of one run has %d bytes, that of %d has %d", one, runs, many)
	}
}
