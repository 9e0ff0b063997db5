package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
)

const (
	// answer is how long a daemon may take to answer what needs no work.
	answer = 10 * time.Second
	// dialTime is how long a daemon may try to reach a peer: the others wait for their next try.
	dialTime = 5 * time.Second
	// again is what lies between two tries of a fetch that failed.
	again = 2 * time.Second
	// removal is how long a daemon may take to remove a content.
	removal = 10 * time.Minute
)

// Peer is a daemon as a member of a swarm.
type Peer[A API] struct {
	*Daemon[A]
	kind    *Kind[A]
	address string

	mu    sync.Mutex
	tasks map[system.Ref]*Task
}

func (k *Kind[A]) peer(ctx context.Context, d system.Deployment, i int) (*Peer[A], error) {
	port, err := d.Port(ctx, d.Hosts[i])
	if err != nil {
		return nil, err
	}
	var none A
	n, err := k.start(ctx, d, d.Hosts[i], fmt.Sprintf("node-%d", i+1), port, none)
	if err != nil {
		return nil, err
	}
	p := k.Peered(n)
	if p.address, err = n.API.Address(ctx); err != nil {
		return nil, errors.Join(err, p.Stop(context.WithoutCancel(ctx)))
	}
	return p, nil
}

// Peered is the member that a running daemon is.
func (k *Kind[A]) Peered(n *Daemon[A]) *Peer[A] {
	return &Peer[A]{Daemon: n, kind: k, tasks: map[system.Ref]*Task{}}
}

// Address implements system.Member.
func (p *Peer[A]) Address(context.Context) (string, error) { return p.address, nil }

// Publish implements system.Member: an import.
func (p *Peer[A]) Publish(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	if err := errors.Join(p.Alive(), p.busy("")); err != nil {
		return "", err
	}
	before, err := p.count(ctx)
	if err != nil {
		return "", err
	}
	ref, err := p.API.Store(ctx, name, size, r)
	if err != nil {
		return "", fmt.Errorf("%s: publish %q (%d bytes): %w", p.kind.Name, name, size, err)
	}
	t := p.task(ref, before)
	t.Stop()
	t.Know(size, 0)
	t.finish()
	return ref, nil
}

// Fetch implements system.Member.
func (p *Peer[A]) Fetch(ctx context.Context, ref system.Ref, from []string) error {
	err := p.kind.Ref(ref)
	for _, a := range from {
		err = errors.Join(err, p.kind.Peer(a))
	}
	if err := errors.Join(err, p.Alive(), p.busy(ref)); err != nil {
		return err
	}
	before, err := p.count(ctx)
	if err != nil {
		return err
	}
	t := p.task(ref, before)
	t.mu.Lock()
	t.from = member.Merge(t.from, from)
	t.mu.Unlock()
	p.begin(t)
	return nil
}

// task is that of ref, a new one if there is none.
func (p *Peer[A]) task(ref system.Ref, before Counts) *Task {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, there := p.tasks[ref]
	if !there {
		t = NewTask(ref, before)
		p.tasks[ref] = t
	}
	return t
}

// busy is an error while another content than but is being fetched, of daemons that
// fetch one at a time.
func (p *Peer[A]) busy(but system.Ref) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for ref, t := range p.tasks {
		if p.kind.Endless && ref != but && !t.Complete() {
			return fmt.Errorf("%s: %s is still fetching %s: it does not say whose the blocks are that come, so there "+
				"is one content at a time",
				p.kind.Name, p.Label, ref)
		}
	}
	return nil
}

// begin fetches what is not there, unless that is under way.
func (p *Peer[A]) begin(t *Task) {
	if !t.Complete() && !t.Begun() { // else the next redial has new peers
		t.Begin(func(ctx context.Context) { p.keepConnected(ctx, t) }, func(ctx context.Context) {
			p.keepFetching(ctx, t)
		})
	}
}

// keepConnected connects the daemon to the peers that it is to fetch from, again and
// again: one that is not there may come.
func (p *Peer[A]) keepConnected(ctx context.Context, t *Task) {
	for !t.Complete() {
		p.dial(ctx, t)
		if !member.Sleep(ctx, p.kind.Redial) {
			return
		}
	}
}

func (p *Peer[A]) dial(ctx context.Context, t *Task) {
	var others []string
	t.mu.Lock()
	for _, a := range t.from {
		if a != p.address {
			others = append(others, a)
		}
	}
	t.mu.Unlock()
	within, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	apart, err := p.API.Apart(within, others)
	if err != nil {
		return // the daemon has ended: others say so
	}
	var wg sync.WaitGroup
	for _, a := range apart {
		wg.Go(func() {
			within, cancel := context.WithTimeout(ctx, dialTime)
			defer cancel()
			_ = p.API.Connect(within, a) // tried again
		})
	}
	wg.Wait()
}

