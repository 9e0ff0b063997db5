package testbed

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Whoever waits for a disk is counted, and never more than the time that passes.
func TestIOPressure(t *testing.T) {
	begun, before := time.Now(), Here().IOPressure()
	if math.IsNaN(before) {
		t.Skip("this kernel has no pressure stall information")
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "written"))
	must(t, err)
	defer f.Close()
	for range 20 {
		if _, err := f.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
		must(t, f.Sync())
	}
	waited := Here().IOPressure() - before
	// The kernel's clock of it is read a little after ours.
	if took := time.Since(begun).Seconds(); waited < 0 || waited > 1.1*took+0.1 {
		t.Errorf("%g s of waiting in %g s", waited, took)
	}
}
