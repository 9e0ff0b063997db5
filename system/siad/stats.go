package siad

import (
	"context"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
)

// Stats implements system.Stats. Absolute is what the renter has sent to hosts
// for the files it still has: whole sectors, every piece. An attached renter has
// files of others: there only those count that this run may have stored, or,
// when it only reads, those of its folder. Disk, entries and inodes are those of
// the hosts' storage folders, when we have started them.
func (n *node) Stats(ctx context.Context) (system.Holdings, error) {
	h := system.Holdings{Disk: -1, Entries: -1, Inodes: -1}
	err := n.files(ctx, func(f file) error {
		if n.Space.Ours(f.SiaPath) {
			h.Objects++
			h.Absolute += int64(f.UploadedBytes)
		}
		return nil
	})
	if err != nil {
		return system.Holdings{}, err
	}
	if len(n.stores) > 0 {
		on, err := disk.Usage(n.stores...)
		if err != nil {
			return system.Holdings{}, err
		}
		h.Disk, h.Entries, h.Inodes = on.Disk, on.Entries, on.Inodes
	}
	return h, nil
}
