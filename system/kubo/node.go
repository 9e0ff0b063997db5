package kubo

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/patience"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// node is the client's node, and the one on the server when there is one.
type node struct {
	near     *rpc
	gateway  *url.URL // of near; nil when attached without
	serves   *url.URL // the gateway of the node that is prepared; nil when attached without
	far      *rpc     // nil: there is none that we know of
	farAddr  string   // of its swarm
	procs    []*testbed.Process
	alive    context.Context // ends with the processes; nil when attached
	unwatch  context.CancelFunc
	repos    []string // of started nodes
	attached bool
	write    bool

	method                    string
	layout                    layout
	notFoundAfter, stallAfter time.Duration

	mu     sync.Mutex
	ours   map[system.Ref]object
	parted bool // Redial has ended the connection between the nodes
}

// object is one that was stored through us.
type object struct {
	name string
	size int64
	far  bool // whole on the server's node
}

// seeding is a node whose reads can be made to cross the link: another node, on
// the server, holds what it asks for.
type seeding struct{ *node }

// private is one whose nodes may be made to forget.
type private struct{ seeding }

func (n *node) nodes() []*rpc {
	var all []*rpc
	for _, r := range []*rpc{n.near, n.far} {
		if r != nil {
			all = append(all, r)
		}
	}
	return all
}

// Put implements system.Node: an import into the client's node. Nothing crosses
// the link.
func (n *node) Put(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	return n.store(ctx, n.near, name, size, r)
}

// Seed implements system.Seeder: an import into the server's node, by its host.
func (s seeding) Seed(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	return s.store(ctx, s.far, name, size, r)
}

