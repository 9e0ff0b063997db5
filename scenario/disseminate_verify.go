package scenario

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
)

// verify compares what leechers that have all, by their own word, have on their
// disks with the content, after the load. One that was killed when it had all is
// started again for it.
func (t *swarmTrial) verify(ctx context.Context) error {
	var whole []*member
	for _, m := range t.leechers {
		if l := m.leecher; l.all > 0 && !l.checked {
			whole = append(whole, m)
		}
	}
	begun := t.now()
	// What went wrong with one is its outcome.
	_ = t.eachMember(ctx, whole, "verify", t.deadline+t.starting, func(ctx context.Context, m *member) error {
		if ended(m.node.Processes()) != nil || m.down || m.died != nil {
			err := within(ctx, t.starting, func(ctx context.Context) error { return m.restart(ctx, true) })
			if err != nil {
				m.leecher.checked, m.leecher.unread = true, err
				return nil
			}
			m.down = false
		}
		t.check(ctx, m)
		return nil
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	t.event("phase", "verified", fmt.Sprintf("%d leechers", len(whole)), begun, t.now()-begun)
	return nil
}

// check reads back what a leecher has, and compares it.
func (t *swarmTrial) check(ctx context.Context, m *member) {
	wrong, err := t.readBack(ctx, m)
	if err != nil && ctx.Err() != nil && context.Cause(ctx) == errOver {
		return // it is verified after the load
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	l := m.leecher
	l.checked, l.wrong, l.unread = true, wrong, err
	if wrong {
		t.event("violation", "wrong bytes", m.name+" says that it has all", t.now(), 0)
	}
}

// readBack says whether a leecher has other bytes than the content, or why it
// cannot be told.
func (t *swarmTrial) readBack(ctx context.Context, m *member) (wrong bool, err error) {
	check, err := t.set.Check(0)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, t.deadline)
	defer cancel()
	to := &comparing{to: check}
	err = m.node.ReadBack(ctx, t.ref, to)
	short := check.Close()
	switch {
	case to.wrong:
		return true, nil
	case err == nil && short != nil: // less than the content, and no error
		return true, nil
	}
	return false, err
}

// comparing passes on what a node writes, and sees what the comparison says.
type comparing struct {
	to    io.Writer
	wrong bool
}

func (c *comparing) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	if err != nil {
		c.wrong = true
		return n, errWrongBytes
	}
	return n, nil
}

// leave lets a leecher that has all go, at a moment: what it has is compared, as
// nobody can later, and its task and data are removed, so that it serves nobody
// any more. That is not how a user quits (its daemon runs on, with nothing to
// give), but it is what every system can do, and no crash. To compare takes CPU in
// the middle of the load.
func (t *swarmTrial) leave(m *member, at time.Duration) {
	if !t.until(at) {
		return
	}
	t.mu.Lock()
	stays := !m.serving() || !m.leecher.complete()
	t.mu.Unlock()
	if stays { // it was killed meanwhile, or lost everything
		return
	}
	t.check(t.load, m)
	if t.load.Err() != nil {
		return
	}
	begun := t.now()
	err := within(t.load, t.starting, func(ctx context.Context) error { return m.node.Forget(ctx, t.ref) })
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.load.Err() != nil || m.down:
		return
	case err != nil:
		t.event("node", "not left", m.name+": "+shorten(err), now, now-begun)
	default:
		m.left = true
		t.event("node", "left", m.name, begun, now-begun)
	}
}

// lastWords asks all nodes what they have received and sent in all, once the load
// is over. What a leecher has verified since then came too late to count.
func (t *swarmTrial) lastWords(ctx context.Context) {
	_ = t.eachMember(ctx, t.members, "last poll", t.patience, func(ctx context.Context, m *member) error {
		t.mu.Lock()
		ask := m.serving() && (m.leecher == nil || m.leecher.told)
		t.mu.Unlock()
		if !ask {
			return nil
		}
		start := t.now()
		f, err := m.node.Progress(ctx, t.ref)
		end := t.now()
		if err != nil {
			return nil
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		before := t.released
		if l := m.leecher; l != nil {
			before = l.asked
			f.Verified, f.Written, f.Complete = l.verified, l.last.Written, l.last.Complete
			l.last = f
		}
		t.marks = append(t.marks, record.Mark{
			Node: m.place, Before: before, Start: start, End: end, Verified: f.Verified, Written: f.Written,
			Received: f.Received, Sent: f.Sent, Peers: f.Peers, Complete: f.Complete, Trouble: f.Trouble,
		})
		return nil
	})
}

// clean takes back what the trial has done to the nodes and the links, whatever
// has become of it. A node that cannot forget the content is started anew before
// it is used again. When the user has cancelled the run nobody uses the nodes
// again: only the links, which are the machine's, are restored.
func (t *swarmTrial) clean(ctx context.Context) {
	cancelled := errors.Is(ctx.Err(), context.Canceled)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanLimit)
	defer cancel()
	if err := t.links.restore(ctx); err != nil {
		t.event("error", "links not restored", shorten(err), t.now(), 0)
	}
	if cancelled {
		for _, m := range t.members {
			m.stale = true
		}
		return
	}
	_ = t.eachMember(ctx, t.members, "clean", time.Minute, func(ctx context.Context, m *member) error {
		if m.stale || ended(m.node.Processes()) != nil {
			m.stale = true
			if m.restarter == nil {
				return nil
			}
			return m.restart(ctx, false)
		}
		if t.ref == "" || m.left {
			return nil
		}
		if err := m.node.Forget(ctx, t.ref); err != nil && !isNotFound(err) {
			m.stale = true
			t.event("node", "content not forgotten", m.name+": "+shorten(err), t.now(), 0)
		}
		return nil
	})
}

// cleanLimit is what cleaning all nodes may take.
const cleanLimit = 5 * time.Minute
