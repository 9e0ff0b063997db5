package bittorrent

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
)

var (
	_ system.Member    = (*node)(nil)
	_ system.Restarter = (*node)(nil)
	_ system.Healther  = (*node)(nil)
	_ system.Seeder    = (*node)(nil)
	_ system.Cooler    = (*node)(nil)
)

// node is a peer on a host, and the peer at the client that puts and gets. The
// tool speaks to either on its own host alone: what crosses links is BitTorrent.
type node struct {
	*daemon
	client *daemon // the same for all nodes; nil in scenario disseminate
	first  bool    // among whose processes the client's is counted
}

var errNoClient = errors.New("bittorrent: a swarm has no node at the client that could put or get")

// Address implements system.Connector: IP:PORT.
func (n *node) Address(context.Context) (string, error) { return n.peer, nil }

// Seed implements system.Seeder.
func (n *node) Seed(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	return n.Publish(ctx, name, size, r)
}

// Put implements system.Node: the client's node publishes, and this one fetches
// from it. The client's node keeps its copy until it is cooled.
func (n *node) Put(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	if n.client == nil {
		return "", errNoClient
	}
	ref, err := n.client.Publish(ctx, name, size, r)
	if err != nil {
		return "", err
	}
	if err := n.Fetch(ctx, ref, []string{n.client.peer}); err != nil {
		return "", err
	}
	// The client's node knows to whom it serves: either may end.
	ctx, done := n.whileAlive(ctx)
	defer done()
	return ref, n.await(ctx, ref)
}

// Get implements system.Node: the client's node fetches what it has not got, and
// its bytes are read as they come.
func (n *node) Get(ctx context.Context, ref system.Ref, w io.Writer) error {
	if n.client == nil {
		return errNoClient
	}
	if err := n.holds(ctx, ref); err != nil {
		return err
	}
	if err := n.client.Fetch(ctx, ref, []string{n.peer}); err != nil {
		return err
	}
	ctx, done := n.whileAlive(ctx)
	defer done()
	err := n.client.Read(ctx, streamPath, ref, w)
	if gone := n.Alive(); err != nil && gone != nil {
		err = gone
	}
	return err
}

// holds says whether this node has all of ref, or ErrNotFound.
func (n *node) holds(ctx context.Context, ref system.Ref) error {
	f, err := n.Progress(ctx, ref)
	if err == nil && !f.Complete {
		err = fmt.Errorf("bittorrent: %s has %d of %d bytes of %s: %w", n.Label(), f.Verified, f.Size, ref, system.ErrNotFound)
	}
	return err
}

// whileAlive is ctx, ended when one of the two processes does.
func (n *node) whileAlive(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-ctx.Done():
		case <-n.ended():
			cancel(n.Alive())
		case <-n.client.ended():
			cancel(n.client.Alive())
		}
	}()
	return ctx, func() { cancel(nil) }
}

// Cool implements system.Cooler: the client's node forgets ref, and then knows
// nothing of it.
func (n *node) Cool(ctx context.Context, ref system.Ref) error {
	if n.client == nil {
		return errNoClient
	}
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
	if n.client != nil {
		if err := n.client.Health(ctx); err != nil {
			return err
		}
	}
	return n.daemon.Health(ctx)
}

// Processes implements system.Node.
func (n *node) Processes() []*testbed.Process {
	own := n.daemon.Processes()
	if n.first && n.client != nil {
		return append(n.client.Processes(), own...)
	}
	return own
}
