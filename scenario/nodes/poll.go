package nodes

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
)

// Answer is a node's answer to a poll. The mark lacks the node and the times.
type Answer struct {
	record.Mark
	All   bool   // it has all; Complete: that too, and nothing remains to be done with it
	Wrong string // what is wrong with its content, which ends it; empty: nothing
	Own   any    // the answer of the system, for the scenario
}

// Progress is the progress of a timed node. Times are since the trial's epoch; 0: not yet.
type Progress struct {
	Released time.Duration // scheduled time of its release
	Started  time.Duration // actual time of its release; it gets its task next, if it serves
	Called   time.Duration // start of its first call to Actions.Start

	First, All time.Duration // ends of the polls that first reported them
	Verified   int64
	Opening    int64         // verified in the first answer, or in the first that reported anything
	MostPeers  int           // largest number of connected peers
	Last       Answer        // the latest answer
	Gap        time.Duration // longest time in which something could have happened unseen

	Ended   time.Duration // when its outcome was decided
	Outcome record.Outcome
	Class   string

	tasked  bool          // it has its task since its daemon's latest start
	Polled  bool          // it has answered a poll
	given   time.Duration // start of the latest call to Actions.Start
	asked   time.Duration // start of the latest answered poll, or when it got its task
	silent  error         // why the latest poll had no answer; nil: it had one
	percent int64         // percentage of the goal at its latest mark
	news    time.Duration // the stall limit counts from here: end of the latest poll with news, or start of its task
	stalled bool
}

// Classes of nodes that the experiment itself ended, which are no failures of the system, and of
// nodes that failed.
const (
	ClassCrashed = "crashed on purpose"
	ClassCut     = "cut away on purpose"
	ClassDied    = "daemon died"
	classSilent  = "no answer"
	ClassAgain   = "not started again"
	ClassLate    = "not started in time"
)

// end sets the outcome of a node, unless it is decided already.
func (p *Progress) end(at time.Duration, outcome record.Outcome, class string) {
	if p.Ended == 0 {
		p.Ended, p.Outcome, p.Class = at, outcome, class
	}
}

// lost ends a node that is gone for good. A node that was not released yet ends at its release.
func (p *Progress) lost(at time.Duration, outcome record.Outcome, class string) {
	if p.Started == 0 {
		p.Started = p.Released
	}
	p.end(max(at, p.Released), outcome, class)
}

// again resets the progress of a restarted node. empty means that it lost its data.
func (p *Progress) again(empty bool) {
	p.Last = Answer{}
	if empty {
		p.Verified, p.percent, p.All = 0, 0, 0
		if p.Outcome == record.OK {
			p.Ended = 0
		}
	}
}

// why returns why a node makes no progress, as far as it reports that.
func (p *Progress) why() string {
	if p.silent != nil {
		return classSilent
	}
	return p.Last.Trouble
}

// leavesMark reports whether an answer is recorded as a mark.
func (t *Trial) leavesMark(p *Progress, a *Answer) bool {
	return !p.Polled || t.percent(a) > p.percent || a.All && p.All == 0 || a.Complete && !p.Last.Complete ||
		a.Verified > 0 && p.Last.Verified <= 0 || a.Trouble != "" && a.Trouble != p.Last.Trouble
}

// percent returns the percentage of the goal in an answer.
func (t *Trial) percent(a *Answer) int64 { return 100 * min(a.Verified, t.Goal) / t.Goal }

