package bittorrent

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/testbed"
)

var (
	_ system.Member    = (*daemon)(nil)
	_ system.Restarter = (*daemon)(nil)
	_ system.Healther  = (*node)(nil)
	_ system.Store     = (*node)(nil)
	_ system.Seeder    = (*node)(nil)
	_ system.Cooler    = (*node)(nil)
)

// node is a peer on a host, and the peer at the client that puts and gets. The
// tool speaks to either on its own host alone: what crosses links is BitTorrent.
type node struct {
	*daemon
	client *daemon // the same for all nodes
	first  bool    // among whose processes the client's is counted
}

// Seed implements system.Seeder.
func (n *node) Seed(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	return n.Publish(ctx, name, size, r)
}

// Put implements system.Node: the client's node publishes, and this one fetches
// from it. The client's node keeps its copy until it is cooled.
func (n *node) Put(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	ref, err := n.client.Publish(ctx, name, size, r)
	if err != nil {
		return "", err
	}
	if err := n.Fetch(ctx, ref, []string{n.client.peer}); err != nil {
		return "", err
	}
	// The client's node knows to whom it serves: either may end.
	ctx, done := member.WhileAlive(ctx, append(n.Processes(), n.client.Processes()...)...)
	defer done()
	return ref, n.await(ctx, ref)
}

// Get implements system.Node: the client's node fetches what it has not got, and
// its bytes are read as they come.
func (n *node) Get(ctx context.Context, ref system.Ref, w io.Writer) error {
	if err := n.holds(ctx, ref); err != nil {
		return err
	}
	if err := n.client.Fetch(ctx, ref, []string{n.peer}); err != nil {
		return err
	}
	ctx, done := member.WhileAlive(ctx, append(n.Processes(), n.client.Processes()...)...)
	defer done()
	err := n.client.Stream(ctx, ref, w)
	if gone := n.Alive(); err != nil && gone != nil {
		err = gone
	}
	return err
}

// holds says whether this node has all of ref, or ErrNotFound.
func (n *node) holds(ctx context.Context, ref system.Ref) error {
	f, err := n.Progress(ctx, ref)
	if err == nil && !f.Complete {
		err = fmt.Errorf("bittorrent: %s has %d of %d bytes of %s: %w", n.Label, f.Verified, f.Size, ref, system.ErrNotFound)
	}
	return err
}

// Cool implements system.Cooler: the client's node forgets ref, and then knows
// nothing of it.
func (n *node) Cool(ctx context.Context, ref system.Ref) error {
	if err := n.holds(ctx, ref); err != nil {
		return err
	}
	if err := n.client.Forget(ctx, ref); err != nil && !errors.Is(err, system.ErrNotFound) {
		return err
	}
	if f, err := n.client.Progress(ctx, ref); !errors.Is(err, system.ErrNotFound) {
		return fmt.Errorf("bittorrent: cool %s: the client's node still has %d bytes (%v): %w", ref, f.Verified, err, system.ErrWarm)
	}
	return nil
}

// Health implements system.Healther.
func (n *node) Health(ctx context.Context) error {
	return errors.Join(n.client.Health(ctx), n.daemon.Health(ctx))
}

// Processes implements system.Node.
func (n *node) Processes() []testbed.Process {
	if n.first {
		return append(n.client.Processes(), n.daemon.Processes()...)
	}
	return n.daemon.Processes()
}
