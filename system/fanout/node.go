package fanout

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
)

// node is a server and a downloader on a host. The tool speaks to it on its own
// host alone: what crosses links is content.
type node struct {
	*daemon
	index int
	known *registry
}

var errAsk = errors.New("fanout: contents are published and fetched by its nodes, not put and got by a client; scenario `disseminate` does so")

// Address implements system.Connector: IP:PORT of the content's server.
func (n *node) Address(context.Context) (string, error) { return n.serves, nil }

// Connect implements system.Connector: a seeder for every content of this node.
func (n *node) Connect(ctx context.Context, address string) error { return n.connect(ctx, address) }

// Publish implements system.Spreader.
func (n *node) Publish(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	m, err := n.publish(ctx, name, size, r)
	if err != nil {
		return "", err
	}
	ref := system.Ref(m.ref())
	n.known.add(ref, m, n.index, n.serves)
	return ref, nil
}

// Fetch implements system.Spreader.
func (n *node) Fetch(ctx context.Context, ref system.Ref, from []string) error {
	if err := n.check(ref); err != nil {
		return err
	}
	for _, a := range from {
		if err := checkAddress(a); err != nil {
			return err
		}
	}
	t, err := n.known.task(ref, n.index, from)
	if err != nil {
		return err
	}
	return n.fetch(ctx, ref, t)
}

// Fetched implements system.Spreader. Counts begin anew with the process.
func (n *node) Fetched(ctx context.Context, ref system.Ref) (system.Fetched, error) {
	return n.fetched(ctx, ref)
}

// ReadBack implements system.Spreader: the file as it is.
func (n *node) ReadBack(ctx context.Context, ref system.Ref, w io.Writer) error {
	return n.content(ctx, ref, w)
}

// Forget implements system.Spreader.
func (n *node) Forget(ctx context.Context, ref system.Ref) error {
	if err := n.forget(ctx, ref); err != nil {
		return err
	}
	n.known.drop(ref, n.index)
	return nil
}

// Kill implements system.Restarter.
func (n *node) Kill(ctx context.Context) error { return n.kill(ctx) }

// Restart implements system.Restarter. What the node published or fetched goes
// on; what there is of it is checked anew.
func (n *node) Restart(ctx context.Context, keep bool) error {
	if !keep {
		n.known.drop("", n.index)
	}
	return n.restart(ctx, keep)
}

// Put implements system.Node.
func (n *node) Put(context.Context, string, int64, io.Reader) (system.Ref, error) {
	return "", fmt.Errorf("%w: %w", errAsk, system.ErrReadOnly)
}

// Get implements system.Node.
func (n *node) Get(context.Context, system.Ref, io.Writer) error { return errAsk }

// Health implements system.Healther.
func (n *node) Health(ctx context.Context) error { return n.health(ctx) }

// Processes implements system.Node.
func (n *node) Processes() []*testbed.Process {
	if p := n.process(); p != nil {
		return []*testbed.Process{p}
	}
	return nil
}

// Stop implements group.Node.
func (n *node) Stop(ctx context.Context) error { return n.stop(ctx) }
