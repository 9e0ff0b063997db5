// Package pair is the base of systems whose client has a node of its own: a daemon
// with an HTTP API at the client and, where there is one, another on the server. A put
// is an import into the client's node; what crosses the link is the reading of what
// the server's node holds.
package pair

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// API is that of one daemon.
type API interface {
	URL() *url.URL
	Client() *web.Client
	Store(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error)
	Remove(ctx context.Context, ref system.Ref) error // the object and its blocks
	// Has says whether the daemon knows the object, without asking others.
	Has(ctx context.Context, ref system.Ref) (bool, error)
	// Local is nil when the daemon would serve the object without asking others, and
	// system.ErrNotFound when it would not.
	Local(ctx context.Context, ref system.Ref) error
	Used(ctx context.Context) (int64, error) // bytes that it holds
	Ping(ctx context.Context) error
	Address(ctx context.Context) (string, error)
	Connect(ctx context.Context, address string) error
}

// Options are those that such systems share; example is the URL of a daemon.
func Options(example string) []system.Option {
	return []system.Option{
		{Name: "url", Type: "string", Help: "attach: API of the client's node, such as " + example + "; empty when started"},
		{Name: "server_url", Type: "string", Help: "attach: API of the node that holds prepared objects; empty: the client's node, and reads cross no link"},
		{Name: "not_found_after", Type: "duration", Default: "15s", Help: "time until an object without an answer counts as not found; 0s: the operation's deadline"},
		{Name: "stall_after", Type: "duration", Default: "1m0s", Help: "time without a byte after which a read is given up; 0s: the operation's deadline"},
	}
}

// Object is one that was stored through us.
type Object struct {
	Name string
	Size int64
	Sum  [sha256.Size]byte // when Node.Sums
	Far  bool              // whole on the server's node
}

// Node is the client's node, and the one on the server when there is one.
type Node[A API] struct {
	System string
	Sums   bool // objects are hashed as they are put
	Closed bool // the nodes were started: there are no others that could have an object
	// Keep makes the server's node have all of an object.
	Keep func(ctx context.Context, ref system.Ref) error

	apis    []A // the client's, then the server's
	procs   []testbed.Process
	dirs    []disk.Dir      // what started nodes keep
	alive   context.Context // ends with the processes; nil when attached
	unwatch context.CancelFunc
	write   bool

	NotFoundAfter, StallAfter time.Duration

	mu   sync.Mutex
	ours map[system.Ref]Object
}

// Seeding is a node whose reads can be made to cross the link: another node, on the
// server, holds what it asks for.
type Seeding[A API] struct{ *Node[A] }

// New is a node with the limits of opt, not connected yet.
func New[A API](name string, opt system.Options) (*Node[A], error) {
	n := &Node[A]{System: name, ours: map[system.Ref]Object{}}
	var err, err2 error
	n.NotFoundAfter, err = opt.Duration("not_found_after")
	n.StallAfter, err2 = opt.Duration("stall_after")
	if err := errors.Join(err, err2); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return n, nil
}

// Endpoints are the URLs in these options, of which the first has to be set.
func Endpoints(name string, opt system.Options, keys ...string) ([]*url.URL, error) {
	var all []*url.URL
	for i, key := range keys {
		if i > 0 && opt[key] == "" {
			continue
		}
		u, err := web.Base(name, key, opt[key], "http://127.0.0.1:8080")
		if err != nil {
			return nil, err
		}
		all = append(all, u)
	}
	return all, nil
}

// Check says what is missing: the program, unless an endpoint is named, or what does
// not answer at one of these options.
func Check(ctx context.Context, s system.System, opt system.Options, program func() error, keys ...string) []system.Problem {
	info := s.Info()
	if opt["url"] == "" {
		if err := program(); err != nil {
			return []system.Problem{{What: err.Error(), Hint: info.Install}}
		}
		return nil
	}
	urls, err := Endpoints(info.Name, opt, keys...)
	if err != nil {
		return system.WrongOptions(info.Name, err)
	}
	var at []string
	for _, u := range urls {
		at = append(at, web.HostPort(u))
	}
	return web.Unreachable(ctx, info.Name, at)
}

