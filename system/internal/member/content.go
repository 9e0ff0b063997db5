package member

import (
	"sync"

	"github.com/plimsoll-project/plimsoll/system"
)

// Content is a content that a node of [Contents] has or fetches.
type Content struct {
	Ref system.Ref
	Background

	mu             sync.Mutex
	from           []string
	size, verified int64 // size −1: unknown
	overhead       int64 // bytes of its blocks that are not content
	complete       bool
	trouble        string
	before         Counts // counters when the fetch began
}

// NewContent returns a content that the node is to fetch; before are the node's counters.
func NewContent(ref system.Ref, before Counts) *Content {
	return &Content{Ref: ref, size: -1, before: before}
}

// Know records the size of the content and the overhead of its blocks.
func (t *Content) Know(size, overhead int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.size, t.overhead = size, overhead
}

// Known reports whether the size is known.
func (t *Content) Known() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.size >= 0
}

// Blocks records the number of bytes of blocks present. The whole overhead is subtracted at once,
// so that the progress is never overestimated.
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

// Hold records the bytes in a node's store, if the node reports them, and marks the content as
// complete once all of them are there.
func (t *Content) Hold(now Counts) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Held >= 0 && t.size >= 0 && !t.complete {
		t.blocks(now.Held - t.before.Held)
		t.complete = t.verified == t.size
	}
}

// Verified returns the number of bytes present.
func (t *Content) Verified() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.verified
}

// Complete reports whether the content is complete.
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

// From returns the addresses of the peers to fetch from.
func (t *Content) From() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.from
}

// Note records what prevents progress, until the next block arrives.
func (t *Content) Note(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.trouble = err.Error()
}

// base returns the counters when the fetch began.
func (t *Content) base() Counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.before
}

// restarted adjusts the content to a new process, whose counters start at 0.
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
