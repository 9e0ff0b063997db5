package member

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/internal/timing"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
)

const (
	// dialTime limits an attempt to reach a peer: other peers wait for their next attempt.
	dialTime = 5 * time.Second
	// again is the interval between attempts of a failing fetch.
	again = 2 * time.Second
	// removal limits the time to remove a content.
	removal = 10 * time.Minute
)

// Backend is a node that stores, fetches and connects on request.
type Backend interface {
	Store(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error)
	Remove(ctx context.Context, ref system.Ref) error // the object and its blocks
	Connect(ctx context.Context, address string) error
	Part(ctx context.Context) error // closes all connections to peers
	// Apart returns those of the peers that the node may not be connected to.
	Apart(ctx context.Context, peers []string) ([]string, error)
	Count(ctx context.Context) (Counts, error)
	// Fetch makes the node get the whole content, and records its progress in c. An error is what
	// prevents progress: Fetch is called again.
	Fetch(ctx context.Context, c *Content) error
}

// Counts are a node's counters over all contents; −1: not reported.
type Counts struct {
	Received, Sent int64 // bytes since the process started
	Held           int64 // bytes of blocks in its store
	Peers          int
}

// Contents are the contents that a [Backend] has and fetches as a member of a swarm.
type Contents struct {
	Backend Backend
	Name    string                 // of the system, for errors
	Title   string                 // of the node, for errors
	Self    string                 // the node's address
	Redial  time.Duration          // interval at which peers of an incomplete fetch are connected again
	Ref     func(system.Ref) error // validates a ref
	Runs    func() error           // returns an error if the node does not run
	// Abandon ends a fetch that runs until the process ends, on a node that does not report to
	// which content its blocks belong: such a node fetches one content at a time. Nil: fetches end
	// with their context.
	Abandon func(ctx context.Context) error

	mu  sync.Mutex
	all map[system.Ref]*Content
}

// Address implements system.Member.
func (n *Contents) Address(context.Context) (string, error) { return n.Self, nil }

// Publish implements system.Member with an import.
func (n *Contents) Publish(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	if err := errors.Join(n.Runs(), n.busy("")); err != nil {
		return "", err
	}
	before, err := n.count(ctx)
	if err != nil {
		return "", err
	}
	ref, err := n.Backend.Store(ctx, name, size, r)
	if err != nil {
		return "", fmt.Errorf("%s: publish %q (%d bytes): %w", n.Name, name, size, err)
	}
	c := n.content(ref, before)
	c.Stop()
	c.SetSize(size, 0)
	c.finish()
	return ref, nil
}

// Fetch implements system.Member.
func (n *Contents) Fetch(ctx context.Context, ref system.Ref, from []string) error {
	if err := errors.Join(n.Ref(ref), n.Runs(), n.busy(ref)); err != nil {
		return err
	}
	before, err := n.count(ctx)
	if err != nil {
		return err
	}
	c := n.content(ref, before)
	c.change(func(s *State) { s.From = Merge(s.From, from) })
	n.begin(c)
	return nil
}

// content returns the content of ref, creating it if there is none.
func (n *Contents) content(ref system.Ref, before Counts) *Content {
	n.mu.Lock()
	defer n.mu.Unlock()
	c, there := n.all[ref]
	if !there {
		c = NewContent(ref, before)
		if n.all == nil {
			n.all = map[system.Ref]*Content{}
		}
		n.all[ref] = c
	}
	return c
}

// busy returns an error if a node that fetches one content at a time is fetching another content
// than but.
func (n *Contents) busy(but system.Ref) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for ref, c := range n.all {
		if n.Abandon != nil && ref != but && !c.State().Complete {
			return fmt.Errorf("%s: %s is still fetching %s: it does not say whose the blocks are that come, so there "+
				"is one content at a time",
				n.Name, n.Title, ref)
		}
	}
	return nil
}

