package kubo

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
)

// redial is how often the known peers of an incomplete content are
// dialled again when they are not connected.
const redial = 2 * time.Second

// task is a content that a node has or fetches.
type task struct {
	node   *peerNode
	ref    system.Ref
	before traffic // of the node when it began

	member.Background
	mu             sync.Mutex
	from           []string
	size, verified int64
	overhead       int64 // bytes of blocks that are not the content's
	complete       bool
	trouble        string
}

// begin fetches what is not there, unless that is under way, from more peers.
func (t *task) begin(from []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.from = member.Merge(t.from, from)
	if !t.complete && !t.Begun() { // else the next redial has them
		t.Begin(t.keepConnected, t.keepPinning)
	}
}

func (t *task) keepConnected(ctx context.Context) {
	for !t.done() {
		t.dial(ctx)
		if !member.Sleep(ctx, redial) {
			return
		}
	}
}

// keepPinning pins the content until all of it is there.
func (t *task) keepPinning(ctx context.Context) {
	for ctx.Err() == nil {
		err := t.pin(ctx)
		t.mu.Lock()
		if err == nil {
			t.complete, t.verified, t.trouble = true, t.size, ""
		} else if ctx.Err() == nil {
			t.trouble = err.Error()
		}
		t.mu.Unlock()
		if err == nil || !member.Sleep(ctx, redial) { // what keeps it may pass
			return
		}
	}
}

func (t *task) done() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.complete
}

// dial connects the node to the peers that it knows. Who is not there is tried
// again later.
func (t *task) dial(ctx context.Context) {
	t.mu.Lock()
	from := slices.Clone(t.from)
	t.mu.Unlock()
	t.node.mu.Lock()
	from = append(from, t.node.known...)
	t.node.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	there, err := t.node.rpc.peers(ctx)
	if err != nil {
		return // the daemon has ended: others say so
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, a := range from {
		id, err := peerOf(a)
		if err != nil || there[id] || a == t.node.address {
			continue
		}
		there[id] = true
		wg.Go(func() { _ = t.node.rpc.Connect(ctx, a) }) // again in a while
	}
}

// pin has the daemon fetch what is missing, which reports its progress twice a
// second, and learns the size from the root as soon as that is there.
func (t *task) pin(ctx context.Context) error {
	r := t.node.rpc
	resp, err := r.call(ctx, "pin/add", url.Values{"arg": {string(t.ref)}, "progress": {"true"}})
	if err != nil {
		return err
	}
	pinned := false
	err = r.decode("pin/add", resp, func(d *json.Decoder) error {
		var p struct {
			Pins     []string
			Progress int   // blocks
			Bytes    int64 // of them
		}
		if err := d.Decode(&p); err != nil {
			return err
		}
		pinned = pinned || len(p.Pins) > 0
		if p.Progress == 0 {
			return nil
		}
		return t.progress(ctx, p.Bytes)
	})
	if err == nil && !pinned {
		err = fmt.Errorf("kubo: pin/add on %s: ended without a pin: %w", r.base.Host, system.ErrAnswer)
	}
	if err != nil {
		return err
	}
	return t.measure(ctx)
}

// progress notes how many bytes of blocks there are. What is not the file's, the
// links to its blocks, is taken off all of it at once: never too much.
func (t *task) progress(ctx context.Context, blocks int64) error {
	if err := t.measure(ctx); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.verified = min(max(t.verified, blocks-t.overhead), t.size)
	return nil
}

// measure learns from the root how large content and graph are.
func (t *task) measure(ctx context.Context) error {
	t.mu.Lock()
	known := t.size >= 0 && t.overhead > 0
	t.mu.Unlock()
	if known {
		return nil
	}
	var s struct{ Size, CumulativeSize int64 }
	err := t.node.rpc.json(ctx, "files/stat", url.Values{"arg": {"/ipfs/" + string(t.ref)}, "offline": {"true"}}, &s)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.size, t.overhead = s.Size, max(s.CumulativeSize-s.Size, 0)
	return nil
}

// published: the node has got all of it in another way.
func (t *task) published(size int64) {
	t.Stop()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.size, t.verified, t.complete, t.trouble = size, size, true, ""
}

func (t *task) fetched(now traffic) system.Progress {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := system.Progress{
		Size: t.size, Verified: t.verified, Written: t.verified, Complete: t.complete,
		Received: now.DataReceived - t.before.DataReceived, Sent: now.DataSent - t.before.DataSent,
		Peers: len(now.Peers), Trouble: t.trouble,
	}
	if f.Trouble == "" && !f.Complete && f.Peers == 0 {
		f.Trouble = "no peers"
	}
	return f
}
