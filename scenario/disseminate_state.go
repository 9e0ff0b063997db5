package scenario

import (
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
)

// member is a node that takes part in a trial. All but what is set before the
// release is under the trial's lock.
type member struct {
	*swarmNode
	address string
	leecher *leecher // nil: a seeder

	life int   // starts of its daemon that this trial knows of: answers of an earlier one are void
	down bool  // killed on purpose, and not ready again
	died error // its daemon ended by itself
	left bool  // it went on purpose: it serves nothing any more
}

// serving reports whether the node can be asked.
func (m *member) serving() bool { return !m.down && m.died == nil && !m.left }

// leecher is what is known of one. Times are since the trial's epoch; 0: not yet.
type leecher struct {
	offset time.Duration // from the release of all to its own

	released time.Duration // intended
	started  time.Duration // it is to be told of its task
	called   time.Duration // its first call of Fetch began
	told     bool          // Fetch has returned: it has its task, in its daemon's present life

	last     system.Progress // latest answer
	asked    time.Duration   // start of the latest poll that was answered, or of its Fetch
	gap      time.Duration   // longest time in which something could have happened unseen
	silent   error           // why the latest poll had no answer; nil: it had
	verified int64
	percent  int64 // of the content, when it last left a mark
	trouble  string

	first, all, disk time.Duration // ends of the polls that first told of them
	progress         time.Duration // end of the latest poll that told of something new, or what else its patience counts from
	stalled          bool

	ended   time.Duration // it is decided what becomes of it
	outcome record.Outcome
	class   string

	checked bool // it was read back
	wrong   bool // and is not the content
	unread  error
}

// complete reports whether it has all, by its node's word.
func (l *leecher) complete() bool { return l.all > 0 && l.disk > 0 }

// end decides what becomes of a leecher, once.
func (l *leecher) end(at time.Duration, outcome record.Outcome, class string) {
	if l.ended == 0 {
		l.ended, l.outcome, l.class = at, outcome, class
	}
}

// lost ends a leecher whose node is gone for good. One that was still to come has
// come to nothing at the moment at which it would have.
func (l *leecher) lost(at time.Duration, outcome record.Outcome, class string) {
	if l.started == 0 {
		l.started = l.released
	}
	l.end(max(at, l.released), outcome, class)
}

// again lets a leecher begin anew, whose node has lost what it had. The lock is
// the caller's.
func (t *swarmTrial) again(l *leecher) {
	if l.ended > 0 && l.outcome == record.OK {
		t.done--
		l.ended = 0
	}
	t.verified -= l.verified
	l.verified, l.percent, l.last = 0, 0, system.Progress{}
	l.all, l.disk = 0, 0
}

// Classes of leechers that the experiment itself has ended: no failures of the
// system.
const (
	classCrashed = "crashed on purpose"
	classCut     = "cut away on purpose"
	classDied    = "daemon died"
	classSilent  = "no answer"
)

// saw takes the answer of a poll. The lock is the caller's.
func (t *swarmTrial) saw(m *member, start, end time.Duration, f system.Progress, err error) {
	l := m.leecher
	if l.asked > 0 {
		l.gap = max(l.gap, end-l.asked)
	}
	if err != nil {
		if l.silent == nil {
			t.mark(m, start, end, classSilent+": "+shorten(err))
		}
		l.silent = err
		return
	}
	had := l.last
	l.silent, l.last = nil, f
	verified := f.Verified
	if f.Complete && verified < 0 {
		verified = t.size
	}
	verified = max(0, verified)
	news := verified > l.verified || f.Written > had.Written || f.Complete && !had.Complete
	t.verified += verified - l.verified
	t.most = max(t.most, t.verified)
	l.verified = verified
	if verified > 0 && l.first == 0 {
		l.first = end
	}
	if l.all == 0 && (verified >= t.size || f.Complete) {
		l.all = end
	}
	if l.disk == 0 && f.Complete && (f.Written < 0 || f.Written >= t.size) {
		l.disk = end
	}
	percent := 100 * verified / max(1, t.size)
	trouble := f.Trouble != "" && f.Trouble != l.trouble
	l.trouble = f.Trouble
	if percent > l.percent || verified > 0 && had.Verified <= 0 || f.Complete && !had.Complete || l.disk == end || trouble {
		t.mark(m, start, end, f.Trouble)
	}
	l.percent = max(l.percent, percent)
	l.asked = start
	if news {
		l.progress = end
		if l.stalled {
			l.stalled = false
			t.event("node", "stall passed", m.name, end, 0)
		}
		t.recover(l, end)
	}
	if l.complete() && l.ended == 0 {
		l.end(end, record.OK, "")
		t.completed(m)
	}
	t.reached()
	t.wake()
}

// mark keeps what a poll told. The lock is the caller's.
func (t *swarmTrial) mark(m *member, start, end time.Duration, trouble string) {
	l := m.leecher
	f, before, verified := l.last, l.asked, l.verified
	t.marks = append(t.marks, record.Mark{
		Node: m.place, Before: before, Start: start, End: end, Verified: verified, Written: f.Written,
		Received: f.Received, Sent: f.Sent, Peers: f.Peers, Complete: f.Complete, Trouble: trouble,
	})
}

// judge decides about leechers by the clock, and says whether the trial's load
// is over; if not, when to judge again. The lock is the caller's.
func (t *swarmTrial) judge(now time.Duration) (over bool, next time.Duration) {
	next = now + time.Hour
	at := func(moment time.Duration) { next = min(next, moment) }
	unfinished, waiting := false, t.pending > 0
	for _, m := range t.leechers {
		l := m.leecher
		if l.ended > 0 {
			continue
		}
		if l.started == 0 { // its arrival is to come
			unfinished, waiting = true, true
			continue
		}
		if deadline := l.released + t.deadline; now < deadline {
			at(deadline)
		} else {
			t.decide(m, now)
			continue
		}
		unfinished = true
		if m.down || !l.told { // it is to be started again, or to be told of its task: its patience begins then
			waiting = true
			continue
		}
		if !l.stalled {
			if limit := l.progress + t.stall; now >= limit {
				l.stalled = true
				t.stalls++
				detail := m.name
				if why := l.why(); why != "" {
					detail += ": " + why
				}
				t.event("node", "stalled", detail, now, 0)
			} else {
				at(limit)
				waiting = true
			}
		} else if now < t.hope {
			at(t.hope)
			waiting = true
		}
	}
	return !unfinished || !waiting, next
}

// why is what a leecher that does not go on says of itself.
func (l *leecher) why() string {
	if l.silent != nil {
		return classSilent
	}
	return l.last.Trouble
}

// completed is called when a leecher has all. The lock is the caller's.
func (t *swarmTrial) completed(m *member) {
	t.done++
	if !t.d.Stay.Forever {
		t.group.Go(func() { t.leave(m, m.leecher.ended+t.d.Stay.For) })
	}
}
