package engine

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// dropFile is where root makes the kernel drop clean pages of files
// (proc_sys_vm(5), value 1).
const dropFile = "/proc/sys/vm/drop_caches"

// dropCaches writes what waits to be written to the disks and empties the page
// cache, of the whole machine.
func dropCaches(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	unix.Sync()
	if err := os.WriteFile(dropFile, []byte("1"), 0); err != nil {
		return fmt.Errorf("drop the page cache: %w", err)
	}
	return nil
}

// checkCache refuses cold caches where they cannot be had.
func checkCache(_ context.Context, cfg Config) []Problem {
	for _, c := range cfg.Plan.Cells {
		if c.Disseminate == nil || c.Disseminate.Cache != "cold" {
			continue
		}
		f, err := os.OpenFile(dropFile, os.O_WRONLY, 0) // opening changes nothing
		if err == nil {
			f.Close()
			return nil
		}
		return []Problem{refuse(fmt.Sprintf("disseminate.cache: cold: the page cache cannot be dropped here (%v)", err),
			"run as root of the machine, not of a container, or say disseminate: {cache: warm}")}
	}
	return nil
}
