package report

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report/internal/synthetic"
)

// memoryEnv makes the test binary record and report in the directory that it
// names, and say how much memory that took.
const memoryEnv = "REPORT_TEST_MEMORY"

const (
	longOps     = 2_000_000
	longSeconds = 10_000
)

// Memory of recording and reporting grows with neither operations nor time: two
// million of them over hours, in a process of its own. The whole 10^8 are in the
// benchmarks.
func TestMemoryOfALongTrial(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector needs memory of its own")
	}
	if testing.Short() {
		t.Skip("records two million operations")
	}
	exe, err := os.Executable()
	must(t, err)
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), memoryEnv+"="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var recording, reporting int64
	if _, err := fmt.Sscanf(string(out), "%d %d", &recording, &reporting); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Logf("peak resident memory: %d MB recording, %d MB reporting", recording/1000, reporting/1000)
	// Kept in memory, the operations were 220 MB and the histograms of all
	// seconds 40 MB.
	if recording > 150_000 || reporting > 70_000 {
		t.Errorf("peak resident memory %d MB recording, want at most 150; %d MB reporting, want at most 70", recording/1000, reporting/1000)
	}
}

func recordAndReport(parent string) error {
	plan, err := synthetic.Plan(fmt.Sprintf(smallFile, "nginx", 1))
	if err != nil {
		return err
	}
	raw, err := plan.Marshal()
	if err != nil {
		return err
	}
	dir := filepath.Join(parent, "run")
	run, err := record.Create(dir, raw, nil, synthetic.Metrics())
	if err != nil {
		return err
	}
	w, err := run.Begin(plan.Cells[0].ID, 0, false, time.Now())
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(1, 1))
	ops := make([]record.Op, longOps/longSeconds)
	var block []byte
	for s := range longSeconds {
		for i := range ops {
			start := int64(s)*1e9 + int64(i)*int64(1e9/len(ops)) + 1
			first := start + int64(1e6*math.Exp(rng.NormFloat64()))
			ops[i] = record.Op{Kind: record.OpRange, Status: 206, Length: 1000, Bytes: 1000, Intended: start, Start: start, FirstByte: first, LastByte: first + int64(1e6*math.Exp(rng.NormFloat64()))}
		}
		block = record.AppendBlock(block[:0], ops)
		if err := w.Block(block); err != nil {
			return err
		}
	}
	err = errors.Join(w.End(record.Trial{Seconds: longSeconds, Metrics: map[string]float64{"throughput": 1000 * longOps / longSeconds}}), run.Close())
	if err != nil {
		return err
	}
	recording, err := peakMemory()
	if err != nil {
		return err
	}
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		return fmt.Errorf("reset the peak of memory: %w", err)
	}
	rd, err := record.Open(dir)
	if err != nil {
		return err
	}
	defer rd.Close()
	r, err := Build(rd)
	if err != nil {
		return err
	}
	if err := errors.Join(r.WriteHTML(io.Discard), r.WriteJSON(io.Discard)); err != nil {
		return err
	}
	f := r.Figures[len(r.Figures)-1]
	if n := len(f.Table.Rows); f.ID != "time" || n > maxPoints || n < maxPoints/2 || r.Run.Operations != longOps {
		return fmt.Errorf("%d operations; the last figure is %s with %d rows", r.Run.Operations, f.ID, n)
	}
	reporting, err := peakMemory()
	fmt.Println(recording, reporting)
	return err
}

// peakMemory is the most resident memory (kB) of this process since its peak
// was reset.
func peakMemory() (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		var kb int64
		if k, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kb); k == 1 {
			return kb, nil
		}
	}
	return 0, errors.New("/proc/self/status has no VmHWM")
}
