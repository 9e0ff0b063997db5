package boxo

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/testbed"
)

var (
	_ system.HTTPServer = (*gatewayNode)(nil)
	_ system.Healther   = (*gatewayNode)(nil)
	_ system.Seeder     = (*gatewayNode)(nil)
	_ system.Ranger     = (*gatewayNode)(nil)
	_ system.Stats      = (*gatewayNode)(nil)
	_ system.Stater     = (*gatewayNode)(nil)
	_ system.Redialer   = (*gatewayNode)(nil)
)

// gatewayNode is a node that is reached over HTTP.
type gatewayNode struct {
	at *daemon

	mu    sync.Mutex
	probe system.Ref
}

func startGateway(ctx context.Context, d system.Deployment, h testbed.Host) (group.Node, error) {
	port, err := d.Port(ctx, h)
	if err != nil {
		return nil, err
	}
	label := name + "-" + h.Name()
	n := &gatewayNode{}
	if n.at, err = prepare(d, h, port, label); err != nil {
		return nil, err
	}
	if err := n.at.run(ctx, d, h, label, n.Health); err != nil {
		return nil, errors.Join(err, n.Stop(context.WithoutCancel(ctx)))
	}
	return n, nil
}

// Target implements system.HTTPServer.
func (n *gatewayNode) Target(ref system.Ref) (system.HTTPTarget, error) {
	t, err := n.at.file(ref)
	if err != nil || n.at.format == "file" {
		return t, err
	}
	t.Encoded = n.at.format
	t.URL.RawQuery = "format=" + n.at.format
	if n.at.format == "car" {
		// Without these the order and repetitions are the gateway's choice.
		t.URL.RawQuery += "&car-version=1&car-order=dfs&car-dups=n&dag-scope=all"
	}
	return t, nil
}

// Put implements system.Node.
func (n *gatewayNode) Put(ctx context.Context, _ string, size int64, r io.Reader) (system.Ref, error) {
	return n.at.add(ctx, n.at.Client, size, r)
}

// Seed implements system.Seeder: the same import, asked for by the host itself.
func (n *gatewayNode) Seed(ctx context.Context, _ string, size int64, r io.Reader) (system.Ref, error) {
	return n.at.add(ctx, n.at.local, size, r)
}

// Get implements system.Node.
func (n *gatewayNode) Get(ctx context.Context, ref system.Ref, w io.Writer) error {
	return n.at.Get(ctx, ref, w)
}

// GetRange implements system.Ranger.
func (n *gatewayNode) GetRange(ctx context.Context, ref system.Ref, off, count int64, w io.Writer) error {
	return n.at.GetRange(ctx, ref, off, count, w)
}

// Redial implements system.Redialer.
func (n *gatewayNode) Redial(ctx context.Context) error {
	n.at.Client.Redial()
	return ctx.Err()
}

// Stat implements system.Stater, by HEAD.
func (n *gatewayNode) Stat(ctx context.Context, ref system.Ref) (system.Object, error) {
	size, err := n.at.StatSize(ctx, ref)
	return system.Object{Ref: ref, Size: size}, err
}

// Stats implements system.Stats.
func (n *gatewayNode) Stats(ctx context.Context) (system.Holdings, error) { return n.at.holdings(ctx) }

// Health implements system.Healther: a block from the store, through the whole
// gateway, over a new connection. The first call puts that block there.
func (n *gatewayNode) Health(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.at.alive(); err != nil {
		return err
	}
	if n.probe == "" {
		ref, err := n.at.add(ctx, n.at.Client, int64(len(disk.ProbeContent)), bytes.NewReader(disk.ProbeContent))
		if err != nil {
			return err
		}
		n.probe = ref
	}
	t, err := n.at.file(n.probe)
	if err != nil {
		return err
	}
	return n.at.Client.Probe(ctx, t, disk.ProbeContent)
}

// Processes implements system.Node.
func (n *gatewayNode) Processes() []*testbed.Process { return []*testbed.Process{n.at.proc} }

// Stop implements group.Node.
func (n *gatewayNode) Stop(ctx context.Context) error { return n.at.stop(ctx) }
