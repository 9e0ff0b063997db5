package deluge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
)

// node is one daemon.
type node struct {
	*member.Controlled
	config
	dir       disk.Dir   // all that it keeps
	published *published // by the whole cluster
	python    string
	token     string
	port      int // of the peers

	mu     sync.Mutex
	tasks  map[system.Ref]*task
	serial int              // of the latest task's directory
	peers  []netip.AddrPort // for every content
}

// task is a torrent that the node has.
type task struct {
	torrent
	member.Background
	dir disk.Dir // where its file is
}

func (t *task) path() string { return t.dir.Sub(t.Name).Path }

func (n *node) configDir() disk.Dir { return n.dir.Sub("config") }
func (n *node) dataDir() disk.Dir   { return n.dir.Sub("data") }

// call asks the daemon.
func (n *node) call(ctx context.Context, method string, out any, args ...any) error {
	if args == nil {
		args = []any{}
	}
	return n.Call(ctx, http.MethodPost, "/"+method, args, out)
}

// Health implements system.Healther.
func (n *node) Health(ctx context.Context) error {
	if err := n.Alive(); err != nil {
		return err
	}
	return n.ready(ctx)
}

// Address implements system.Connector.
func (n *node) Address(context.Context) (string, error) { return system.JoinPort(n.Host, n.port), nil }

// Connect implements system.Connector: peers belong to torrents, so they are named
// to the node's torrents, and to those that it will fetch.
func (n *node) Connect(ctx context.Context, address string) error {
	peers, err := parsePeers([]string{address})
	if err != nil {
		return err
	}
	if err := n.Health(ctx); err != nil {
		return n.explain("connect", err)
	}
	n.mu.Lock()
	n.peers = append(n.peers, peers...)
	n.mu.Unlock()
	for _, t := range n.all() {
		if err := n.introduce(ctx, t.ref, peers); err != nil {
			return n.explain("connect", err)
		}
	}
	return nil
}

func parsePeers(addresses []string) ([]netip.AddrPort, error) {
	var peers []netip.AddrPort
	for _, a := range addresses {
		p, err := netip.ParseAddrPort(a)
		if err != nil || p.Port() == 0 {
			return nil, fmt.Errorf("deluge: %q is not the address of a peer, such as 10.0.0.1:6881", a)
		}
		peers = append(peers, p)
	}
	return peers, nil
}

// introduce names peers to a torrent.
func (n *node) introduce(ctx context.Context, ref system.Ref, peers []netip.AddrPort) error {
	list := make([]any, len(peers))
	for i, p := range peers {
		list[i] = []any{p.Addr().String(), p.Port()}
	}
	return n.call(ctx, "connect", nil, ref, list)
}

func (n *node) explain(doing string, err error) error {
	return fmt.Errorf("deluge: %s: %s: %w", n.Label, doing, err)
}

// all are the node's tasks.
func (n *node) all() []*task {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []*task
	for _, t := range n.tasks {
		all = append(all, t)
	}
	return all
}

// rest ends what goes on in the background for the node's tasks.
func (n *node) rest() {
	for _, t := range n.all() {
		t.Stop()
	}
}

// Kill implements system.Restarter.
func (n *node) Kill(ctx context.Context) error {
	n.rest()
	n.Local.Close()
	return n.Controlled.Kill(ctx)
}

// Restart implements system.Restarter. The daemon's own notes are removed, above
// all its resume data: a file may have changed since they were taken. With the
// data kept the node gives it its torrents anew, and it hashes what is there of
// them before it uses or serves any. It has forgotten its peers.
func (n *node) Restart(ctx context.Context, keep bool) error {
	err := n.Kill(ctx)
	if err == nil {
		err = n.dir.Files.RemoveAll(n.configDir().Path)
	}
	if err == nil && !keep {
		n.mu.Lock()
		n.tasks = map[system.Ref]*task{}
		n.mu.Unlock()
		err = n.dir.Files.RemoveAll(n.dataDir().Path)
	}
	if err == nil {
		err = n.start(ctx)
	}
	if err == nil {
		for _, t := range n.all() {
			err = errors.Join(err, n.add(ctx, t, false))
		}
	}
	if err != nil {
		return n.explain("restart", err)
	}
	return nil
}

// Stop implements group.Node. Half of the times deluged aborts at its end, after
// its work: that is in its log, and no error.
func (n *node) Stop(ctx context.Context) error {
	n.rest()
	return n.Controlled.Stop(ctx)
}

// patient bounds what answers within milliseconds.
const patient = 30 * time.Second
