package report

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
)

// longLoad is a load test as long as the study's: 25 days, a poll each minute,
// 50,000 objects.
func longLoad() loadTruth {
	s := plainLoad(9)
	s.hours, s.objects = 25*24, 50_000
	s.latency = func(files, _, _ float64) float64 { return 0.5 + files/1e4 }
	s.downtime, s.failing = [2]float64{200, 206}, 0.002
	s.leakAt, s.leak = 300, 33
	return s
}

// loadMemoryEnv makes the test binary report on the directory that it names, and
// say how long that took and how much memory.
const loadMemoryEnv = "REPORT_TEST_LOAD"

// What a page may weigh, and a report may need, of a load test of any length.
const (
	maxLoadPage   = 5 << 20
	maxLoadMemory = 300_000 // kB
)

func TestReportOfALongLoadTest(t *testing.T) {
	if testing.Short() {
		t.Skip("makes 36,000 polls and 50,000 jobs")
	}
	if raceEnabled {
		t.Skip("the race detector needs memory of its own")
	}
	exe, err := os.Executable()
	must(t, err)
	dir := longLoad().write(t)
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), loadMemoryEnv+"="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var polls, files, page, memory, ms int64
	if _, err := fmt.Sscanf(string(out), "%d %d %d %d %d", &polls, &files, &page, &memory, &ms); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Logf("%d polls, %d objects: a page of %d kB in %d ms, %d MB", polls, files, page/1000, ms, memory/1000)
	if polls < 35_000 || files != 50_000 {
		t.Errorf("%d polls and %d objects of a test of 25 days", polls, files)
	}
	if page > maxLoadPage || memory > maxLoadMemory {
		t.Errorf("the page has %d bytes, want at most %d; peak resident memory %d kB, want at most %d", page, maxLoadPage, memory, maxLoadMemory)
	}
}

type counter int64

func (c *counter) Write(b []byte) (int, error) { *c += counter(len(b)); return len(b), nil }

// loadAndReport is the report of a run directory, with what it cost.
func loadAndReport(dir string) error {
	debug.FreeOSMemory()
	begun := time.Now()
	rd, err := record.Open(dir)
	if err != nil {
		return err
	}
	defer rd.Close()
	r, err := Build(rd)
	if err != nil {
		return err
	}
	var size counter
	if err := errors.Join(r.WriteHTML(&size), r.WriteJSON(io.Discard), r.WriteText(io.Discard, 100)); err != nil {
		return err
	}
	took := time.Since(begun)
	memory, err := peakMemory()
	fmt.Println(r.Loads[0].Polls.N, r.Loads[0].Files, int64(size), memory, took.Milliseconds())
	return err
}

func BenchmarkReportOfALongLoadTest(b *testing.B) {
	s := longLoad()
	plan := s.plan(b)
	raw, err := plan.Marshal()
	must(b, err)
	dir := filepath.Join(b.TempDir(), "run")
	must(b, s.record(dir, raw, plan))
	for b.Loop() {
		rd, err := record.Open(dir)
		must(b, err)
		r, err := Build(rd)
		must(b, err)
		must(b, errors.Join(r.WriteHTML(io.Discard), rd.Close()))
	}
}
