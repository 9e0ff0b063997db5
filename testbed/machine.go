package testbed

import (
	"context"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/plimsoll-project/plimsoll/record"
)

// here is the machine that we run on.
type here struct{ t *Testbed }

// Here is the machine that we run on, of which no testbed has been made yet: it has
// nothing to poll and makes no RAM disks.
func Here() Machine { return here{} }

// Name implements Machine.
func (here) Name() string { return "" }

// CPUs implements Machine.
func (here) CPUs() int { return runtime.NumCPU() }

// Poll implements Machine.
func (m here) Poll() []record.Sample {
	if m.t == nil {
		return nil
	}
	return m.t.look()
}

// dropFile is where root makes the kernel drop clean pages of files
// (proc_sys_vm(5), value 1).
const dropFile = "/proc/sys/vm/drop_caches"

// DropCaches implements Machine.
func (here) DropCaches(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	unix.Sync()
	if err := os.WriteFile(dropFile, []byte("1"), 0); err != nil {
		return fmt.Errorf("drop the page cache: %w", err)
	}
	return nil
}

// MayDropCaches implements Machine.
func (here) MayDropCaches() error {
	f, err := os.OpenFile(dropFile, os.O_WRONLY, 0) // opening changes nothing
	if err != nil {
		return fmt.Errorf("the page cache cannot be dropped here (%w)", err)
	}
	return f.Close()
}