// begin starts to fetch an incomplete content, unless a fetch is running.
func (n *Contents) begin(c *Content) {
	if !c.State().Complete && !c.Begun() { // a running fetch gets new peers at its next redial
		c.Begin(func(ctx context.Context) { n.keepConnected(ctx, c) }, func(ctx context.Context) {
			n.keepFetching(ctx, c)
		})
	}
}

// keepConnected connects the node repeatedly to the peers that it fetches from, because a missing
// peer may appear later.
func (n *Contents) keepConnected(ctx context.Context, c *Content) {
	for !c.State().Complete {
		n.dial(ctx, c)
		if !timing.Pause(ctx, n.Redial) {
			return
		}
	}
}

func (n *Contents) dial(ctx context.Context, c *Content) {
	others := slices.DeleteFunc(slices.Clone(c.State().From), func(a string) bool { return a == n.Self })
	within, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	apart, err := n.Backend.Apart(within, others)
	if err != nil {
		return // the node has ended, which is reported elsewhere
	}
	_ = group.Each(apart, func(_ int, address string) error { // retried later
		within, cancel := context.WithTimeout(ctx, dialTime)
		defer cancel()
		return n.Backend.Connect(within, address)
	})
}

// keepFetching makes the node fetch until the content is complete. Errors may be temporary.
func (n *Contents) keepFetching(ctx context.Context, c *Content) {
	for !c.State().Complete {
		err := n.Runs()
		if err == nil {
			err = n.Backend.Fetch(ctx, c)
		}
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			c.finish()
			return
		}
		c.SetTrouble(err)
		if !timing.Pause(ctx, again) {
			return
		}
	}
}

// of returns a content that this node has or fetches.
func (n *Contents) of(ref system.Ref) (*Content, error) {
	if err := n.Ref(ref); err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	c, there := n.all[ref]
	if !there {
		return nil, fmt.Errorf("%s: %s was neither published nor fetched at %s: %w", n.Name, ref, n.Title,
			system.ErrNotFound)
	}
	return c, n.Runs()
}

// Progress implements system.Member.
func (n *Contents) Progress(ctx context.Context, ref system.Ref) (f system.Progress, err error) {
	c, err := n.of(ref)
	if err != nil {
		return f, err
	}
	now := c.State().before
	if !c.State().Complete || now.Sent >= 0 {
		if now, err = n.count(ctx); err != nil {
			return f, err
		}
		c.SetHeld(now)
	}
	return c.progress(now), nil
}

func (n *Contents) count(ctx context.Context) (Counts, error) {
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	return n.Backend.Count(ctx)
}

// Forget implements system.Member. After the last content, it closes the node's connections, so
// that the next content starts with new ones.
func (n *Contents) Forget(ctx context.Context, ref system.Ref) error {
	c, err := n.of(ref)
	if err != nil {
		return err
	}
	c.Stop()
	n.mu.Lock()
	delete(n.all, ref)
	last := len(n.all) == 0
	n.mu.Unlock()
	if n.Abandon != nil && !c.State().Complete {
		if err := n.Abandon(ctx); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, removal)
	defer cancel()
	if err := n.Backend.Remove(ctx, ref); err != nil {
		return fmt.Errorf("%s: forget %s: %w", n.Name, ref, err)
	}
	if last {
		return n.Backend.Part(ctx)
	}
	return nil
}

// Pause stops the background work for all contents, and returns them.
func (n *Contents) Pause() []*Content {
	n.mu.Lock()
	all := slices.Collect(maps.Values(n.all))
	n.mu.Unlock()
	for _, c := range all {
		c.Stop()
	}
	return all
}

// Restarted continues the contents that Pause stopped, or none if the node was emptied. In between
// it calls run, which starts the node.
func (n *Contents) Restarted(keep bool, run func() error) error {
	all := n.Pause()
	if !keep {
		n.mu.Lock()
		clear(n.all)
		n.mu.Unlock()
		all = nil
	}
	for _, c := range all {
		c.restarted() // before the new process answers
	}
	err := run()
	for _, c := range all {
		if err == nil {
			n.begin(c)
		}
	}
	return err
}

