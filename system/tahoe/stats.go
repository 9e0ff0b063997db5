package tahoe

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// Stats implements system.Stats, from the disks of the storage nodes: shares with the headers and
// leases of their containers. An object is a storage index, whose shares are in shares/PR/INDEX/ of
// one or more storage nodes; PR is the first two characters of the index. A killed storage node may
// leave the directory of a share that never arrived.
func (s *started) Stats(context.Context) (system.Holdings, error) {
	var roots []disk.Dir
	for _, dir := range s.dirs {
		roots = append(roots, dir.Sub("storage/shares"))
	}
	h, err := disk.Usage(roots...)
	indexes := map[string]bool{}
	for _, root := range roots {
		err = errors.Join(err, root.Files.Walk(root.Path, func(e testbed.Entry) error {
			if part := strings.Split(e.Path, "/"); len(part) == 3 && part[0] != incoming {
				indexes[part[1]] = true
			}
			return nil
		}))
	}
	if err != nil {
		return h, fmt.Errorf("tahoe: %w", err)
	}
	h.Objects = int64(len(indexes))
	return h, nil
}

// incoming is the directory in shares/ for incomplete shares.
const incoming = "incoming"
