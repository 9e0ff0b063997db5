package member

import (
	"sync"

	"github.com/plimsoll-project/plimsoll/system"
)

// Content is one that a node of [Contents] has or fetches.
type Content struct {
	Ref system.Ref
	Background

	mu       sync.Mutex
	state    State
	overhead int64 // bytes of its blocks that are not the content's
}

// State says how far a content is.
type State struct {
	From           []string // addresses of the peers to fetch from
	Size, Verified int64    // bytes; Size −1: not known yet
	Complete       bool

	trouble string
	before  Counts // when it began
}

// NewContent is one that the node is to get; before are its counts.
func NewContent(ref system.Ref, before Counts) *Content {
	return &Content{Ref: ref, state: State{Size: -1, before: before}}
}

// State is that of this moment.
func (t *Content) State() State {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state
}

// Know notes how large the content is, and how much more its blocks.
func (t *Content) Know(size, overhead int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state.Size, t.overhead = size, overhead
}

// Blocks notes how many bytes of blocks there are. What is not the content's is taken
// off at once: never too much.
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

// Hold notes what a node's store held, if it says so. Then that is also how it is known
// that all is there.
func (t *Content) Hold(now Counts) {
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

// Note says what keeps it from going on, until a block comes.
func (t *Content) Note(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state.trouble = err.Error()
}

// restarted: the counts of the process begin anew.
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
		Size: s.Size, Verified: s.Verified, Written: s.Verified, Complete: s.Complete,
		Received: since(now.Received, s.before.Received), Sent: since(now.Sent, s.before.Sent), Peers: now.Peers,
	}
	if !f.Complete {
		if f.Trouble = s.trouble; f.Trouble == "" && f.Peers == 0 {
			f.Trouble = "no peers"
		}
	}
	return f
}
