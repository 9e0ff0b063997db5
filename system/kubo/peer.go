package kubo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/testbed"
)

var (
	_ system.Member    = (*member)(nil)
	_ system.Restarter = (*member)(nil)
	_ system.Healther  = (*member)(nil)
)

// answer is how long a node may take to answer what needs no work.
const answer = 10 * time.Second

// member is a node of a swarm of any size: what it was told and what it has. The
// tool speaks to it on its own host: what crosses links is bitswap.
type member struct {
	*daemon
	layout  layout
	address string // multiaddress with the node's id

	mu    sync.Mutex
	tasks map[system.Ref]*task
	known []string // peers for every content
}

// startSwarm starts a node on each host, with a key of their own and nothing
// else that they know of each other.
func startSwarm(ctx context.Context, d system.Deployment, bin string, l layout, about map[string]string) (system.Cluster, error) {
	for _, k := range []string{"put", "range"} {
		delete(about, k)
	}
	about["method"], about["exchange"] = "pin", "bitswap"
	about["transport"], about["discovery"] = "TCP, pre-shared key", "none: peers are told"
	key := swarmKey()
	return group.Start(ctx, len(d.Hosts), about, func(ctx context.Context, i int) (group.Node, error) {
		port, err := d.Port(ctx, d.Hosts[i])
		if err != nil {
			return nil, fmt.Errorf("kubo: %w", err)
		}
		k, err := prepare(ctx, d, d.Hosts[i], fmt.Sprintf("%s/node-%d", name, i+1), bin, key, port)
		if err != nil {
			return nil, fmt.Errorf("kubo: %w", err)
		}
		m := &member{daemon: k, layout: l, tasks: map[system.Ref]*task{}}
		id, err := k.run(ctx)
		if err == nil {
			m.address, err = k.rpc.address(ctx)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("kubo: %w", err), m.Stop(context.WithoutCancel(ctx)))
		}
		about["version"] = id.AgentVersion
		return m, nil
	})
}

// Address implements system.Connector.
func (m *member) Address(context.Context) (string, error) { return m.address, nil }

