package disk

import (
	"fmt"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// Usage returns what the trees below dirs contain; dirs must not overlap. Absolute is the apparent
// size of regular files. Disk is the size of all blocks, including those of directories and of dirs
// themselves; a file with several names is one inode and counts once. Objects is −1: only the
// system knows its layout. Entries named [Probe] belong to Plimsoll and are skipped. Symbolic links
// are not followed; files that vanish during the walk may or may not count.
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
