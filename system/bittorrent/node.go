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
	_ system.Spreader  = (*node)(nil)
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

// Connect implements system.Connector: a peer for every torrent of this node.
func (n *node) Connect(ctx context.Context, address string) error { return n.connect(ctx, address) }

// Publish implements system.Spreader.
func (n *node) Publish(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	return n.publish(ctx, name, size, r)
}

// Seed implements system.Seeder.
func (n *node) Seed(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	return n.publish(ctx, name, size, r)
}

// Fetch implements system.Spreader.
func (n *node) Fetch(ctx context.Context, ref system.Ref, from []string) error {
	return n.fetch(ctx, ref, from)
}

// Fetched implements system.Spreader. Counts begin anew with the process.
func (n *node) Fetched(ctx context.Context, ref system.Ref) (system.Fetched, error) {
	return n.fetched(ctx, ref)
}

// ReadBack implements system.Spreader: the file, whatever the library says of it.
func (n *node) ReadBack(ctx context.Context, ref system.Ref, w io.Writer) error {
	return n.content(ctx, filePath, ref, w)
}

// Forget implements system.Spreader.
func (n *node) Forget(ctx context.Context, ref system.Ref) error { return n.forget(ctx, ref) }

// Kill implements system.Restarter.
func (n *node) Kill(ctx context.Context) error { return n.kill(ctx) }

// Restart implements system.Restarter. What the node published or fetched goes
// on when its files have been checked anew.
func (n *node) Restart(ctx context.Context, keep bool) error { return n.restart(ctx, keep) }

// Put implements system.Node: the client's node publishes, and this one fetches
// from it. The client's node keeps its copy until it is cooled.
func (n *node) Put(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	if n.client == nil {
		return "", errNoClient
	}
	ref, err := n.client.publish(ctx, name, size, r)
	if err != nil {
		return "", err
	}
	if err := n.fetch(ctx, ref, []string{n.client.peer}); err != nil {
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
	if err := n.client.fetch(ctx, ref, []string{n.peer}); err != nil {
		return err
	}
	ctx, done := n.whileAlive(ctx)
	defer done()
	err := n.client.content(ctx, streamPath, ref, w)
	if gone := n.alive(); err != nil && gone != nil {
		err = gone
	}
	return err
}

// holds says whether this node has all of ref, or ErrNotFound.
func (n *node) holds(ctx context.Context, ref system.Ref) error {
	f, err := n.fetched(ctx, ref)
	if err == nil && !f.Complete {
		err = fmt.Errorf("bittorrent: %s has %d of %d bytes of %s: %w", n.label, f.Verified, f.Size, ref, system.ErrNotFound)
	}
	return err
}

// whileAlive is ctx, ended when one of the two processes does.
func (n *node) whileAlive(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-ctx.Done():
		case <-n.process().Done():
			cancel(n.alive())
		case <-n.client.process().Done():
			cancel(n.client.alive())
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
	if err := n.client.forget(ctx, ref); err != nil && !errors.Is(err, system.ErrNotFound) {
		return err
	}
	if f, err := n.client.fetched(ctx, ref); !errors.Is(err, system.ErrNotFound) {
		return fmt.Errorf("bittorrent: cool %s: the client's node still has %d bytes (%v): %w", ref, f.Verified, err, system.ErrWarm)
	}
	return nil
}

// Health implements system.Healther.
func (n *node) Health(ctx context.Context) error {
	if n.client != nil {
		if err := n.client.health(ctx); err != nil {
			return err
		}
	}
	return n.health(ctx)
}

// Processes implements system.Node.
func (n *node) Processes() []*testbed.Process {
	own := n.process()
	if own == nil {
		return nil
	}
	if n.first && n.client != nil {
		return []*testbed.Process{n.client.process(), own}
	}
	return []*testbed.Process{own}
}

// Stop implements group.Node. The client's node is stopped by the cluster.
func (n *node) Stop(ctx context.Context) error { return n.stop(ctx) }