// Connect implements system.Connector: a peer for every content.
func (m *member) Connect(ctx context.Context, address string) error {
	if _, err := peerOf(address); err != nil {
		return err
	}
	if err := m.alive(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	if err := m.rpc.swarm(ctx, "connect", address); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Contains(m.known, address) {
		m.known = append(m.known, address)
	}
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
func (m *member) Publish(ctx context.Context, title string, size int64, r io.Reader) (system.Ref, error) {
	if err := m.alive(); err != nil {
		return "", err
	}
	before, err := m.traffic(ctx)
	if err != nil {
		return "", err
	}
	ref, err := m.rpc.add(ctx, m.layout, disk.FileName(title), size, r)
	if err != nil {
		return "", fmt.Errorf("kubo: publish %q (%d bytes): %w", title, size, err)
	}
	m.mu.Lock()
	old, there := m.tasks[ref]
	if !there {
		m.tasks[ref] = &task{member: m, ref: ref, size: size, verified: size, complete: true, before: before}
	}
	m.mu.Unlock()
	if there {
		old.published(size)
	}
	return ref, nil
}

// Fetch implements system.Member: pin/add, which walks the graph and keeps
// every block.
func (m *member) Fetch(ctx context.Context, ref system.Ref, from []string) error {
	if err := valid(ref); err != nil {
		return err
	}
	for _, a := range from {
		if _, err := peerOf(a); err != nil {
			return err
		}
	}
	if err := m.alive(); err != nil {
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
		t = &task{member: m, ref: ref, size: -1, before: before}
		m.tasks[ref] = t
	}
	t.begin(from)
	return nil
}

// of is a content that this node was told of.
func (m *member) of(ref system.Ref) (*task, error) {
	if err := valid(ref); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	t, ok := m.tasks[ref]
	if !ok {
		return nil, fmt.Errorf("kubo: %s on %s: %w", ref, m.label, system.ErrNotFound)
	}
	return t, nil
}

// Progress implements system.Member.
func (m *member) Progress(ctx context.Context, ref system.Ref) (f system.Progress, err error) {
	if err := m.daemon.alive(); err != nil {
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

func (m *member) traffic(ctx context.Context) (s traffic, err error) {
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	return s, m.rpc.json(ctx, "bitswap/stat", nil, &s)
}

// ReadBack implements system.Member: from the node's own blocks. The daemon
// does not hash what it reads there.
func (m *member) ReadBack(ctx context.Context, ref system.Ref, w io.Writer) error {
	if err := m.alive(); err != nil {
		return err
	}
	if _, err := m.of(ref); err != nil {
		return err
	}
	resp, err := m.rpc.call(ctx, "cat", url.Values{"arg": {string(ref)}, "offline": {"true"}})
	if err != nil {
		return fmt.Errorf("kubo: read back %s: %w", ref, err)
	}
	defer resp.Body.Close()
	got, err := io.Copy(w, resp.Body)
	if err == nil {
		err = m.rpc.late("cat", resp)
	}
	if err != nil {
		return fmt.Errorf("kubo: read back %s: after %d bytes: %w", ref, got, truncated(err))
	}
	return nil
}

// Forget implements system.Member: pin/rm and repo/gc. When it was the last
// content the connections are closed: the next begins with new ones.
func (m *member) Forget(ctx context.Context, ref system.Ref) error {
	t, err := m.of(ref)
	if err != nil {
		return err
	}
	t.stop()
	m.mu.Lock()
	delete(m.tasks, ref)
	last := len(m.tasks) == 0
	m.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, time.Minute) // gc waits for pins under way
	defer cancel()
	if err := m.rpc.forget(ctx, ref); err != nil {
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

// peers are the ids of those who are connected.
func (r *rpc) peers(ctx context.Context) (map[string]bool, error) {
	var s struct{ Peers []struct{ Peer string } }
	if err := r.json(ctx, "swarm/peers", nil, &s); err != nil {
		return nil, err
	}
	ids := map[string]bool{}
	for _, p := range s.Peers {
		ids[p.Peer] = true
	}
	return ids, nil
}

// Kill implements system.Restarter.
func (m *member) Kill(context.Context) error {
	ended, cancel := context.WithCancel(context.Background())
	cancel() // no time to end by itself
	return m.process().Stop(ended)
}

// Restart implements system.Restarter. With its data a node goes on with what it
// was told, from the blocks that it has.
func (m *member) Restart(ctx context.Context, keep bool) error {
	if err := m.process().Stop(ctx); err != nil {
		return err
	}
	m.rpc.web.Redial()
	m.mu.Lock()
	tasks := m.tasks
	m.tasks = map[system.Ref]*task{}
	m.mu.Unlock()
	for _, t := range tasks {
		t.stop()
	}
	if !keep {
		if err := m.empty(ctx); err != nil {
			return fmt.Errorf("kubo: empty the store of %s: %w", m.label, err)
		}
	}
	if _, err := m.run(ctx); err != nil {
		return fmt.Errorf("kubo: restart: %w", err)
	}
	if !keep {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for ref, old := range tasks {
		t := &task{member: m, ref: ref, size: old.size}
		m.tasks[ref] = t
		t.begin(old.from)
	}
	return nil
}

// Health implements system.Healther.
func (m *member) Health(ctx context.Context) error {
	if err := m.alive(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	if _, err := m.rpc.id(ctx); err != nil {
		return fmt.Errorf("kubo: health probe of %s failed: %w", m.label, err)
	}
	return nil
}

// Processes implements system.Node.
func (m *member) Processes() []*testbed.Process {
	if p := m.process(); p != nil {
		return []*testbed.Process{p}
	}
	return nil
}

// Stop implements group.Node.
func (m *member) Stop(ctx context.Context) error {
	m.mu.Lock()
	tasks := m.tasks
	m.tasks = map[system.Ref]*task{}
	m.mu.Unlock()
	for _, t := range tasks {
		t.stop()
	}
	defer m.rpc.web.Close()
	if p := m.process(); p != nil {
		return p.Stop(ctx)
	}
	return nil
}
