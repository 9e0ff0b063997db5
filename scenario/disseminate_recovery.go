package scenario

import (
	"slices"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/stats"
)

// recovery is a leecher that a fault has found unfinished.
type recovery struct {
	fault   *swarmFault
	leecher *leecher
	ended   time.Duration // the fault, for it; 0: it has not
	beyond  int64         // bytes that it had verified then
	after   time.Duration // until it had verified more; 0: it has not
}

// disturbed are the leechers that a fault of some nodes is about: those among them,
// or all, where there is none.
func (t *swarmTrial) disturbed(nodes []*member) []*member {
	leechers := slices.DeleteFunc(slices.Clone(nodes), func(m *member) bool { return m.leecher == nil })
	if len(leechers) == 0 {
		return t.leechers
	}
	return leechers
}

// follow notes the leechers that a fault disturbs before they have all. A fault for
// good leaves nothing to recover from, and a rate that changes stops nobody. The
// lock is the caller's.
func (t *swarmTrial) follow(f *swarmFault, nodes []*member) {
	if f.Kind == experiment.FaultRate || f.For == 0 {
		return
	}
	for _, m := range t.disturbed(nodes) {
		l := m.leecher
		known := slices.ContainsFunc(t.affected, func(r *recovery) bool { return r.fault == f && r.leecher == l })
		if l.started > 0 && l.ended == 0 && !known {
			t.affected = append(t.affected, &recovery{fault: f, leecher: l})
		}
	}
}

// awaitRecovery notes that a fault has ended for some of its nodes, beside those
// whom it struck for leechers that came meanwhile. The lock is the caller's.
func (t *swarmTrial) awaitRecovery(f *swarmFault, at time.Duration, nodes ...*member) {
	t.follow(f, nodes)
	for _, m := range t.disturbed(nodes) {
		for _, r := range t.affected {
			// Of two faults, or of several nodes of one, the last end counts.
			if r.leecher == m.leecher && r.after == 0 && (r.fault == f || r.ended > 0) {
				r.ended, r.beyond = at, r.leecher.verified
			}
		}
	}
}

// recover notes that a leecher has more than before. The lock is the caller's.
func (t *swarmTrial) recover(l *leecher, at time.Duration) {
	for _, r := range t.affected {
		if r.leecher == l && r.ended > 0 && r.after == 0 && l.verified > r.beyond {
			r.after = at - r.ended
		}
	}
}

func (t *swarmTrial) recoveryMetrics(put func(string, float64)) {
	var after []float64
	of := 0.0
	for _, r := range t.affected {
		switch {
		case r.after > 0:
			after = append(after, r.after.Seconds())
		case r.leecher.all > 0:
			continue // it had all before the fault ended
		}
		of++
	}
	if of > 0 {
		put("recovered", float64(len(after))/of)
	}
	if len(after) > 0 {
		put("recovery", stats.Median(after))
	}
}
