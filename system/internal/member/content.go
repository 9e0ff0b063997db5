package member

import (
	"sync"

	"github.com/plimsoll-project/plimsoll/system"
)

// Content is one that a node of [Contents] has or fetches.
type Content struct {
	Ref system.Ref
	Background

	mu             sync.Mutex
	from           []string
	size, verified int64 // size −1: not known yet
	overhead       int64 // bytes of its blocks that are not the content's
	complete       bool
	trouble        string
	before         Counts // when it began
}

// NewContent is one that the node is to get; before are its counts.
func NewContent(ref system.Ref, before Counts) *Content {
	return &Content{Ref: ref, size: -1, before: before}
}

// Know notes how large the content is, and how much more its blocks.
func (t *Content) Know(size, overhead int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.size, t.overhead = size, overhead
}

// Known says whether the size is known.
func (t *Content) Known() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.size >= 0
}

// Blocks notes how many bytes of blocks there are. What is not the content's is taken
// off at once: never too much.
func (t *Content) Blocks(bytes int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.blocks(bytes)
}

func (t *Content) blocks(bytes int64) {
	if now := min(t.size, bytes-t.overhead); now > t.verified {
		t.verified, t.trouble = now, ""
	}
}

// Hold notes what a node's store held, if it says so. Then that is also how it is known
// that all is there.
func (t *Content) Hold(now Counts) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Held >= 0 && t.size >= 0 && !t.complete {
		t.blocks(now.Held - t.before.Held)
		t.complete = t.verified == t.size
	}
}

// Verified are the bytes that there are.
func (t *Content) Verified() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.verified
}

// Complete says whether all is there.
func (t *Content) Complete() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.complete
}

func (t *Content) finish() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.complete, t.verified, t.trouble = true, t.size, ""
}

// From are the addresses of the peers to fetch from.
func (t *Content) From() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.from
}

// Note says what keeps it from going on, until a block comes.
func (t *Content) Note(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.trouble = err.Error()
}

// base are the counts when it began.
func (t *Content) base() Counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.before
}

// restarted: the counts of the process begin anew.
func (t *Content) restarted() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.before.Received, t.before.Sent = min(t.before.Received, 0), min(t.before.Sent, 0)
}

func (t *Content) progress(now Counts) system.Progress {
	t.mu.Lock()
	defer t.mu.Unlock()
	since := func(now, before int64) int64 {
		if before < 0 {
			return -1
		}
		return now - before
	}
	f := system.Progress{
		Size: t.size, Verified: t.verified, Written: t.verified, Complete: t.complete,
		Received: since(now.Received, t.before.Received), Sent: since(now.Sent, t.before.Sent), Peers: now.Peers,
	}
	if !f.Complete {
		if f.Trouble = t.trouble; f.Trouble == "" && f.Peers == 0 {
			f.Trouble = "no peers"
		}
	}
	return f
}