// Attach connects to the running daemons that options url and server_url name.
func (n *Node[A]) Attach(
	ctx context.Context, opt system.Options, write bool, connect func(context.Context, *url.URL) (A, error),
) error {
	urls, err := Endpoints(n.System, opt, "url", "server_url")
	if err != nil {
		return err
	}
	n.write = write
	for _, u := range urls {
		a, err := connect(ctx, u)
		if err != nil {
			return errors.Join(err, n.Stop(ctx))
		}
		n.apis = append(n.apis, a)
	}
	return nil
}

// Started is a daemon that was started.
type Started[A API] struct {
	API  A
	Proc testbed.Process
	Dir  disk.Dir // what it keeps
}

// Starter starts a daemon. server is the API of the first one, when the second is started.
type Starter[A API] func(ctx context.Context, h testbed.Host, label string, port int, server A) (Started[A], error)

// Start starts a daemon on the first server host and one at the client, and connects them.
func (n *Node[A]) Start(ctx context.Context, d system.Deployment, start Starter[A]) error {
	n.Closed = true
	port, err := d.Port(ctx, d.Hosts[0])
	if err != nil {
		return err
	}
	var none A
	server, err := start(ctx, d.Hosts[0], "storage-1", port, none)
	if err != nil {
		return err
	}
	n.procs, n.dirs, n.apis = []testbed.Process{server.Proc}, []disk.Dir{server.Dir}, []A{server.API}
	if port, err = d.Client.Port(ctx, 0); err != nil {
		return err
	}
	client, err := start(ctx, d.Client, "client-1", port, server.API)
	if err != nil {
		return err
	}
	n.procs, n.dirs, n.apis = append(n.procs, client.Proc), append(n.dirs, client.Dir), []A{client.API, server.API}
	n.alive, n.unwatch = member.WhileAlive(context.Background(), n.procs...)
	address, err := server.API.Address(ctx)
	if err != nil {
		return err
	}
	return n.Connect(ctx, address)
}

// Near is the client's node, Far the server's when Two.
func (n *Node[A]) Near() A { return n.apis[0] }

// Far is the server's node.
func (n *Node[A]) Far() A { return n.apis[1] }

// Two says whether there is a node on the server.
func (n *Node[A]) Two() bool { return len(n.apis) > 1 }

// All are the nodes that there are.
func (n *Node[A]) All() []A { return n.apis }

// Put implements system.Store: an import into the client's node. Nothing crosses
// the link.
func (n *Node[A]) Put(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	return n.store(ctx, n.Near(), false, name, size, r)
}

// Seed implements system.Seeder: an import into the server's node, by its host.
func (s Seeding[A]) Seed(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	return s.store(ctx, s.Far(), true, name, size, r)
}

