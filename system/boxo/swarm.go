package boxo

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"sync"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/testbed"
)

var (
	_ system.Healther = (*swarmNode)(nil)
	_ system.Seeder   = (*swarmNode)(nil)
	_ system.Ranger   = (*swarmNode)(nil)
	_ system.Cooler   = (*swarmNode)(nil)
	_ system.Stats    = (*swarmNode)(nil)
)

// swarmNode is the client's node, and the storage node that it fetches from.
// The tool speaks to either on the node's own host alone: what crosses the link
// is bitswap.
type swarmNode struct {
	client, storage *daemon
	near            string // directory of what the client's node fetched

	mu    sync.Mutex
	probe system.Ref
}

func startSwarm(ctx context.Context, d system.Deployment, h testbed.Host) (group.Node, error) {
	n := &swarmNode{}
	if err := n.start(ctx, d, h); err != nil {
		return nil, errors.Join(err, n.Stop(context.WithoutCancel(ctx)))
	}
	return n, nil
}

func (n *swarmNode) start(ctx context.Context, d system.Deployment, h testbed.Host) error {
	const storage, client = name + "/storage-1", name + "/client-1"
	port, err := d.Port(ctx, h)
	if err != nil {
		return err
	}
	if n.storage, err = prepare(d, h, port, "storage-1"); err != nil {
		return err
	}
	if port, err = d.Client.FreePort(ctx); err != nil {
		return err
	}
	if n.client, err = prepare(d, d.Client, port, "client-1"); err != nil {
		return err
	}
	// Keys lie beside what the nodes keep: they are no holdings.
	swarmKey, identity := filepath.Join(d.Dir, "swarm.key"), filepath.Join(d.Dir, "storage-1.key")
	if err := writeSwarmKey(swarmKey); err != nil {
		return err
	}
	id, err := writeIdentity(identity)
	if err != nil {
		return err
	}
	if port, err = h.FreePort(ctx); err != nil {
		return err
	}
	listen := system.JoinPort(h, port)
	err = n.storage.run(ctx, d, h, storage, n.ready, "--swarm_key", swarmKey, "--identity", identity, "--swarm_listen", listen)
	if err != nil {
		return err
	}
	address, err := swarmAddress(listen, id)
	if err != nil {
		return err
	}
	n.near = filepath.Join(d.Dir, "client-1.near") // beside, too: a cache
	return n.client.run(ctx, d, d.Client, client, n.Health, "--swarm_key", swarmKey, "--near", n.near, "--peer", address)
}

// writeSwarmKey makes the swarm's pre-shared key.
func writeSwarmKey(path string) error {
	psk := make([]byte, 32)
	rand.Read(psk)
	return os.WriteFile(path, []byte("/key/swarm/psk/1.0.0/\n/base16/\n"+hex.EncodeToString(psk)+"\n"), 0o600)
}

// writeIdentity makes a node's private key.
func writeIdentity(path string) (peer.ID, error) {
	private, public, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		return "", err
	}
	key, err := crypto.MarshalPrivateKey(private)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(path, key, 0o600); err != nil {
		return "", err
	}
	return peer.IDFromPublicKey(public)
}

// swarmAddress is the multiaddress of an IP:PORT with the id of who listens there.
func swarmAddress(listen string, id peer.ID) (string, error) {
	at, err := netip.ParseAddrPort(listen)
	if err != nil {
		return "", err
	}
	address, err := manet.FromNetAddr(net.TCPAddrFromAddrPort(at))
	if err != nil {
		return "", err
	}
	return address.String() + "/p2p/" + id.String(), nil
}

// ready says that the storage node serves, and leaves the probe there.
func (n *swarmNode) ready(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.probe == "" {
		ref, err := n.storage.add(ctx, n.storage.local, int64(len(disk.ProbeContent)), bytes.NewReader(disk.ProbeContent))
		if err != nil {
			return err
		}
		n.probe = ref
	}
	return nil
}

// Put implements system.Node: an import at the client's own node, as uploads to
// IPFS are. Nothing crosses the link.
func (n *swarmNode) Put(ctx context.Context, _ string, size int64, r io.Reader) (system.Ref, error) {
	return n.client.add(ctx, n.client.Client, size, r)
}

