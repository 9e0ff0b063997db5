package tahoe

import (
	"fmt"
	"strings"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// holdings walks the directories of shares. An object is a storage index,
// whose shares lie in shares/PR/INDEX/ of one or more storage nodes.
func (g *grid) holdings() (system.Holdings, error) {
	roots := g.shareDirs()
	h, err := disk.Usage(roots...)
	if err != nil {
		return h, fmt.Errorf("tahoe: %w", err)
	}
	if h.Objects, err = indexes(roots); err != nil {
		return h, fmt.Errorf("tahoe: %w", err)
	}
	return h, nil
}

// shareDirs are the directories of the storage nodes below which shares lie.
func (g *grid) shareDirs() []disk.Dir {
	var roots []disk.Dir
	for _, dir := range g.dirs {
		roots = append(roots, dir.Sub("storage/shares"))
	}
	return roots
}

// incoming is the directory in shares/ for what is not stored yet.
const incoming = "incoming"

// indexes counts the storage indexes that have shares, PR/INDEX/SHARE below any of
// roots; PR is the index's first two characters. A storage node that was killed may
// leave the directory of a share that never came.
func indexes(roots []disk.Dir) (int64, error) {
	seen := map[string]bool{}
	for _, root := range roots {
		err := root.Files.Walk(root.Path, func(e testbed.Entry) error {
			if part := strings.Split(e.Path, "/"); len(part) == 3 && part[0] != incoming {
				seen[part[1]] = true
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	return int64(len(seen)), nil
}
