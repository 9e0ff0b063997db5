package member

import (
	"sync"

	"github.com/plimsoll-project/plimsoll/system"
)

// Content is a content that a node of [Contents] has or fetches.
type Content struct {
	Ref system.Ref
	Background

	mu       sync.Mutex
	state    State
	overhead int64 // bytes of its blocks that are not content
}

// State is the progress of a content.
type State struct {
	From           []string // addresses of the peers to fetch from
	Size, Verified int64    // bytes; Size −1: unknown
	Complete       bool

	trouble string
	before  Counts // counters when the fetch began
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

// SetSize records the size of the content and the overhead of its blocks.
func (t *Content) SetSize(size, overhead int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state.Size, t.overhead = size, overhead
}

// Blocks records the number of bytes of blocks present. The whole overhead is subtracted at once,
// so that the progress is never overestimated.
func (t *Content) Blocks(bytes int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.blocks(bytes)
}

func (t *Content) blocks(bytes int64) {
	if now := min(t.state.Size, bytes-t.overhead); now > t.state.Verified {
		t.state.Verified, t.state.trouble = now, ""
	}
}

// SetHeld records the bytes in a node's store, if the node reports them, and marks the content as
// complete once all of them are there.
func (t *Content) SetHeld(now Counts) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Held >= 0 && t.state.Size >= 0 && !t.state.Complete {
		t.blocks(now.Held - t.state.before.Held)
		t.state.Complete = t.state.Verified == t.state.Size
	}
}

func (t *Content) finish() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state.Complete, t.state.Verified, t.state.trouble = true, t.state.Size, ""
}

// SetTrouble records what prevents progress, until the next block arrives.
func (t *Content) SetTrouble(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state.trouble = err.Error()
}

// restarted adjusts the content to a new process, whose counters start at 0.
func (t *Content) restarted() {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := &t.state.before
	before.Received, before.Sent = min(before.Received, 0), min(before.Sent, 0)
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