func (n *Node[A]) store(ctx context.Context, on A, far bool, name string, size int64, r io.Reader) (system.Ref, error) {
	if err := n.MayWrite("put " + name); err != nil {
		return "", err
	}
	h := sha256.New()
	if n.Sums {
		r = io.TeeReader(r, h)
	}
	ref, err := on.Store(ctx, name, size, r)
	if err != nil {
		return "", member.Explain(n.alive, fmt.Errorf("%s: put %q (%d bytes): %w", n.System, name, size, err))
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	o := n.ours[ref]
	o.Name, o.Size, o.Far = name, size, o.Far || far
	h.Sum(o.Sum[:0])
	n.ours[ref] = o
	return ref, nil
}

// MayWrite is an error when the experiment does not allow writing.
func (n *Node[A]) MayWrite(what string) error {
	if !n.Closed && !n.write {
		return fmt.Errorf("%s: %s: %w; `allow: [write]` in the experiment file permits it", n.System, what, system.ErrReadOnly)
	}
	return nil
}

// Ours is an object that was stored through us.
func (n *Node[A]) Ours(ref system.Ref) (Object, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	o, ok := n.ours[ref]
	if !ok {
		return o, fmt.Errorf("%s: %s is not ours: %w", n.System, ref, system.ErrReadOnly)
	}
	return o, nil
}

// Twin is another object of ours with the same content.
func (n *Node[A]) Twin(ref system.Ref) (system.Ref, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	o := n.ours[ref]
	for other, x := range n.ours {
		if other != ref && x.Size == o.Size && x.Sum == o.Sum {
			return other, true
		}
	}
	return "", false
}

// Request makes one.
type Request func(context.Context) (*http.Response, error)

// Search makes a request for which a node may search the network for ever. whole says
// that it is answered when all of the object is there.
func (n *Node[A]) Search(
	ctx context.Context, what string, ref system.Ref, whole bool, do Request,
) (*http.Response, error) {
	w := web.Wait{What: n.System + ": " + what, Head: n.NotFoundAfter, Body: n.StallAfter, Alive: n.alive}
	if n.Closed {
		w.Known = func(ctx context.Context) (bool, error) {
			for _, a := range n.apis {
				if has, err := a.Has(ctx, ref); has || err != nil {
					return has, err
				}
			}
			return false, nil
		}
	}
	if whole {
		w.Body, w.Here = 0, func(ctx context.Context) (bool, error) { return n.Near().Has(ctx, ref) }
	}
	resp, err := w.Do(ctx, do)
	return resp, member.Explain(n.alive, err)
}

// Evict is the Cool of nodes that can: the server's node gets all of the object, then
// the client's removes it.
func (n *Node[A]) Evict(ctx context.Context, ref system.Ref) error {
	o, err := n.Ours(ref)
	if err != nil {
		return err
	}
	fail := func(err error) error { return fmt.Errorf("%s: cool %s: %w", n.System, ref, err) }
	if !o.Far {
		// Else we would remove the only copy.
		if err := n.Keep(ctx, ref); err != nil {
			return fail(fmt.Errorf("copy it to the server's node: %w", err))
		}
		n.mu.Lock()
		o.Far = true
		n.ours[ref] = o
		n.mu.Unlock()
	}
	if err := n.Near().Remove(ctx, ref); err != nil {
		return fail(err)
	}
	switch err := n.Near().Local(ctx, ref); {
	case err == nil:
		return fail(fmt.Errorf("the client's node still serves it; does something else use its blocks? %w", system.ErrWarm))
	case !errors.Is(err, system.ErrNotFound):
		return fail(fmt.Errorf("is it cold? %w", err))
	}
	return nil
}

// Erase is the Delete of nodes that can, for what was stored through us.
func (n *Node[A]) Erase(ctx context.Context, ref system.Ref) error {
	o, err := n.Ours(ref)
	if err == nil {
		err = n.Near().Remove(ctx, ref)
	}
	if err == nil && o.Far {
		err = n.Far().Remove(ctx, ref)
	}
	if err != nil {
		return fmt.Errorf("%s: delete %s: %w", n.System, ref, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.ours, ref)
	return nil
}

// Stats implements system.Stats: both nodes, since what is put is kept by the
// client's own.
func (n *Node[A]) Stats(ctx context.Context) (system.Holdings, error) {
	sum := system.Holdings{Objects: -1, Disk: -1, Entries: -1, Inodes: -1}
	if len(n.dirs) > 0 {
		var err error
		if sum, err = disk.Usage(n.dirs...); err != nil {
			return sum, fmt.Errorf("%s: %w", n.System, err)
		}
	}
	sum.Absolute = 0
	for _, a := range n.apis {
		used, err := a.Used(ctx)
		if err != nil {
			return system.Holdings{}, err
		}
		sum.Absolute += used
	}
	return sum, nil
}

// Address implements system.Connector.
func (n *Node[A]) Address(ctx context.Context) (string, error) { return n.Near().Address(ctx) }

// Connect implements system.Connector.
func (n *Node[A]) Connect(ctx context.Context, address string) error {
	return n.Near().Connect(ctx, address)
}

const healthTimeout = 10 * time.Second

// Health implements system.Healther.
func (n *Node[A]) Health(ctx context.Context) error {
	if n.alive != nil && n.alive.Err() != nil {
		return fmt.Errorf("%s: %w", n.System, context.Cause(n.alive))
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	for _, a := range n.apis {
		if err := a.Ping(ctx); err != nil {
			return fmt.Errorf("health probe failed: %w", err)
		}
	}
	return nil
}

// Processes implements system.Node.
func (n *Node[A]) Processes() []testbed.Process { return n.procs }

// Endpoints implements system.Endpointer.
func (n *Node[A]) Endpoints() []string {
	var all []string
	for _, a := range n.apis {
		all = append(all, web.HostPort(a.URL()))
	}
	return all
}

// Stop implements group.Node.
func (n *Node[A]) Stop(ctx context.Context) error {
	if n.unwatch != nil {
		n.unwatch()
	}
	var errs []error
	for _, p := range n.procs {
		errs = append(errs, p.Stop(ctx))
	}
	for _, a := range n.apis {
		a.Client().Close()
	}
	return errors.Join(errs...)
}