// accompany waits for a node's release, gives it its task, and polls it. All nodes are polled at
// the same interval, at times of one absolute schedule over which they are spread evenly, so
// that their polls do not coincide. Polls that are due while one is running are skipped.
func (t *Trial) accompany(i int, n *Node) {
	if !t.Until(n.Released) {
		return
	}
	t.Mu.Lock()
	if n.Ended > 0 { // it was lost before its release
		t.Mu.Unlock()
		return
	}
	now := t.Now()
	n.Started, n.asked, n.news = now, now, now
	t.wake() // its deadline begins
	serving := n.Serving()
	t.Mu.Unlock()
	if serving { // else it gets its task when it is back
		t.start(n)
	}
	first := t.Released + t.every*time.Duration(i+1)/time.Duration(len(t.Timed))
	for over := false; !over; {
		next := first
		if now := t.Now(); now >= first {
			next += ((now-first)/t.every + 1) * t.every
		}
		if !t.Until(next) {
			return
		}
		t.Mu.Lock()
		// As long as there are faults, a node that has all may lose it and begin anew.
		over = n.Ended > 0 && (n.Outcome != record.OK || len(t.Faults) == 0)
		ask, starts := n.Serving() && n.tasked && n.Ended == 0, n.starts
		t.Mu.Unlock()
		if ask {
			t.poll(n, starts)
		}
	}
}

// start gives a node its task, and reports whether that succeeded.
func (t *Trial) start(n *Node) bool {
	t.Mu.Lock()
	starts, begun := n.starts, t.Now()
	if n.Called == 0 {
		n.Called = begun
	}
	t.Mu.Unlock()
	ctx, cancel := context.WithTimeout(t.During, t.Starting)
	defer cancel()
	err := t.actions.Start(ctx, n)
	late, now := ctx.Err() != nil, t.Now()
	t.Mu.Lock()
	defer t.Mu.Unlock()
	if n.starts != starts || !n.Serving() || err != nil && t.During.Err() != nil { // the node or the trial ended meanwhile
		return false
	}
	if err != nil {
		outcome, class, _ := scenario.OutcomeOf(err, nil)
		if late {
			outcome, class = record.Error, ClassLate // the trial's limit, not the system's
		}
		if n.Killed() && outcome == record.Error {
			class = ClassAgain
		}
		n.end(now, outcome, class)
		t.Event("node", "task refused", n.Name+": "+scenario.ShortError(err), now, now-begun)
	} else {
		n.tasked, n.stalled, n.given, n.asked, n.news = true, false, begun, now, now
		t.watchProcesses(n)
	}
	t.wake()
	return err == nil
}

// poll asks a node for its progress.
func (t *Trial) poll(n *Node, starts int) {
	ctx, cancel := context.WithTimeout(t.During, t.patience)
	defer cancel()
	start := t.Now()
	a, err := t.actions.Poll(ctx, n)
	end := t.Now()
	t.Mu.Lock()
	defer t.Mu.Unlock()
	if err != nil && t.During.Err() != nil || n.starts != starts || !n.Serving() || n.Ended > 0 {
		return
	}
	if err == nil && !n.Polled && a.Verified > 0 { // the progress may have come while the node was given its task
		n.asked = n.given
	}
	n.Gap = max(n.Gap, end-n.asked)
	if err != nil {
		if n.silent == nil {
			last := n.Last
			last.Verified, last.Trouble = n.Verified, classSilent+": "+scenario.ShortError(err)
			t.mark(n, start, end, last)
		}
		n.silent = err
		return
	}
	t.recordAnswer(n, start, end, a)
	t.schedule()
	t.wake()
}

// recordAnswer processes the answer to a poll. The caller holds the lock.
func (t *Trial) recordAnswer(n *Node, start, end time.Duration, a Answer) {
	if t.leavesMark(&n.Progress, &a) {
		t.mark(n, start, end, a)
		n.percent = max(n.percent, t.percent(&a))
	}
	news := a.Verified > n.Last.Verified || a.Written > n.Last.Written || a.Complete && !n.Last.Complete
	first := a.Verified > 0 && n.First == 0
	if first {
		n.First = end
	}
	if first || !n.Polled {
		n.Opening = a.Verified
	}
	if a.All && n.All == 0 {
		n.All = end
	}
	n.Verified, n.MostPeers = a.Verified, max(n.MostPeers, a.Peers)
	n.silent, n.Last, n.Polled, n.asked = nil, a, true, start
	if news {
		n.news = end
		if n.stalled {
			n.stalled = false
			t.Event("node", "stall passed", n.Name, end, 0)
		}
		n.recover(end)
	}
	switch {
	case a.Wrong != "":
		n.end(end, record.WrongBytes, "")
		t.Event("violation", "wrong content", n.Name+": "+a.Wrong, end, 0)
	case a.Complete:
		n.end(end, record.OK, "")
		if t.Done != nil {
			t.Done(n)
		}
	}
}

