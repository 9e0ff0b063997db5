package scenario

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
)

// isNotFound reports whether a node knows nothing of the content.
func isNotFound(err error) bool { return errors.Is(err, system.ErrNotFound) }

// cutOff reports whether a fault has taken a node away from every seeder: one that
// serves is left on the other side, alone. Where the seeders were taken away from
// the leechers, it is for the system to go on without them, as when they are dead.
// The lock is the caller's.
func (t *swarmTrial) cutOff(m *member) bool {
	beyond, apart := false, t.links.apart()
	if !slices.Contains(apart, m.place) {
		return false
	}
	for _, s := range t.seeders {
		switch {
		case !s.serving():
		case slices.Contains(apart, s.place) == slices.Contains(apart, m.place):
			return false
		default:
			beyond = true
		}
	}
	return beyond
}

// decide ends a leecher that has come to a standstill, or to its deadline.
func (t *swarmTrial) decide(m *member, at time.Duration) {
	l := m.leecher
	switch {
	case t.cutOff(m):
		l.end(at, record.Cancelled, classCut)
	case !l.stalled:
		l.end(at, record.Deadline, "")
	case l.silent != nil && !errors.Is(l.silent, context.DeadlineExceeded):
		outcome, class, _ := outcomeOf(l.silent, nil)
		l.end(at, outcome, class)
	default:
		l.end(at, record.Stalled, l.why())
	}
}

// conclude decides about the leechers that are left when the load is over. whole:
// it has come to its end, and was not cut short.
func (t *swarmTrial) conclude(whole bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range t.leechers {
		l := m.leecher
		switch {
		case l.ended > 0:
		case whole && l.started > 0:
			t.decide(m, t.ended)
		default:
			if l.started == 0 {
				l.started, l.released = t.ended, t.ended
			}
			l.end(t.ended, record.Cancelled, "")
		}
	}
	for _, f := range t.faults {
		if whole {
			t.unhappened(&f.courseFault, fmt.Sprintf("the leechers had %.3g %% of all content at most", 100*float64(t.most)/(float64(t.size)*float64(len(t.leechers)))), "the release")
		}
	}
}

// verdict is the outcome of a leecher that has all, from what was read back.
func (l *leecher) verdict() (record.Outcome, string) {
	switch {
	case l.wrong:
		return record.WrongBytes, ""
	case l.unread != nil:
		outcome, class, _ := outcomeOf(l.unread, nil)
		return outcome, "read back: " + cmp.Or(class, outcome.String())
	case !l.checked: // the trial was cut short
		return record.Cancelled, ""
	}
	return record.OK, ""
}

// ops are a leecher's operation, until all was verified, and the same until all was
// on disk. The first alone is recorded, so that a leecher counts once: marks tell
// the moment of the second.
func (t *swarmTrial) ops(m *member) (fetch, disk record.Op) {
	l := m.leecher
	fetch = record.Op{
		Kind: record.OpFetch, Worker: uint32(m.place), Length: t.size, Bytes: min(l.verified, t.size),
		Intended: nanos(l.released), Start: nanos(l.started), FirstByte: l.first.Nanoseconds(), LastByte: nanos(l.ended), Outcome: l.outcome, Class: l.class,
	}
	disk = fetch
	if l.all > 0 {
		fetch.LastByte, fetch.Bytes = nanos(l.all), t.size
		fetch.Outcome, fetch.Class = l.verdict()
	}
	if l.all > 0 && l.disk > 0 {
		disk = fetch
		disk.LastByte = nanos(l.disk)
	}
	return fetch, disk
}

// record hands over the operations and marks.
func (t *swarmTrial) record() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var ops []record.Op
	for _, m := range t.leechers {
		fetch, _ := t.ops(m)
		ops = append(ops, fetch)
	}
	slices.SortStableFunc(ops, func(a, b record.Op) int { return cmp.Compare(a.LastByte, b.LastByte) })
	var errs []error
	for part := range slices.Chunk(ops, record.BlockSize) {
		errs = append(errs, t.sink.Block(record.AppendBlock(nil, part)))
	}
	if t.sink.Marks != nil {
		slices.SortStableFunc(t.marks, func(a, b record.Mark) int { return cmp.Compare(a.End, b.End) })
		errs = append(errs, t.sink.Marks(t.marks))
	}
	return errors.Join(errs...)
}
