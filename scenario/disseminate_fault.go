package scenario

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
)

// swarmFault is a fault of a trial, with whom it strikes.
type swarmFault struct {
	courseFault
	victims []*member
	killed  []*member // whom it has killed
}

// reached begins faults whose share of the content the leechers have. The lock is
// the caller's.
func (t *swarmTrial) reached() {
	for _, f := range t.faults {
		t.come(&f.courseFault, t.share())
	}
}

// share is what the leechers have of all their content. The lock is the caller's.
func (t *swarmTrial) share() float64 {
	return float64(t.verified) / (float64(t.size) * float64(len(t.leechers)))
}

// begin lets a fault happen.
func (t *swarmTrial) begin(f *swarmFault) {
	late := func(at time.Duration) string {
		return t.late(&f.courseFault, at, t.share(), "the leechers' content", "the release")
	}
	t.strike(&f.courseFault, late, func() error { return t.crash(f) }, func() { t.awaitUndoing(f) })
}

// undo takes a fault back. Those that it had killed recover each from when they run
// again.
func (t *swarmTrial) undo(f *swarmFault) {
	revive := func() error { t.revive(f); return nil }
	t.takeBack(&f.courseFault, revive, func(now time.Duration) {
		if f.Kind() != experiment.FaultCrash {
			t.awaitUndoing(f) // of those that came meanwhile, too
			t.awaitRecovery(now, t.struck(f)...)
		}
	})
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
	_ = t.eachMember(t.load, f.killed, "start it again", t.starting+t.deadline, func(ctx context.Context, m *member) error {
		begun := t.now()
		err := within(ctx, t.starting, func(ctx context.Context) error { return m.restart(ctx, !f.WithoutData) })
		if err == nil && m.leecher == nil && !f.WithoutData {
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
				l.lost(now, record.Error, classAgain)
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
			if f.WithoutData {
				t.again(l)
			}
			if l.started > 0 {
				l.progress, l.asked = now, now
				l.stalled = false
			}
			tell = l.started > 0 && l.ended == 0
		}
		t.awaitUndoing(f) // of those that came meanwhile, too
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

// names lists nodes.
func names(all []*member) string {
	out := make([]string, len(all))
	for i, m := range all {
		out[i] = m.name
	}
	return strings.Join(out, ", ")
}