// mark keeps the answer to a poll as a mark. The caller holds the lock.
func (t *Trial) mark(n *Node, start, end time.Duration, a Answer) {
	m := a.Mark
	m.Node, m.Before, m.Start, m.End = n.Place, min(start, n.asked), start, end
	t.marks = append(t.marks, m)
}

// applyLimits applies the stall limit and the deadline to nodes. It reports whether the load is over
// and, if not, when to judge again. The caller holds the lock.
func (t *Trial) applyLimits(now time.Duration) (over bool, next time.Duration) {
	next = now + time.Hour
	at := func(moment time.Duration) { next = min(next, moment) }
	unfinished, waiting := false, t.pending > 0
	for _, n := range t.Timed {
		deadline := n.Released + t.deadline
		switch {
		case n.Ended > 0:
			continue
		case n.Started == 0: // not yet released
			unfinished, waiting = true, true
			continue
		case now >= deadline:
			t.decide(n, now)
			continue
		}
		at(deadline)
		unfinished = true
		limit := n.news + t.stall
		switch {
		case n.down || !n.tasked: // the stall limit counts from when it has its task
			waiting = true
		case !n.stalled && now < limit:
			at(limit)
			waiting = true
		case !n.stalled:
			n.stalled = true
			t.stalls++
			t.Event("node", "stalled", strings.TrimSuffix(n.Name+": "+n.why(), ": "), now, 0)
		}
		if n.stalled && now < t.hope {
			at(t.hope)
			waiting = true
		}
	}
	return !unfinished || !waiting, next
}

// cutOff reports whether faults have cut a node off from all sources (nodes that are not timed
// and serve): the node is apart, and all sources are on the other side. If instead the sources
// are apart, the system has to continue without them, as if they were dead. The caller holds the
// lock.
func (t *Trial) cutOff(n *Node) bool {
	var apart []*Node
	for _, f := range t.Faults {
		if f.Kind() == experiment.FaultCut && f.start > 0 && f.undone == 0 {
			apart = append(apart, f.Victims...)
		}
	}
	serving := func(cut bool) bool {
		return slices.ContainsFunc(t.Nodes, func(s *Node) bool {
			return !s.timed && s.Serving() && slices.Contains(apart, s) == cut
		})
	}
	return slices.Contains(apart, n) && serving(false) && !serving(true)
}

// decide ends a node that has stalled or reached its deadline. The caller holds the lock.
func (t *Trial) decide(n *Node, at time.Duration) {
	switch {
	case t.cutOff(n):
		n.end(at, record.Cancelled, ClassCut)
	case !n.stalled:
		n.end(at, record.Deadline, "")
	case n.silent != nil && !errors.Is(n.silent, context.DeadlineExceeded):
		outcome, class, _ := scenario.OutcomeOf(n.silent, nil)
		n.end(at, outcome, class)
	default:
		n.end(at, record.Stalled, n.why())
	}
}

// NoteFault begins the notes on faults that did not happen in full.
const NoteFault = "the fault "

// conclude decides the outcome of the remaining nodes when the load is over. whole means that
// the load was not cut short.
func (t *Trial) conclude(whole bool) {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	for _, n := range t.Timed {
		switch {
		case n.Ended > 0:
		case whole && n.Started > 0:
			t.decide(n, t.Ended)
		default:
			if n.Started == 0 {
				n.Started, n.Released = t.Ended, t.Ended
			}
			n.end(t.Ended, record.Cancelled, "")
		}
	}
	for _, f := range t.Faults {
		if whole && f.start == 0 {
			t.Note(NoteFault+"%q never came: the load was over before", f.Fault)
		} else if whole && f.For > 0 && f.undone == 0 {
			t.Note(NoteFault+"%q was not undone before the load was over", f.Fault)
		}
	}
}