// Content is a content that a node of [Contents] has or fetches.
type Content struct {
	Ref system.Ref
	Background

	mu    sync.Mutex
	state State
}

// State is the progress of a content.
type State struct {
	From           []string // addresses of the peers to fetch from
	Size, Verified int64    // bytes; Size −1: unknown
	Complete       bool

	overhead int64 // bytes of its blocks that are not content
	trouble  string
	before   Counts // counters when the fetch began
}

// NewContent returns a content that the node is to fetch; before are the node's counters.
func NewContent(ref system.Ref, before Counts) *Content {
	return &Content{Ref: ref, state: State{Size: -1, before: before}}
}

// State returns the current state.
func (t *Content) State() State {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state
}

func (t *Content) change(do func(s *State)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	do(&t.state)
}

// SetSize records the size of the content and the overhead of its blocks.
func (t *Content) SetSize(size, overhead int64) {
	t.change(func(s *State) { s.Size, s.overhead = size, overhead })
}

// Blocks records the number of bytes of blocks present. The whole overhead is subtracted at once,
// so that the progress is never overestimated.
func (t *Content) Blocks(bytes int64) { t.change(func(s *State) { s.blocks(bytes) }) }

func (s *State) blocks(bytes int64) {
	if now := min(s.Size, bytes-s.overhead); now > s.Verified {
		s.Verified, s.trouble = now, ""
	}
}

// SetHeld records the bytes in a node's store, if the node reports them, and marks the content as
// complete once all of them are there.
func (t *Content) SetHeld(now Counts) {
	t.change(func(s *State) {
		if now.Held >= 0 && s.Size >= 0 && !s.Complete {
			s.blocks(now.Held - s.before.Held)
			s.Complete = s.Verified == s.Size
		}
	})
}

func (t *Content) finish() {
	t.change(func(s *State) { s.Complete, s.Verified, s.trouble = true, s.Size, "" })
}

// SetTrouble records what prevents progress, until the next block arrives.
func (t *Content) SetTrouble(err error) { t.change(func(s *State) { s.trouble = err.Error() }) }

// restarted adjusts the content to a new process, whose counters start at 0.
func (t *Content) restarted() {
	t.change(func(s *State) { s.before.Received, s.before.Sent = min(s.before.Received, 0), min(s.before.Sent, 0) })
}

func (t *Content) progress(now Counts) system.Progress {
	s := t.State()
	since := func(now, before int64) int64 {
		if before < 0 {
			return -1
		}
		return now - before
	}
	f := system.Progress{
		Size: s.Size, Verified: s.Verified, Complete: s.Complete,
		Received: since(now.Received, s.before.Received), Sent: since(now.Sent, s.before.Sent), Peers: now.Peers,
	}
	if !f.Complete {
		if f.Trouble = s.trouble; f.Trouble == "" && f.Peers == 0 {
			f.Trouble = "no peers"
		}
	}
	return f
}

// Background is the work for a content in the background, until it is stopped. The zero value is
// idle.
type Background struct {
	mu     sync.Mutex
	cancel context.CancelFunc // nil: not started, or stopped
	wg     sync.WaitGroup
}

// Begin starts the work, after the previous work has ended.
func (b *Background) Begin(work ...func(ctx context.Context)) {
	b.Stop()
	b.mu.Lock()
	defer b.mu.Unlock()
	var ctx context.Context
	ctx, b.cancel = context.WithCancel(context.Background())
	for _, w := range work {
		b.wg.Go(func() { w(ctx) })
	}
}

// Begun reports whether the work was started and not stopped since.
func (b *Background) Begun() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cancel != nil
}

// Stop ends the work and waits for its end.
func (b *Background) Stop() {
	b.mu.Lock()
	cancel := b.cancel
	b.cancel = nil
	b.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	b.wg.Wait()
}
