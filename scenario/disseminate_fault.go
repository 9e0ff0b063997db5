package scenario

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
)

// swarmFault is a fault of a trial, with whom it strikes.
type swarmFault struct {
	experiment.Fault
	victims []*member
	part    chan struct{} // closed when the leechers have its share; of a fault by time: never
	begun   bool
	killed  []*member // whom it has killed
	start   time.Duration
	undone  time.Duration // all that it had done; 0: it is not, or not before the load was over
}

// byShare reports whether it begins when the leechers have a share of the content.
func (f *swarmFault) byShare() bool { return !math.IsNaN(f.Part) }

// plan lets a fault happen at its moment, and be undone at its end. A trial waits
// for a fault that has a moment; one that comes with progress may never come. The
// lock is the caller's.
func (t *swarmTrial) plan(f *swarmFault) {
	moment := t.released + f.At
	if !f.byShare() {
		t.pending++
	}
	t.group.Go(func() {
		if f.byShare() {
			select {
			case <-f.part:
			case <-t.load.Done():
				return
			}
		} else if !t.until(moment) {
			return
		}
		began := t.now()
		t.begin(f)
		if f.For > 0 && t.until(began+f.For) {
			t.undo(f)
		}
		t.mu.Lock()
		t.pending--
		t.mu.Unlock()
		t.wake()
	})
	t.reached()
}

// reached begins faults whose share of the content the leechers have. The lock is
// the caller's.
func (t *swarmTrial) reached() {
	whole := float64(t.size) * float64(len(t.leechers))
	for _, f := range t.faults {
		if f.byShare() && !f.begun && float64(t.verified) >= f.Part*whole {
			f.begun = true
			t.pending++
			close(f.part)
		}
	}
}

// begin lets a fault happen.
func (t *swarmTrial) begin(f *swarmFault) {
	t.mu.Lock()
	at := t.now()
	if late := t.late(f, at); late != "" {
		t.notes = append(t.notes, late)
	}
	t.mu.Unlock()
	var err error
	switch f.Kind {
	case experiment.FaultCrash:
		err = t.crash(f)
	default:
		err = t.links.begin(t.load, f)
	}
	took := t.now() - at
	t.mu.Lock()
	defer t.mu.Unlock()
	f.begun, f.start = true, at
	if err == nil {
		t.awaitUndoing(f)
	}
	t.concluded(f, "begins", at, took, t.stall, err)
}

// late says by how much a fault comes later than it was due, when that is more than
// coarse. The lock is the caller's.
func (t *swarmTrial) late(f *swarmFault, at time.Duration) string {
	if f.byShare() {
		if came := float64(t.verified) / float64(t.size) / float64(len(t.leechers)); came > f.Part+coarse {
			return fmt.Sprintf("the fault %q was due at %.3g %% of the leechers' content and came at %.3g %%: no answer in between", f.Fault, 100*f.Part, 100*came)
		}
		return ""
	}
	if by := at - t.released - f.At; by > t.every && by.Seconds() > coarse*f.At.Seconds() {
		return fmt.Sprintf("the fault %q came %.3g s after the release, %.3g s late", f.Fault, (f.At + by).Seconds(), by.Seconds())
	}
	return ""
}

// coarse is the share from which on a trial says how inexact a moment is: of the
// content, or of the time.
const coarse = 0.1

// undo takes a fault back.
func (t *swarmTrial) undo(f *swarmFault) {
	at := t.now()
	var err error
	switch f.Kind {
	case experiment.FaultCrash:
		t.revive(f)
	default:
		err = t.links.end(t.load, f)
	}
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.load.Err() != nil { // it came to its end without this
		return
	}
	if f.Kind != experiment.FaultCrash && err == nil {
		t.awaitRecovery(now, t.struck(f)...)
	}
	if err == nil {
		f.undone = now
	}
	t.concluded(f, "ends", at, now-at, afterUndoing*t.stall, err)
}

// afterUndoing is how many times limits.stall nodes that have stalled are waited
// for when a fault was undone: once for noticing that the others are back, which
// systems ask for at intervals of their own, and once for going on.
const afterUndoing = 2

// concluded records the beginning or the end of a fault, and for how long those
// that have stalled may go on now. The lock is the caller's.
func (t *swarmTrial) concluded(f *swarmFault, what string, at, took, patience time.Duration, err error) {
	if err != nil {
		if t.load.Err() == nil {
			t.fail(t.failed(f.String()+" "+what, err))
		}
		return
	}
	t.hope = max(t.hope, t.now()+patience)
	t.event("fault", string(f.Kind)+" "+what, f.String()+": "+names(f.victims), at, took)
}

// crash kills nodes. One that is down already, or has left, is none of the fault's.
func (t *swarmTrial) crash(f *swarmFault) error {
	t.mu.Lock()
	for _, m := range f.victims {
		if m.serving() {
			m.down, m.stale = true, true
			m.life++
			f.killed = append(f.killed, m)
			if l := m.leecher; l != nil {
				l.told = false
			}
		}
	}
	t.mu.Unlock()
	// All at once: that is what a rack without power looks like.
	errs := make([]error, len(f.killed))
	var group sync.WaitGroup
	for i, m := range f.killed {
		group.Go(func() { errs[i] = m.restarter.Kill(t.load) })
	}
	group.Wait()
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, m := range f.killed {
		if errs[i] != nil {
			return t.failed(m.name, errs[i])
		}
		if l := m.leecher; l != nil && f.For == 0 {
			l.lost(now, record.Cancelled, classCrashed)
		}
	}
	t.wake()
	return nil
}

// revive starts the nodes that a fault has killed again, a few at a time. Seeders
// that kept their data publish it again, as an operator would; leechers that have
// not got all are told of their task again.
func (t *swarmTrial) revive(f *swarmFault) {
	// What went wrong with a node is its own affair.
	_ = t.eachMember(t.load, f.killed, "start it again", t.startLimit()+t.deadline, func(ctx context.Context, m *member) error {
		begun := t.now()
		err := within(ctx, t.startLimit(), func(ctx context.Context) error { return m.restart(ctx, !f.Empty) })
		if err == nil && m.leecher == nil && !f.Empty {
			err = t.publish(ctx, m)
		}
		if t.load.Err() != nil {
			return nil
		}
		now := t.now()
		t.mu.Lock()
		l := m.leecher
		if err != nil {
			m.stale = true
			t.event("node", "not started again", m.name+": "+shorten(err), now, now-begun)
			if l != nil {
				l.lost(now, record.Error, "not started again")
			}
			t.wake()
			t.mu.Unlock()
			return nil
		}
		m.down = false
		t.mourn(m)
		t.event("node", "started again", m.name, now, now-begun)
		tell := false
		if l != nil {
			if f.Empty {
				t.again(l)
			}
			if l.started > 0 {
				l.progress, l.asked = now, now
				l.stalled = false
			}
			tell = l.started > 0 && l.ended == 0
		}
		if l != nil {
			t.awaitRecovery(now, m)
		} else { // all that had this seeder
			t.awaitRecovery(now, t.struck(f)...)
		}
		t.mu.Unlock()
		if tell {
			t.fetch(m)
		}
		return nil
	})
}

func within(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return do(ctx)
}

// names lists nodes.
func names(all []*member) string {
	out := make([]string, len(all))
	for i, m := range all {
		out[i] = m.name
	}
	return strings.Join(out, ", ")
}
