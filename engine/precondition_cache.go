package engine

import (
	"context"
	"fmt"
	"os"
)

// dropFile is where root tells the kernel to drop clean pages of files
// (proc_sys_vm(5), value 1).
const dropFile = "/proc/sys/vm/drop_caches"

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
		return []Problem{{
			What:     fmt.Sprintf("disseminate.cache: cold: the page cache cannot be dropped here (%v)", err),
			Hint:     "run as root of the machine, not of a container, or say disseminate: {cache: warm}",
			Blocking: true,
		}}
	}
	return nil
}