// keepFetching has the daemon fetch until all is there. What keeps it may pass.
func (p *Peer[A]) keepFetching(ctx context.Context, t *Task) {
	for !t.Complete() {
		err := p.Alive()
		if err == nil {
			err = p.API.Fetch(ctx, t)
		}
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			t.finish()
			return
		}
		t.note(err)
		if !member.Sleep(ctx, again) {
			return
		}
	}
}

// of is a content that this node has or fetches.
func (p *Peer[A]) of(ref system.Ref) (*Task, error) {
	if err := p.kind.Ref(ref); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	t, there := p.tasks[ref]
	if !there {
		return nil, fmt.Errorf("%s: %s was neither published nor fetched at %s: %w", p.kind.Name, ref, p.Label,
			system.ErrNotFound)
	}
	return t, p.Alive()
}

// Progress implements system.Member.
func (p *Peer[A]) Progress(ctx context.Context, ref system.Ref) (f system.Progress, err error) {
	t, err := p.of(ref)
	if err != nil {
		return f, err
	}
	now := t.base()
	if !t.Complete() || now.Sent >= 0 {
		if now, err = p.count(ctx); err != nil {
			return f, err
		}
		t.Hold(now)
	}
	return t.progress(now), nil
}

func (p *Peer[A]) count(ctx context.Context) (Counts, error) {
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	return p.API.Count(ctx)
}

// ReadBack implements system.Member, from the daemon's own blocks. What is not all there
// is not asked for: some daemons would fetch the rest.
func (p *Peer[A]) ReadBack(ctx context.Context, ref system.Ref, w io.Writer) error {
	f, err := p.Progress(ctx, ref)
	if err != nil {
		return err
	}
	if !f.Complete {
		return fmt.Errorf("%s: %s has %d of %d bytes of %s: %w", p.kind.Name, p.Label, f.Verified, f.Size, ref,
			system.ErrNotFound)
	}
	resp, err := p.API.Local(ctx, ref) // a busy daemon that has it all may take long
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = p.API.Client().Copy(resp, w)
	return err
}

// Forget implements system.Member. After the last content the daemon's connections are
// closed: the next begins with new ones.
func (p *Peer[A]) Forget(ctx context.Context, ref system.Ref) error {
	t, err := p.of(ref)
	if err != nil {
		return err
	}
	t.Stop()
	p.mu.Lock()
	delete(p.tasks, ref)
	last := len(p.tasks) == 0
	p.mu.Unlock()
	if p.kind.Endless && !t.Complete() {
		if err := p.Restart(ctx, true); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, removal)
	defer cancel()
	if err := p.API.Remove(ctx, ref); err != nil {
		return fmt.Errorf("%s: forget %s: %w", p.kind.Name, ref, err)
	}
	if last {
		return p.API.Part(ctx, "")
	}
	return nil
}

// pause ends what goes on for the contents.
func (p *Peer[A]) pause() []*Task {
	p.mu.Lock()
	var all []*Task
	for _, t := range p.tasks {
		all = append(all, t)
	}
	p.mu.Unlock()
	for _, t := range all {
		t.Stop()
	}
	return all
}

// Kill implements system.Restarter.
func (p *Peer[A]) Kill(ctx context.Context) error {
	p.pause()
	p.API.Client().Close()
	return p.Process.Kill(ctx)
}

// Restart implements system.Restarter. With its data a node goes on with its tasks, from
// the blocks that it has.
func (p *Peer[A]) Restart(ctx context.Context, keep bool) error {
	fail := func(what string, err error) error {
		return fmt.Errorf("%s: restart %s: %s%w", p.kind.Name, p.Label, what, err)
	}
	if err := p.Stop(ctx); err != nil {
		return fail("", err)
	}
	if !keep {
		if err := p.kind.empty(ctx, p.Daemon); err != nil {
			return fail("empty its store: ", err)
		}
		p.mu.Lock()
		clear(p.tasks)
		p.mu.Unlock()
	}
	tasks := p.pause()
	for _, t := range tasks {
		t.restarted() // before the new process answers
	}
	if err := p.run(ctx); err != nil {
		return fail("", err)
	}
	is, err := p.API.Address(ctx)
	if err == nil && is != p.address {
		err = fmt.Errorf("it was at %s and is at %s", p.address, is)
	}
	if err != nil {
		return fail("", err)
	}
	for _, t := range tasks {
		p.begin(t)
	}
	return nil
}

// Health implements system.Healther.
func (p *Peer[A]) Health(ctx context.Context) error {
	if err := p.Alive(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	if err := p.API.Ping(ctx); err != nil {
		return fmt.Errorf("%s: health probe of %s failed: %w", p.kind.Name, p.Label, err)
	}
	return nil
}

// Stop implements group.Node.
func (p *Peer[A]) Stop(ctx context.Context) error {
	p.pause()
	return p.Daemon.Stop(ctx)
}
