package daemon

import (
	"sync"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
)

// Task is a content that a [Peer] has or fetches.
type Task struct {
	Ref system.Ref
	member.Background

	mu             sync.Mutex
	from           []string
	size, verified int64 // size −1: not known yet
	overhead       int64 // bytes of its blocks that are not the content's
	complete       bool
	trouble        string
	before         Counts // when it began
}

// NewTask is of a content that the daemon is to get; before are its counts.
func NewTask(ref system.Ref, before Counts) *Task { return &Task{Ref: ref, size: -1, before: before} }

// Know notes how large the content is, and how much more its blocks.
func (t *Task) Know(size, overhead int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.size, t.overhead = size, overhead
}

// Known says whether the size is known.
func (t *Task) Known() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.size >= 0
}

// Blocks notes how many bytes of blocks there are. What is not the content's is taken
// off at once: never too much.
func (t *Task) Blocks(bytes int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.blocks(bytes)
}

func (t *Task) blocks(bytes int64) {
	if now := min(t.size, bytes-t.overhead); now > t.verified {
		t.verified, t.trouble = now, ""
	}
}

// Hold notes what a daemon's store held, if it says so. Then that is also how it is known
// that all is there.
func (t *Task) Hold(now Counts) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Held >= 0 && t.size >= 0 && !t.complete {
		t.blocks(now.Held - t.before.Held)
		t.complete = t.verified == t.size
	}
}

// Verified are the bytes that there are.
func (t *Task) Verified() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.verified
}

// Complete says whether all is there.
func (t *Task) Complete() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.complete
}

func (t *Task) finish() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.complete, t.verified, t.trouble = true, t.size, ""
}

// note says what keeps it from going on, until a block comes.
func (t *Task) note(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.trouble = err.Error()
}

// base are the counts when it began.
func (t *Task) base() Counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.before
}

// restarted: the counts of the process begin anew.
func (t *Task) restarted() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.before.Received, t.before.Sent = min(t.before.Received, 0), min(t.before.Sent, 0)
}

func (t *Task) progress(now Counts) system.Progress {
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
