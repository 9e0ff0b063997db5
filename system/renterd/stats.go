package renterd

import (
	"context"

	"github.com/plimsoll-project/plimsoll/system"
)

// Stats implements system.Stats. Absolute is the sectors of the bucket's
// objects on hosts. `totalUploadedSize` lags by seconds and never falls, and
// what waits in slab buffers is in neither.
//
// The node reports totals of buckets only, and summing up the slabs of our objects
// would take a call for each. So a node that writes reports Absolute only while
// the bucket has as many objects as it has put there; else it is −1, because
// what others store meanwhile would count as the cost of ours.
func (n *node) Stats(ctx context.Context) (system.Holdings, error) {
	bucket := struct {
		Objects *int64 `json:"numObjects"`
		Sectors *int64 `json:"totalSectorsSize"`
	}{}
	if err := n.api.get(ctx, n.api.url("bus/stats/objects", "", n.query()), &bucket); err != nil {
		return system.Holdings{}, err
	}
	h := system.Holdings{Objects: told(bucket.Objects), Absolute: told(bucket.Sectors), Disk: -1, Entries: -1, Inodes: -1}
	if ours := n.Stored.Len(); n.write && h.Objects != ours {
		h.Objects, h.Absolute = ours, -1
	}
	return h, nil
}

func told(n *int64) int64 {
	if n == nil {
		return -1
	}
	return *n
}
