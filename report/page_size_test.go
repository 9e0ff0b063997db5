package report

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/plimsoll-project/plimsoll/report/internal/synthetic"
)

// manyCells are 500 of them.
const manyCellsFile = `
scenario: retrieve
title: Many cells
question: What does the page of many cells weigh?
systems: [nginx, boxo]
baseline: nginx
link: {rate: [100Mbit, 200Mbit, 400Mbit, 700Mbit, 1Gbit], delay: [2ms, 4ms, 6ms, 8ms, 10ms, 14ms, 20ms, 30ms, 40ms, 60ms]}
data: {size: 64MiB}
retrieve: {concurrency: [1, 4, 8, 16, 64], range: 1MiB, requests: 4}
repetitions: 3
warmup: 0
limits: {deadline: 20s}
`

// maxManyCells is what the page of 500 cells may weigh.
const maxManyCells = 5_000_000

// The page of a run of 500 cells is not too large to be opened, and its first
// screen does not wait for the rest.
func TestPageOfManyCells(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("writes 1,500 trials")
	}
	r := built(t, synthetic.Run{File: manyCellsFile, Blocks: 3})
	if len(r.Cells) != 500 {
		t.Fatalf("%d cells", len(r.Cells))
	}
	src := page(t, r)
	t.Logf("%d bytes", len(src))
	if len(src) > maxManyCells {
		t.Errorf("the page of 500 cells has %d bytes, more than %d", len(src), maxManyCells)
	}
	path := filepath.Join(t.TempDir(), "report.html")
	must(t, os.WriteFile(path, src, 0o644))
	if keep := os.Getenv("PLIMSOLL_KEEP"); keep != "" {
		must(t, os.WriteFile(keep, src, 0o644))
	}
	s := look(t, "file://"+path)
	t.Logf("ready after %.0f ms, %d of %d pictures drawn by then", s.Ready, s.Early, s.Plots)
	for _, n := range s.Noise {
		t.Error(n)
	}
	if s.Early == 0 || s.Early > 4 || s.Printed != s.Plots {
		t.Errorf("%d of %d pictures are drawn before anyone scrolls, %d on paper", s.Early, s.Plots, s.Printed)
	}
}
