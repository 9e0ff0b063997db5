package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// Pair is a store: the client's daemon and, if there is one, a daemon on the server. A put is an
// import into the client's daemon; only reads of data that the server's daemon holds cross the
// link.
type Pair[A API] struct {
	Daemons []*Daemon[A] // the server's, then the client's; none if attached
	// Keep makes the server's daemon fetch the whole object.
	Keep          func(ctx context.Context, ref system.Ref) error
	NotFoundAfter time.Duration
	Closed        bool // the daemons were started: no other daemon can have an object

	program *Program[A]
	apis    []A             // the client's, then the server's
	address string          // of the server's daemon
	alive   context.Context // ends with the processes; nil if attached
	unwatch context.CancelFunc
	write   bool

	mu   sync.Mutex
	ours map[system.Ref]Object
}

// Object is an object stored through this pair.
type Object struct {
	Name string
	Size int64
	Far  bool // complete on the server's daemon
}

// start starts a daemon on the first server host and one on the client.
func (p *Pair[A]) start(ctx context.Context, d system.Deployment) error {
	p.Closed = true
	port, err := d.Port(ctx, d.Hosts[0])
	if err != nil {
		return err
	}
	server, err := p.program.start(ctx, d, d.Hosts[0], "storage-1", port, *new(A))
	if err != nil {
		return err
	}
	p.Daemons = []*Daemon[A]{server}
	if port, err = d.Client.Port(ctx, 0); err != nil {
		return err
	}
	client, err := p.program.start(ctx, d, d.Client, "client-1", port, server.API)
	if err != nil {
		return err
	}
	p.Daemons, p.apis = append(p.Daemons, client), []A{client.API, server.API}
	p.alive, p.unwatch = member.WhileAlive(context.Background(), p.Processes()...)
	return nil
}

// attach connects to running daemons.
func (p *Pair[A]) attach(ctx context.Context, d system.Deployment) error {
	p.write = d.Write
	urls, err := endpoints(p.program.Name, d.Options)
	for _, u := range urls {
		a := p.program.Client(d.Client.Dial, u)
		p.apis = append(p.apis, a)
		if err := a.Ping(ctx); err != nil {
			return err
		}
	}
	return err
}

// Near returns the client's daemon.
func (p *Pair[A]) Near() A { return p.apis[0] }

// Far returns the server's daemon, if Two.
func (p *Pair[A]) Far() A { return p.apis[1] }

// Two reports whether there is a daemon on the server.
func (p *Pair[A]) Two() bool { return len(p.apis) > 1 }

// All returns all daemons.
func (p *Pair[A]) All() []A { return p.apis }

// Put implements system.Store with an import into the client's daemon. Nothing crosses the link.
func (p *Pair[A]) Put(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	return p.store(ctx, p.Near(), false, name, size, r)
}

// PutFar implements Seed for a pair with a daemon on the server: an import into that daemon, from
// its own host.
func (p *Pair[A]) PutFar(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	return p.store(ctx, p.Far(), true, name, size, r)
}

