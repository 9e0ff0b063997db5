package deluge

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// node is one daemon.
type node struct {
	config
	host      testbed.Host
	label     string
	dir       string // all that it keeps
	torrents  string // the .torrent files of the whole cluster
	python    string
	cert, key string
	password  string
	port, rpc int
	client    *client

	mu     sync.Mutex
	proc   *testbed.Process
	tasks  map[system.Ref]*task
	serial int              // of the latest task's directory
	peers  []netip.AddrPort // that Connect told of
}

// task is a torrent that the node has.
type task struct {
	torrent
	dir  string // where its file is
	stop context.CancelFunc
}

func (t *task) path() string { return filepath.Join(t.dir, t.name) }

func (n *node) configDir() string { return filepath.Join(n.dir, "config") }
func (n *node) dataDir() string   { return filepath.Join(n.dir, "data") }

// Processes implements system.Node.
func (n *node) Processes() []*testbed.Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	return []*testbed.Process{n.proc}
}

// Health implements system.Healther.
func (n *node) Health(ctx context.Context) error {
	if err := n.listens(ctx); err != nil {
		return n.explain("health probe", err)
	}
	return nil
}

// Address implements system.Connector.
func (n *node) Address(context.Context) (string, error) { return system.JoinPort(n.host, n.port), nil }

// Connect implements system.Connector: peers belong to torrents, so the node's
// torrents are told, and those that it will fetch.
func (n *node) Connect(ctx context.Context, address string) error {
	peers, err := parsePeers([]string{address})
	if err != nil {
		return err
	}
	if err := n.listens(ctx); err != nil {
		return n.explain("connect", err)
	}
	n.mu.Lock()
	n.peers = append(n.peers, peers...)
	n.mu.Unlock()
	for _, t := range n.all() {
		if err := n.tell(ctx, t.ref(), peers); err != nil {
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

// tell makes a torrent know of peers.
func (n *node) tell(ctx context.Context, ref system.Ref, peers []netip.AddrPort) error {
	list := make([]any, len(peers))
	for i, p := range peers {
		list[i] = []any{p.Addr().String(), int64(p.Port())}
	}
	_, err := n.client.call(ctx, "core.plimsoll_connect", string(ref), list)
	return err
}

// explain adds to an error what was done, and the process's end, if it has ended.
func (n *node) explain(doing string, err error) error {
	if end := n.ended(); end != nil {
		return fmt.Errorf("deluge: %s: %s: %w; %w", n.label, doing, err, end)
	}
	return fmt.Errorf("deluge: %s: %s: %w", n.label, doing, err)
}

// ended is nil while the daemon runs.
func (n *node) ended() error {
	n.mu.Lock()
	p := n.proc
	n.mu.Unlock()
	select {
	case <-p.Done():
		if err := p.Err(); err != nil {
			return err
		}
		return fmt.Errorf("the process has ended; see %s", p.LogPath())
	default:
		return nil
	}
}

// Stop implements group.Node. Half of the times deluged aborts at its end, after
// its work: that is in its log, and no error.
func (n *node) Stop(ctx context.Context) error {
	n.rest()
	err := n.process().Stop(ctx)
	n.client.Close()
	return err
}

func (n *node) process() *testbed.Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.proc
}

// rest ends what goes on in the background for the node's tasks.
func (n *node) rest() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, t := range n.tasks {
		t.stop()
	}
}

// patient bounds what answers within milliseconds.
const patient = 30 * time.Second