// Seed implements system.Seeder: an import at the storage node.
func (n *swarmNode) Seed(ctx context.Context, _ string, size int64, r io.Reader) (system.Ref, error) {
	return n.storage.add(ctx, n.storage.local, size, r)
}

// Get implements system.Node: what the client's node has not got, it fetches.
func (n *swarmNode) Get(ctx context.Context, ref system.Ref, w io.Writer) error {
	return n.client.Get(ctx, ref, w)
}

// GetRange implements system.Ranger.
func (n *swarmNode) GetRange(ctx context.Context, ref system.Ref, off, count int64, w io.Writer) error {
	return n.client.GetRange(ctx, ref, off, count, w)
}

// Cool implements system.Cooler. The client's node forgets the blocks that it
// fetched and checks that none is left; its gateway, asked to answer without the
// network, then must refuse. What was imported there cannot be forgotten.
func (n *swarmNode) Cool(ctx context.Context, ref system.Ref) error {
	t, err := n.storage.file(ref)
	if err != nil {
		return err
	}
	if status, err := n.ask(ctx, n.storage, http.MethodHead, t, nil); err != nil {
		return err
	} else if status == http.StatusNotFound {
		return fmt.Errorf("boxo: cool %s: the storage node has not got it: %w", ref, system.ErrNotFound)
	}
	status, err := n.ask(ctx, n.client, http.MethodPost, n.client.at(coolPath+string(ref)), nil)
	switch {
	case err != nil:
		return err
	case status == http.StatusConflict:
		return fmt.Errorf("boxo: cool %s: it was put at the client's node, which keeps it: %w", ref, system.ErrWarm)
	case status != http.StatusOK:
		return fmt.Errorf("boxo: cool %s: status %d; see %s", ref, status, n.client.proc.LogPath())
	}
	t, err = n.client.file(ref)
	if err != nil {
		return err
	}
	status, err = n.ask(ctx, n.client, http.MethodHead, t, http.Header{"Cache-Control": {"only-if-cached"}})
	if err == nil && status != http.StatusPreconditionFailed {
		err = fmt.Errorf("boxo: cool %s: the client's node answers %d without the network: %w", ref, status, system.ErrWarm)
	}
	return err
}

// ask makes a request of a daemon, from its own host, and returns the status.
func (n *swarmNode) ask(ctx context.Context, d *daemon, method string, t system.HTTPTarget, head http.Header) (int, error) {
	req, err := http.NewRequestWithContext(ctx, method, t.URL.String(), nil)
	if err != nil {
		return 0, fmt.Errorf("boxo: %w", err)
	}
	if head != nil {
		req.Header = head
	}
	resp, err := d.local.HTTP().Do(req)
	if err != nil {
		return 0, fmt.Errorf("boxo: %w", err)
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// Stats implements system.Stats: both nodes, since what is put is kept by the
// client's own; without the blocks that it fetched.
func (n *swarmNode) Stats(ctx context.Context) (system.Holdings, error) {
	h, err := disk.Usage(n.client.dir, n.storage.dir)
	if err != nil {
		return h, fmt.Errorf("boxo: %w", err)
	}
	return h, ctx.Err()
}

// Health implements system.Healther: a block that the client's node has to
// fetch from the storage node.
func (n *swarmNode) Health(ctx context.Context) error {
	for _, d := range []*daemon{n.storage, n.client} {
		if err := d.alive(); err != nil {
			return err
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.Cool(ctx, n.probe); err != nil {
		return err
	}
	t, err := n.client.file(n.probe)
	if err != nil {
		return err
	}
	return n.client.Client.Probe(ctx, t, disk.ProbeContent)
}

// Processes implements system.Node.
func (n *swarmNode) Processes() []*testbed.Process {
	return []*testbed.Process{n.client.proc, n.storage.proc}
}

// Stop implements group.Node: first the node that asks.
func (n *swarmNode) Stop(ctx context.Context) error {
	return errors.Join(n.client.stop(ctx), n.storage.stop(ctx))
}
