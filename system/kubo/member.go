package kubo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
)

var (
	_ system.Member    = (*peerNode)(nil)
	_ system.Restarter = (*peerNode)(nil)
	_ system.Healther  = (*peerNode)(nil)
)

// answer is how long a node may take to answer what needs no work.
const answer = 10 * time.Second

// peerNode is a node of a swarm of any size. The tool speaks to it on its own host: what
// crosses links is bitswap.
type peerNode struct {
	*daemon
	address string // multiaddress with the node's id

	mu    sync.Mutex
	tasks map[system.Ref]*task
	known []string // peers for every content
}

// startSwarm starts a node on each host, with a key of their own and nothing
// else that they know of each other.
func startSwarm(ctx context.Context, d system.Deployment, bin string, about map[string]string) (system.Cluster, error) {
	for _, k := range []string{"put", "range"} {
		delete(about, k)
	}
	about["method"], about["exchange"] = "pin", "bitswap"
	about["transport"], about["discovery"] = "TCP, pre-shared key", "none: peers are named"
	key := swarmKey()
	return group.Start(ctx, len(d.Hosts), about, func(ctx context.Context, i int) (group.Node, error) {
		n, err := startPeer(ctx, d, i, bin, key, about)
		if err != nil {
			return nil, fmt.Errorf("kubo: %w", err)
		}
		return n, nil
	})
}

func startPeer(ctx context.Context, d system.Deployment, i int, bin, key string, about map[string]string) (*peerNode, error) {
	port, err := d.Port(ctx, d.Hosts[i])
	if err != nil {
		return nil, err
	}
	k, err := newDaemon(ctx, d, d.Hosts[i], fmt.Sprintf("node-%d", i+1), bin, key, port)
	if err != nil {
		return nil, err
	}
	m := &peerNode{daemon: k, tasks: map[system.Ref]*task{}}
	id, err := k.rpc.id(ctx)
	if err == nil {
		about["version"] = id.AgentVersion
		m.address, err = k.rpc.Address(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, m.Stop(context.WithoutCancel(ctx)))
	}
	return m, nil
}

// Address implements system.Connector.
func (m *peerNode) Address(context.Context) (string, error) { return m.address, nil }