func (p *Pair[A]) store(ctx context.Context, on A, far bool, name string, size int64, r io.Reader) (system.Ref, error) {
	if !p.Closed && !p.write {
		return "", fmt.Errorf("%s: put %s: %w", p.program.Name, name, system.ErrNotAllowed)
	}
	ref, err := on.Store(ctx, name, size, r)
	if err != nil {
		return "", member.Explain(p.alive, fmt.Errorf("%s: put %q (%d bytes): %w", p.program.Name, name, size, err))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ours[ref] = Object{name, size, far || p.ours[ref].Far}
	return ref, nil
}

// Ours returns an object that was stored through this pair.
func (p *Pair[A]) Ours(ref system.Ref) (Object, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o, ok := p.ours[ref]
	if !ok {
		return o, fmt.Errorf("%s: %s is not ours: %w", p.program.Name, ref, system.ErrReadOnly)
	}
	return o, nil
}

// Search makes a request about ref for which a daemon may search the network without limit. It
// connects started daemons again if the answer does not begin: one may have dropped the other, as
// Codex does with a peer that sent nothing for a minute.
func (p *Pair[A]) Search(
	ctx context.Context, what string, ref system.Ref, do func(context.Context) (*http.Response, error),
) (*http.Response, error) {
	if err := p.program.Ref(ref); err != nil {
		return nil, err
	}
	w := web.Wait{What: fmt.Sprintf("%s: %s of %s", p.program.Name, what, ref), Head: p.NotFoundAfter,
		Means: system.ErrNotFound, Alive: p.alive}
	if p.Closed {
		if _, err := p.Ours(ref); err != nil {
			return nil, fmt.Errorf("%s: none of the nodes has it: %w", w.What, system.ErrNotFound)
		}
		w.Means = system.ErrStalled
		w.Late = func(ctx context.Context) {
			_ = p.Near().Connect(ctx, p.address) // if it fails, the answer does not begin, which is reported
		}
	}
	resp, err := w.Do(ctx, do)
	return resp, member.Explain(p.alive, err)
}

// Evict implements Cool for pairs that support it: the server's daemon fetches the whole object,
// then the client's daemon removes it.
func (p *Pair[A]) Evict(ctx context.Context, ref system.Ref) error {
	o, err := p.Ours(ref)
	if err != nil {
		return err
	}
	fail := func(err error) error { return fmt.Errorf("%s: cool %s: %w", p.program.Name, ref, err) }
	if !o.Far {
		// Otherwise the only copy would be removed.
		if err := p.Keep(ctx, ref); err != nil {
			return fail(fmt.Errorf("copy it to the server's node: %w", err))
		}
		p.mu.Lock()
		o.Far = true
		p.ours[ref] = o
		p.mu.Unlock()
	}
	if err := p.Near().Remove(ctx, ref); err != nil {
		return fail(err)
	}
	resp, err := p.Near().Local(ctx, ref)
	switch {
	case err == nil:
		resp.Body.Close()
		return fail(fmt.Errorf("the client's node still serves it; does something else use its blocks? %w",
			system.ErrWarm))
	case !errors.Is(err, system.ErrNotFound):
		return fail(fmt.Errorf("is it cold? %w", err))
	}
	return nil
}

// Erase implements Delete for pairs that support it, for objects stored through this pair.
func (p *Pair[A]) Erase(ctx context.Context, ref system.Ref) error {
	o, err := p.Ours(ref)
	if err == nil {
		err = p.Near().Remove(ctx, ref)
	}
	if err == nil && o.Far {
		err = p.Far().Remove(ctx, ref)
	}
	if err != nil {
		return fmt.Errorf("%s: delete %s: %w", p.program.Name, ref, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.ours, ref)
	return nil
}

// Stats implements system.Stats for both daemons, since the client's own daemon stores what is put.
func (p *Pair[A]) Stats(ctx context.Context) (system.Holdings, error) {
	sum := system.Holdings{Objects: -1, Disk: -1, Entries: -1, Inodes: -1}
	if len(p.Daemons) > 0 {
		var dirs []disk.Dir
		for _, n := range p.Daemons {
			dirs = append(dirs, n.Dir)
		}
		var err error
		if sum, err = disk.Usage(dirs...); err != nil {
			return sum, fmt.Errorf("%s: %w", p.program.Name, err)
		}
	}
	sum.Absolute = 0
	for _, a := range p.apis {
		used, err := a.Used(ctx)
		if err != nil {
			return system.Holdings{}, err
		}
		sum.Absolute += used
	}
	return sum, nil
}

// Health implements system.Healther.
func (p *Pair[A]) Health(ctx context.Context) error {
	for _, a := range p.apis {
		if err := a.Ping(ctx); err != nil {
			return member.Explain(p.alive, fmt.Errorf("%s: health probe failed: %w", p.program.Name, err))
		}
	}
	return nil
}

// Processes implements system.Node.
func (p *Pair[A]) Processes() (all []testbed.Process) {
	for _, n := range p.Daemons {
		all = append(all, n.Processes()...)
	}
	return all
}

// Endpoints implements system.Endpointer.
func (p *Pair[A]) Endpoints() (all []string) {
	for _, a := range p.apis {
		all = append(all, web.HostPort(a.URL()))
	}
	return all
}

// Stop implements group.Node.
func (p *Pair[A]) Stop(ctx context.Context) error {
	if p.unwatch != nil {
		p.unwatch()
	}
	var errs []error
	for _, n := range p.Daemons {
		errs = append(errs, n.Stop(ctx))
	}
	for _, a := range p.apis {
		a.Client().Close()
	}
	return errors.Join(errs...)
}
