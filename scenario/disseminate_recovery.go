package scenario

import (
	"slices"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
)

// recovery is a leecher that a fault has struck which is to be undone.
type recovery struct {
	fault   *swarmFault
	leecher *leecher
	undone  time.Duration // the fault, for this leecher; 0: not yet
	beyond  int64         // bytes that it had verified then
	after   time.Duration // from then until it had verified more; 0: it has not
}

// struck are the leechers that a fault stops: those that it kills, and those that
// it keeps from a seeder, by killing that or by a cut that runs between the two.
// A rate that changes stops nobody.
func (t *swarmTrial) struck(f *swarmFault) (all []*member) {
	for _, m := range t.leechers {
		hit := false
		switch f.Kind() {
		case experiment.FaultCrash:
			hit = slices.Contains(f.killed, m) || slices.ContainsFunc(f.killed, func(k *member) bool { return k.leecher == nil })
		case experiment.FaultCut:
			apart := slices.Contains(f.victims, m)
			hit = slices.ContainsFunc(t.seeders, func(s *member) bool { return slices.Contains(f.victims, s) != apart })
		}
		if hit {
			all = append(all, m)
		}
	}
	return all
}

// awaitUndoing notes whom a fault that is to be undone has struck before they had
// all. The lock is the caller's.
func (t *swarmTrial) awaitUndoing(f *swarmFault) {
	if f.For == 0 {
		return
	}
	for _, m := range t.struck(f) {
		l := m.leecher
		loses := f.WithoutData && slices.Contains(f.killed, m) && l.outcome == record.OK
		known := slices.ContainsFunc(t.affected, func(r *recovery) bool { return r.leecher == l && (r.fault == f || r.after == 0) })
		if l.started == 0 || l.ended > 0 && !loses || known {
			continue
		}
		t.affected = append(t.affected, &recovery{fault: f, leecher: l})
	}
}

// recovering is what is under way of a leecher's recovery: one that two faults
// strike at a time recovers once, from the last that is undone.
func (t *swarmTrial) recovering(l *leecher) *recovery {
	for _, r := range t.affected {
		if r.leecher == l && r.after == 0 {
			return r
		}
	}
	return nil
}

// awaitRecovery counts from now on for leechers: what kept them is undone. The
// lock is the caller's.
func (t *swarmTrial) awaitRecovery(now time.Duration, of ...*member) {
	for _, m := range of {
		if r := t.recovering(m.leecher); r != nil && m.leecher.ended == 0 && !m.down {
			r.undone, r.beyond = now, m.leecher.verified
		}
	}
}

// recover notes that a leecher has more than before. The lock is the caller's.
func (t *swarmTrial) recover(l *leecher, at time.Duration) {
	if r := t.recovering(l); r != nil && r.undone > 0 && l.verified > r.beyond {
		r.after = at - r.undone
	}
}

// held reports whether a leecher was unfinished when a fault that had struck it
// was undone, or failed before: one that got all from others meanwhile was not
// held up, and one that another fault has taken away for good says nothing.
func (r *recovery) held() bool {
	switch r.leecher.outcome {
	case record.Cancelled:
		return r.after > 0
	case record.OK:
		return r.undone > 0
	}
	return true
}