// Connect implements system.Connector: a peer for every content.
func (m *peerNode) Connect(ctx context.Context, address string) error {
	if _, err := peerOf(address); err != nil {
		return err
	}
	if err := m.Alive(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	if err := m.rpc.Connect(ctx, address); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known = member.Merge(m.known, []string{address})
	return nil
}

// peerOf is the id at the end of a peer's address.
func peerOf(address string) (string, error) {
	at, err := peer.AddrInfoFromString(address)
	if err != nil {
		return "", fmt.Errorf("kubo: %q is no address of a peer, a multiaddress with its id: %w", address, err)
	}
	return at.ID.String(), nil
}

// Publish implements system.Member: an import, pinned.
func (m *peerNode) Publish(ctx context.Context, title string, size int64, r io.Reader) (system.Ref, error) {
	if err := m.Alive(); err != nil {
		return "", err
	}
	before, err := m.traffic(ctx)
	if err != nil {
		return "", err
	}
	ref, err := m.rpc.Store(ctx, title, size, r)
	if err != nil {
		return "", fmt.Errorf("kubo: publish %q (%d bytes): %w", title, size, err)
	}
	m.mu.Lock()
	old, there := m.tasks[ref]
	if !there {
		m.tasks[ref] = &task{node: m, ref: ref, size: size, verified: size, complete: true, before: before}
	}
	m.mu.Unlock()
	if there {
		old.published(size)
	}
	return ref, nil
}

// Fetch implements system.Member: pin/add, which walks the graph and keeps
// every block.
func (m *peerNode) Fetch(ctx context.Context, ref system.Ref, from []string) error {
	if err := valid(ref); err != nil {
		return err
	}
	for _, a := range from {
		if _, err := peerOf(a); err != nil {
			return err
		}
	}
	if err := m.Alive(); err != nil {
		return err
	}
	before, err := m.traffic(ctx)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	t, there := m.tasks[ref]
	if !there {
		t = &task{node: m, ref: ref, size: -1, before: before}
		m.tasks[ref] = t
	}
	t.begin(from)
	return nil
}

// of is a content of this node.
func (m *peerNode) of(ref system.Ref) (*task, error) {
	if err := valid(ref); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	t, ok := m.tasks[ref]
	if !ok {
		return nil, fmt.Errorf("kubo: %s on %s: %w", ref, m.Label, system.ErrNotFound)
	}
	return t, nil
}

// Progress implements system.Member.
func (m *peerNode) Progress(ctx context.Context, ref system.Ref) (f system.Progress, err error) {
	if err := m.Alive(); err != nil {
		return f, err
	}
	t, err := m.of(ref)
	if err != nil {
		return f, err
	}
	now, err := m.traffic(ctx)
	if err != nil {
		return f, err
	}
	return t.fetched(now), nil
}

// traffic is bitswap's own count of the node since its process started.
type traffic struct {
	DataReceived, DataSent int64 // bytes of blocks, those received twice included
	Peers                  []string
}

func (m *peerNode) traffic(ctx context.Context) (s traffic, err error) {
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	return s, m.rpc.json(ctx, "bitswap/stat", nil, &s)
}

// ReadBack implements system.Member: from the node's own blocks. The daemon
// does not hash what it reads there.
func (m *peerNode) ReadBack(ctx context.Context, ref system.Ref, w io.Writer) error {
	if err := m.Alive(); err != nil {
		return err
	}
	if _, err := m.of(ref); err != nil {
		return err
	}
	resp, err := m.rpc.call(ctx, "cat", url.Values{"arg": {string(ref)}, "offline": {"true"}})
	if err != nil {
		return fmt.Errorf("kubo: read back %s: %w", ref, err)
	}
	if _, err := m.rpc.copy("cat", ref, resp, w); err != nil {
		return fmt.Errorf("kubo: read back: %w", err)
	}
	return nil
}

// Forget implements system.Member: pin/rm and repo/gc. When it was the last
// content the connections are closed: the next begins with new ones.
func (m *peerNode) Forget(ctx context.Context, ref system.Ref) error {
	t, err := m.of(ref)
	if err != nil {
		return err
	}
	t.Stop()
	m.mu.Lock()
	delete(m.tasks, ref)
	last := len(m.tasks) == 0
	m.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, time.Minute) // gc waits for pins under way
	defer cancel()
	if err := m.rpc.Remove(ctx, ref); err != nil {
		return fmt.Errorf("kubo: forget %s: %w", ref, err)
	}
	if !last {
		return nil
	}
	peers, err := m.rpc.peers(ctx)
	for id := range peers {
		if err == nil {
			err = m.rpc.swarm(ctx, "disconnect", "/p2p/"+id)
		}
	}
	return err
}

// Restart implements system.Restarter. With its data a node goes on with its tasks,
// from the blocks that it has.
func (m *peerNode) Restart(ctx context.Context, keep bool) error {
	if err := m.Process.Stop(ctx); err != nil {
		return err
	}
	m.rpc.web.Redial()
	tasks := m.drop()
	if !keep {
		if err := m.empty(ctx); err != nil {
			return fmt.Errorf("kubo: empty the store of %s: %w", m.Label, err)
		}
	}
	if err := m.run(ctx); err != nil {
		return fmt.Errorf("kubo: restart: %w", err)
	}
	if !keep {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for ref, old := range tasks {
		t := &task{node: m, ref: ref, size: old.size}
		m.tasks[ref] = t
		t.begin(old.from)
	}
	return nil
}

// Health implements system.Healther.
func (m *peerNode) Health(ctx context.Context) error {
	if err := m.Alive(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	if err := m.rpc.Ping(ctx); err != nil {
		return fmt.Errorf("kubo: health probe of %s failed: %w", m.Label, err)
	}
	return nil
}

// drop ends the tasks.
func (m *peerNode) drop() map[system.Ref]*task {
	m.mu.Lock()
	tasks := m.tasks
	m.tasks = map[system.Ref]*task{}
	m.mu.Unlock()
	for _, t := range tasks {
		t.Stop()
	}
	return tasks
}

// Stop implements group.Node.
func (m *peerNode) Stop(ctx context.Context) error {
	m.drop()
	defer m.rpc.web.Close()
	return m.Process.Stop(ctx)
}
