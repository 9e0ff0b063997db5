package codex

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
)

const (
	// answer is how long a node may take to answer what needs no work.
	answer = 10 * time.Second
	// redial is how often the nodes that a fetch names are connected to again.
	redial = 5 * time.Second
)

// content is one that a node has or fetches. How much of it there is follows from
// the number of blocks in the store: the node has no other account of a fetch
// that both dialects give.
type content struct {
	peer   *peer
	ref    system.Ref
	before int64 // blocks in the store when it was not there

	member.Background
	mu       sync.Mutex
	size     int64 // −1: not known yet
	verified int64
	trouble  string
	from     []string
}

func (c *content) complete() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.size >= 0 && c.verified == c.size
}

// hold notes how many blocks there are in the store. One of them is the manifest;
// the last block of a content is stored as a whole one.
func (c *content) hold(blocks int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.size < 0 {
		return
	}
	if now := min(c.size, (blocks-c.before-1)*blockSize); now > c.verified {
		c.verified, c.trouble = now, ""
	}
}

func (c *content) fetched() system.Progress {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := system.Progress{
		Size: c.size, Verified: c.verified, Written: c.verified, Complete: c.size >= 0 && c.verified == c.size,
		Received: -1, Sent: -1, Peers: -1,
	}
	if !f.Complete {
		f.Trouble = c.trouble
	}
	return f
}

// begin fetches, from these nodes and those named before. What is under way is
// begun anew.
func (c *content) begin(from []string) {
	work := []func(context.Context){c.ask}
	c.mu.Lock()
	for _, a := range from {
		if a != c.peer.address {
			c.from = member.Merge(c.from, []string{a})
		}
	}
	for _, a := range c.from {
		work = append(work, func(ctx context.Context) { c.keepConnected(ctx, a) })
	}
	c.mu.Unlock()
	c.Begin(work...) // what the node itself has begun goes on
}

func (c *content) keepConnected(ctx context.Context, address string) {
	for !c.complete() {
		if err := c.peer.Connect(ctx, address); err != nil && ctx.Err() == nil {
			c.note(err)
		}
		if !member.Sleep(ctx, redial) {
			return
		}
	}
}

// ask has the node fetch, and asks again when it may have given up: it says
// nothing of that.
func (c *content) ask(ctx context.Context) {
	for !c.complete() {
		err := c.request(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			c.note(err)
			if !member.Sleep(ctx, retryEvery) {
				return
			}
			continue
		}
		for last := int64(-1); !c.complete(); {
			if now := c.fetched().Verified; now != last {
				last = now
			} else {
				c.note(fmt.Errorf("codex: no block for %v; asked again", c.peer.quiet))
				break
			}
			if !member.Sleep(ctx, c.peer.quiet) {
				return
			}
			if _, err := c.peer.Progress(ctx, c.ref); err != nil && ctx.Err() == nil {
				c.note(err)
			}
		}
	}
}

// request begins a fetch. It is answered with the manifest, or never.
func (c *content) request(ctx context.Context) error {
	if err := c.peer.Alive(); err != nil {
		return err
	}
	a := c.peer.api
	ctx, cancel := context.WithTimeout(ctx, c.peer.quiet)
	defer cancel()
	path := data(c.ref) + "/network"
	m := manifest{CID: string(c.ref)}
	err := classify(path, a.web.JSON(ctx, http.MethodPost, a.url(path, nil), nil, nil, &m))
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("codex: no manifest of %s for %v", c.ref, c.peer.quiet)
	}
	if err != nil {
		return err
	}
	size, err := m.Manifest.DatasetSize.Int64()
	if err != nil {
		return fmt.Errorf("codex: POST %s: datasetSize %q: %w", path, m.Manifest.DatasetSize, system.ErrAnswer)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.size = size
	return nil
}

// note says what keeps it from going on, until a block comes.
func (c *content) note(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trouble = err.Error()
}