func (n *node) store(ctx context.Context, on *rpc, name string, size int64, r io.Reader) (system.Ref, error) {
	if err := n.mayWrite("put " + name); err != nil {
		return "", err
	}
	ref, err := on.add(ctx, n.layout, disk.FileName(name), size, r)
	if err != nil {
		return "", patience.Explain(n.alive, fmt.Errorf("kubo: put %q (%d bytes): %w", name, size, err))
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	o := n.ours[ref]
	o.name, o.size, o.far = name, size, o.far || on == n.far
	n.ours[ref] = o
	return ref, nil
}

func (n *node) mayWrite(what string) error {
	if n.attached && !n.write {
		return fmt.Errorf("kubo: %s: %w; `allow: [write]` in the experiment file permits it", what, system.ErrReadOnly)
	}
	return nil
}

// Stat implements system.Stater.
func (n *node) Stat(ctx context.Context, ref system.Ref) (system.Object, error) {
	o := system.Object{Ref: ref, Name: string(ref)}
	if err := n.ready(ctx, ref); err != nil {
		return o, err
	}
	args := url.Values{"arg": {"/ipfs/" + string(ref)}}
	if n.notFoundAfter > 0 {
		args.Set("timeout", n.notFoundAfter.String()) // or the daemon searches on when we have given up
	}
	resp, err := n.search(ctx, "stat", ref, func(ctx context.Context) (*http.Response, error) {
		return n.near.call(ctx, "files/stat", args)
	})
	if err != nil {
		return o, err
	}
	var s struct{ Size int64 }
	if err := n.near.decode("files/stat", resp, func(d *json.Decoder) error { return d.Decode(&s) }); err != nil {
		return o, err
	}
	o.Size = s.Size
	if own, ok := n.mine(ref); ok {
		o.Name = own.name
	}
	return o, nil
}

// Target implements system.HTTPServer: the gateway of the node on the server.
func (n *node) Target(ref system.Ref) (system.HTTPTarget, error) {
	if err := valid(ref); err != nil {
		return system.HTTPTarget{}, err
	}
	if n.serves == nil {
		return system.HTTPTarget{}, errors.New("kubo: objects are fetched over HTTP from a gateway: name it in option \"gateway\"")
	}
	return system.HTTPTarget{URL: n.serves.JoinPath("ipfs", string(ref)), Header: http.Header{}}, nil
}

func (n *node) mine(ref system.Ref) (object, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	o, ok := n.ours[ref]
	return o, ok
}

// emptyDirectory is pinned in every repo from the start.
const emptyDirectory = "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn"

// List implements system.Lister: what is pinned. The node tells no sizes and
// seldom names, so only what was stored through us has them.
func (n *node) List(ctx context.Context) ([]system.Object, error) {
	seen := map[string]bool{emptyDirectory: true}
	var out []system.Object
	for _, r := range n.nodes() {
		resp, err := r.call(ctx, "pin/ls", url.Values{"type": {"recursive"}, "stream": {"true"}, "names": {"true"}})
		if err != nil {
			return nil, err
		}
		err = r.decode("pin/ls", resp, func(d *json.Decoder) error {
			var pin struct{ Cid, Name string }
			if err := d.Decode(&pin); err != nil {
				return err
			}
			if seen[pin.Cid] {
				return nil
			}
			seen[pin.Cid] = true
			o := system.Object{Ref: system.Ref(pin.Cid), Name: cmp.Or(pin.Name, pin.Cid), Size: -1}
			if own, ok := n.mine(o.Ref); ok {
				o.Name, o.Size = own.name, own.size
			}
			out = append(out, o)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Stats implements system.Stats: both nodes, since what is put is kept by the
// client's own.
func (n *node) Stats(ctx context.Context) (system.Holdings, error) {
	sum := system.Holdings{Objects: -1, Disk: -1, Entries: -1, Inodes: -1}
	if len(n.repos) > 0 {
		var err error
		if sum, err = disk.Usage(n.repos...); err != nil {
			return sum, fmt.Errorf("kubo: %w", err)
		}
	}
	sum.Absolute = 0
	for _, r := range n.nodes() {
		size, err := r.repoSize(ctx)
		if err != nil {
			return system.Holdings{}, err
		}
		sum.Absolute += size
	}
	return sum, nil
}

// Address implements system.Connector.
func (n *node) Address(ctx context.Context) (string, error) { return n.near.address(ctx) }

func (r *rpc) address(ctx context.Context) (string, error) {
	i, err := r.id(ctx)
	if err != nil {
		return "", err
	}
	if len(i.Addresses) == 0 {
		return "", fmt.Errorf("kubo: id on %s: tells no address", r.base.Host)
	}
	return i.Addresses[0], nil
}

// Connect implements system.Connector.
func (n *node) Connect(ctx context.Context, address string) error {
	return n.near.swarm(ctx, "connect", address)
}

// Redial implements system.Redialer: the nodes part, and the next read begins
// with their handshake. Requests to the client's node are made anew, too.
func (n *node) Redial(ctx context.Context) error {
	for _, r := range n.nodes() {
		r.web.Redial()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.farAddr == "" || n.parted {
		return nil
	}
	if err := n.near.swarm(ctx, "disconnect", n.farAddr); err != nil {
		return err
	}
	n.parted = true
	return nil
}

// reconnect joins the nodes that Redial has parted.
func (n *node) reconnect(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.parted {
		return nil
	}
	if err := n.near.swarm(ctx, "connect", n.farAddr); err != nil {
		return err
	}
	n.parted = false
	return nil
}

const healthTimeout = 10 * time.Second

// Health implements system.Healther.
func (n *node) Health(ctx context.Context) error {
	if n.alive != nil && n.alive.Err() != nil {
		return fmt.Errorf("kubo: %w", context.Cause(n.alive))
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	for _, r := range n.nodes() {
		if _, err := r.id(ctx); err != nil {
			return fmt.Errorf("health probe failed: %w", err)
		}
	}
	return nil
}

// Processes implements system.Node.
func (n *node) Processes() []*testbed.Process { return n.procs }

// Endpoints implements system.Endpointer.
func (n *node) Endpoints() []string {
	var all []string
	for _, r := range n.nodes() {
		all = append(all, web.HostPort(r.base))
	}
	if n.gateway != nil {
		all = append(all, web.HostPort(n.gateway))
	}
	return all
}

// Stop implements group.Node.
func (n *node) Stop(ctx context.Context) error {
	if n.unwatch != nil {
		n.unwatch()
	}
	var errs []error
	for _, p := range n.procs {
		errs = append(errs, p.Stop(ctx))
	}
	for _, r := range n.nodes() {
		r.web.Close()
	}
	return errors.Join(errs...)
}
