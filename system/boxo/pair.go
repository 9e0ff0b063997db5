package boxo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/ipfs/go-cid"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/testbed"
)

var (
	_ system.Healther = (*pairNode)(nil)
	_ system.Seeder   = (*pairNode)(nil)
	_ system.Ranger   = (*pairNode)(nil)
	_ system.Cooler   = (*pairNode)(nil)
	_ system.Stats    = (*pairNode)(nil)
)

// pairNode is a swarm of two: the client's node, and the storage node that it reads
// from. The tool speaks to either on the node's own host alone: what crosses the
// link is bitswap.
type pairNode struct {
	client, storage *peerNode
	probe           system.Ref

	mu    sync.Mutex
	here  map[system.Ref]bool // at the client's node
	there map[system.Ref]bool // at the storage node
}

func startPair(ctx context.Context, d system.Deployment, h testbed.Host, psk string) (group.Node, error) {
	n := &pairNode{here: map[system.Ref]bool{}, there: map[system.Ref]bool{}}
	if err := n.start(ctx, d, h, psk); err != nil {
		return nil, errors.Join(err, n.Stop(context.WithoutCancel(ctx)))
	}
	return n, nil
}

func (n *pairNode) start(ctx context.Context, d system.Deployment, h testbed.Host, psk string) error {
	port, err := d.Port(ctx, h)
	if err != nil {
		return err
	}
	if n.storage, err = startMember(ctx, d, h, port, "storage-1", psk); err != nil {
		return err
	}
	if port, err = d.Client.Port(ctx, 0); err != nil {
		return err
	}
	if n.client, err = startMember(ctx, d, d.Client, port, "client-1", psk); err != nil {
		return err
	}
	address, err := n.storage.Address(ctx)
	if err != nil {
		return err
	}
	if err := n.client.Connect(ctx, address); err != nil {
		return err
	}
	n.probe, err = n.Seed(ctx, disk.Probe, int64(len(disk.ProbeContent)), bytes.NewReader(disk.ProbeContent))
	return err
}

// Put implements system.Node: an import at the client's own node, as uploads to
// IPFS are. Nothing crosses the link.
func (n *pairNode) Put(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	return n.publish(ctx, n.client, n.here, name, size, r)
}

// Seed implements system.Seeder: an import at the storage node.
func (n *pairNode) Seed(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	return n.publish(ctx, n.storage, n.there, name, size, r)
}

func (n *pairNode) publish(ctx context.Context, at *peerNode, has map[system.Ref]bool, name string, size int64, r io.Reader) (system.Ref, error) {
	ref, err := at.Publish(ctx, name, size, r)
	if err != nil {
		return "", err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	has[ref] = true
	return ref, nil
}

// Get implements system.Node: what the client's node has not got, it fetches, and
// does not keep.
func (n *pairNode) Get(ctx context.Context, ref system.Ref, w io.Writer) error {
	return n.read(ctx, ref, func(ctx context.Context) error { return n.client.Stream(ctx, ref, w) })
}

// GetRange implements system.Ranger.
func (n *pairNode) GetRange(ctx context.Context, ref system.Ref, off, count int64, w io.Writer) error {
	return n.read(ctx, ref, func(ctx context.Context) error {
		t := system.HTTPTarget{URL: n.client.URL(member.StreamPath + string(ref))}
		return n.client.Local.GetRange(ctx, t, off, count, w)
	})
}

// read reads what one of the nodes has: bitswap asks on for ever for what none has.
func (n *pairNode) read(ctx context.Context, ref system.Ref, do func(context.Context) error) error {
	here, there, err := n.has(ref)
	if err != nil {
		return err
	}
	if !here && !there {
		return fmt.Errorf("boxo: neither node has %s: %w", ref, system.ErrNotFound)
	}
	if err := n.alive(); err != nil {
		return err
	}
	ctx, done := member.WhileAlive(ctx, append(n.client.Processes(), n.storage.Processes()...)...)
	defer done()
	err = do(ctx)
	if gone := n.alive(); err != nil && gone != nil {
		return gone
	}
	return err
}

func (n *pairNode) has(ref system.Ref) (here, there bool, err error) {
	if _, err := cid.Decode(string(ref)); err != nil {
		return false, false, fmt.Errorf("boxo: %q is not a CID (%w): %w", ref, err, system.ErrBadRef)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.here[ref], n.there[ref], nil
}

func (n *pairNode) alive() error { return errors.Join(n.client.Alive(), n.storage.Alive()) }

// Cool implements system.Cooler: the client's node forgets what was put there.
func (n *pairNode) Cool(ctx context.Context, ref system.Ref) error {
	here, there, err := n.has(ref)
	if err != nil {
		return err
	}
	if !there {
		return fmt.Errorf("boxo: cool %s: the storage node has not got it: %w", ref, system.ErrNotFound)
	}
	if !here {
		return ctx.Err()
	}
	if err := n.client.Forget(ctx, ref); err != nil {
		return fmt.Errorf("boxo: cool %s: %w", ref, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.here, ref)
	return nil
}

// Stats implements system.Stats: both nodes, since what is put is kept by the
// client's own. What they note of their tasks is ours, and left out.
func (n *pairNode) Stats(ctx context.Context) (system.Holdings, error) {
	h, err := disk.Usage(n.client.Dir().Sub(blocksDir), n.storage.Dir().Sub(blocksDir))
	if err != nil {
		return h, fmt.Errorf("boxo: %w", err)
	}
	return h, ctx.Err()
}

// Health implements system.Healther: a block that the client's node has to
// fetch from the storage node.
func (n *pairNode) Health(ctx context.Context) error {
	var got bytes.Buffer
	if err := n.Get(ctx, n.probe, &got); err != nil {
		return fmt.Errorf("health probe failed: %w", err)
	}
	if !bytes.Equal(got.Bytes(), disk.ProbeContent) {
		return fmt.Errorf("boxo: health probe: got %d other bytes than stored", got.Len())
	}
	return nil
}

// Processes implements system.Node.
func (n *pairNode) Processes() []testbed.Process {
	return append(n.client.Processes(), n.storage.Processes()...)
}

// Stop implements group.Node: first the node that asks.
func (n *pairNode) Stop(ctx context.Context) error {
	var errs []error
	for _, p := range []*peerNode{n.client, n.storage} {
		if p != nil {
			errs = append(errs, p.Stop(ctx))
		}
	}
	return errors.Join(errs...)
}
