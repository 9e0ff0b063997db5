package disk

import (
	"fmt"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// Usage is what the trees below dirs hold; dirs are not to overlap. Absolute is
// the apparent size of their regular files, Disk the blocks of all they hold,
// directories and dirs themselves included; a file with several names is one
// inode and counted once. Objects is −1: only the system knows how it lays them
// out. What is named [Probe] is ours, and left out. Symbolic links are not
// followed; what vanishes during the walk counts or does not.
func Usage(dirs ...Dir) (system.Holdings, error) {
	type inode struct {
		files          testbed.Files
		device, number uint64
	}
	seen := map[inode]bool{}
	total := system.Holdings{Objects: -1}
	for _, d := range dirs {
		if err := d.Files.Walk(d.Path, func(e testbed.Entry) error {
			if slices.Contains(strings.Split(e.Path, "/"), Probe) {
				return nil
			}
			if e.Path != "." {
				total.Entries++
			}
			if id := (inode{d.Files, e.Device, e.Inode}); !seen[id] {
				seen[id] = true
				total.Disk += e.Disk
				if e.Mode.IsRegular() {
					total.Absolute += e.Size
				}
			}
			return nil
		}); err != nil {
			return system.Holdings{}, fmt.Errorf("disk usage of %s: %w", d.Path, err)
		}
	}
	total.Inodes = int64(len(seen))
	return total, nil
}
