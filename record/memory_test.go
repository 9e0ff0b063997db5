package record

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A process that records and reads back operations may grow with their time
// (windows), not with their number. The whole 10^8 are in the benchmarks.
func TestMemoryIsBounded(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector needs memory of its own")
	}
	const ops, limit = 2_000_000, 100 // kept in memory, the operations alone were 220 MB
	out, err := helper(t, "bulk", filepath.Join(t.TempDir(), "run"), strconv.Itoa(ops)).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var peak int64
	if _, err := fmt.Sscanf(string(out), "peak %d kB", &peak); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Logf("peak resident memory %d MB", peak/1000)
	if peak > limit*1000 {
		t.Errorf("peak resident memory %d MB, want at most %d MB", peak/1000, limit)
	}
}

// recordInBulk records operations as an engine does, from blocks, reads them
// back and says how much memory that took.
func recordInBulk(args []string) error {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	run, err := Create(args[0], []byte("{}"), nil, nil)
	if err != nil {
		return err
	}
	w, err := run.Begin("c001", 1, false, time.Now())
	if err != nil {
		return err
	}
	source := newSynthetic(1, 50_000)
	ops := make([]Op, BlockSize)
	var block []byte
	for left := n; left > 0; left -= len(ops) {
		ops = ops[:min(len(ops), left)]
		for i := range ops {
			ops[i] = source.next()
		}
		block = AppendBlock(block[:0], ops)
		if err := w.Block(block); err != nil {
			return err
		}
	}
	if err := errors.Join(w.End(Trial{}), run.Close()); err != nil {
		return err
	}
	rd, err := Open(args[0])
	if err != nil {
		return err
	}
	defer rd.Close()
	again := NewSummary()
	for op, err := range rd.Ops(w.ID()) {
		if err != nil {
			return err
		}
		again.add(&op)
	}
	stored, err := rd.Summary(w.ID())
	if err != nil {
		return err
	}
	if a, b := again.Counts(), stored.Counts(); a.Ops != int64(n) || a.Outcomes != b.Outcomes || a.Bytes != b.Bytes {
		return fmt.Errorf("read back %+v, stored %+v", a, b)
	}
	windows := 0
	for _, err := range rd.Windows(w.ID()) {
		if err != nil {
			return err
		}
		windows++
	}
	if windows < n/50_000 {
		return fmt.Errorf("%d windows", windows)
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(status)) {
		var kb int64
		if k, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kb); k == 1 {
			fmt.Printf("peak %d kB\n", kb)
		}
	}
	return nil
}
