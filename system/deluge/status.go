package deluge

import (
	"context"

	"github.com/plimsoll-project/plimsoll/system"
)

// status is what the daemon says of a torrent.
type status struct {
	Have           int64 // bytes of whole pieces that passed their hash
	Received, Sent int64 // payload since the daemon started
	Peers          int
	Seeding        bool // complete, and written
	Checking       bool
	State, Message string // Deluge's words
}

func (s status) complete() bool { return s.Seeding && !s.Checking }

func (n *node) status(ctx context.Context, ref system.Ref) (s status, err error) {
	return s, n.call(ctx, "status", &s, ref)
}
