package fanout

import (
	"context"
	"fmt"
	"io"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
)

var (
	_ system.Member    = (*node)(nil)
	_ system.Restarter = (*node)(nil)
	_ system.Healther  = (*node)(nil)
)

// node is a server and a downloader on a host.
type node struct {
	*member.Daemon
	serves string // address of the content's server
	index  int
	known  *registry
}

// Publish implements system.Member.
func (n *node) Publish(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	var m manifest
	if err := n.Daemon.Publish(ctx, name, size, r, &m); err != nil {
		return "", err
	}
	ref := system.Ref(m.ref())
	n.known.add(ref, m, n.index, n.serves)
	return ref, nil
}

// Fetch implements system.Member.
func (n *node) Fetch(ctx context.Context, ref system.Ref, from []string) error {
	if err := checkRef(string(ref)); err != nil {
		return fmt.Errorf("fanout: %q is no ref (%w): %w", ref, err, system.ErrBadRef)
	}
	t, err := n.known.task(ref, n.index, from)
	if err != nil {
		return err
	}
	return n.Daemon.Fetch(ctx, ref, from, t)
}

// Forget implements system.Member.
func (n *node) Forget(ctx context.Context, ref system.Ref) error {
	if err := n.Daemon.Forget(ctx, ref); err != nil {
		return err
	}
	n.known.drop(ref, n.index)
	return nil
}

// Restart implements system.Restarter. What the node published or fetched goes
// on; what there is of it is checked anew.
func (n *node) Restart(ctx context.Context, keep bool) error {
	if !keep {
		n.known.drop("", n.index)
	}
	return n.Daemon.Restart(ctx, keep)
}
