package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
)

// freshNode is what is known of it. Times are since the trial's epoch; 0: not yet.
type freshNode struct {
	life int           // starts of its daemon that this trial knows of: answers of an earlier one are void
	told time.Duration // Follow has returned, in its present life
	down bool          // killed on purpose, and not running again
	died error         // its daemon ended by itself

	last     system.Following // latest answer
	polled   bool             // there was one
	asked    time.Duration    // start of the latest poll that was answered, or the daemon's start
	gap      time.Duration    // longest time in which something could have happened unseen
	silent   error            // why the latest poll had no answer; nil: it had
	trouble  string
	height   int64 // of its best block, as it last said
	highest  int64 // the most that it has been
	indexed  int64 // likewise of what subscribes; −1: nothing does
	percent  int64 // of the chain, when it last left a mark
	opening  int64 // height that the first answer told, or that of the first block: what the rate counts from
	astray   int   // answers in turn that told another tip at the height of the chain's
	wrong    time.Duration
	received int64 // has crossed its link; −1: not known

	first, chain, serve time.Duration // ends of the polls that first told of them
	progress            time.Duration // end of the latest poll that told of something new, or what else its patience counts from
	stalled             bool

	connected int // peers, most at once
	// Of earlier lives.
	commits, timedOut, failed int64
	shares                    map[string]system.PeerShare // by address

	ended   time.Duration // it is decided what becomes of it
	outcome record.Outcome
	class   string
}

// end decides what becomes of the node, once.
func (n *freshNode) end(at time.Duration, outcome record.Outcome, class string) {
	if n.ended == 0 {
		n.ended, n.outcome, n.class = at, outcome, class
	}
}

// why is what a node that does not go on says of itself.
func (n *freshNode) why() string {
	if n.silent != nil {
		return classSilent
	}
	return n.last.Trouble
}

// ask asks the node how far it is, and says whether that was for the last time.
func (t *syncTrial) ask() (enough bool) {
	t.mu.Lock()
	over := t.fresh.ended > 0
	ask := !t.fresh.down && (t.fresh.told > 0 || t.attached())
	life := t.fresh.life
	t.mu.Unlock()
	if over || !ask {
		return over
	}
	one, cancel := context.WithTimeout(t.load, t.patience)
	defer cancel()
	start := t.now()
	f, err := t.nodes[0].Following(one)
	end := t.now()
	t.mu.Lock()
	news := t.tells(f, err)
	t.mu.Unlock()
	received, sent := int64(-1), int64(-1)
	if news { // what a mark also says: asked for after the poll, which it must not make longer
		received, sent = t.moved()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil && t.load.Err() != nil || t.fresh.life != life || t.fresh.down || t.fresh.ended > 0 {
		return t.fresh.ended > 0
	}
	t.saw(start, end, f, err, received, sent)
	return t.fresh.ended > 0
}

// target is the height that the node is to come to; −1: not known yet.
func (t *syncTrial) target(f system.Following) int64 {
	if t.attached() {
		return f.Target
	}
	return t.chain.Height
}

// percentOf is a height in percent of the target.
func percentOf(height, target int64) int64 {
	if target <= 0 {
		return 0
	}
	return 100 * min(height, target) / target
}

// has says how far an answer shows the node: with the whole chain, and with all
// that subscribes to it. Of one that is attached to, its own word counts.
func (t *syncTrial) has(f system.Following) (chain, serve bool) {
	if t.attached() {
		return f.Synced, f.Synced && (f.Indexed < 0 || f.Indexed >= f.Height)
	}
	chain = f.Height >= t.chain.Height && f.Tip == t.chain.Tip
	return chain, chain && (f.Indexed < 0 || f.Indexed >= t.chain.Height)
}

// tells reports whether an answer leaves a mark. The lock is the caller's.
func (t *syncTrial) tells(f system.Following, err error) bool {
	n := &t.fresh
	if err != nil {
		return n.silent == nil
	}
	chain, serve := t.has(f)
	return percentOf(f.Height, t.target(f)) > n.percent || f.Height > 0 && n.first == 0 || chain && n.chain == 0 || serve && n.serve == 0 ||
		f.Trouble != "" && f.Trouble != n.trouble || !n.polled
}

// saw takes the answer of a poll. The lock is the caller's.
func (t *syncTrial) saw(start, end time.Duration, f system.Following, err error, received, sent int64) {
	n := &t.fresh
	mark := t.tells(f, err)
	if err == nil && f.Height > 0 && !n.polled { // it may have happened while the node was being started
		n.asked = t.released
	}
	n.gap = max(n.gap, end-n.asked)
	if err != nil {
		n.silent = err
		if mark {
			t.mark(start, end, n.last, received, sent, classSilent+": "+shorten(err))
		}
		return
	}
	before := n.last
	if !n.polled {
		before = system.Following{Indexed: -1}
		n.opening = f.Height
	}
	news := f.Height > before.Height || f.Indexed > before.Indexed
	n.silent, n.last, n.polled = nil, f, true
	n.height, n.indexed, n.trouble = max(0, f.Height), f.Indexed, f.Trouble
	n.highest, n.connected = max(n.highest, n.height), max(n.connected, f.Connected)
	chain, serve := t.has(f)
	if n.first == 0 && n.height > 0 && (!t.attached() || n.height > n.opening || chain) {
		n.first, n.opening = end, n.height
	}
	if chain && n.chain == 0 {
		n.chain = end
	}
	if serve && n.serve == 0 {
		n.serve, n.received = end, received
	}
	if mark {
		t.mark(start, end, f, received, sent, f.Trouble)
		n.percent = max(n.percent, percentOf(n.height, t.target(f)))
	}
	n.asked = start
	if news {
		n.progress = end
		if n.stalled {
			n.stalled = false
			t.event("node", "stall passed", t.names[0], end, 0)
		}
	}
	switch {
	case n.chain > 0 && n.serve > 0:
		n.end(end, record.OK, "")
	case !t.attached() && f.Height >= t.chain.Height && !chain:
		t.strayed(end, f)
	default:
		n.astray = 0
	}
	t.reached()
	t.wake()
}

// strays is how many answers in turn have to tell another tip at the height of the
// chain's before the node is taken at its word: height and tip of one answer may be
// from either side of a block.
const strays = 3

// strayed notes that a node is at the right height with another tip. The lock is
// the caller's.
func (t *syncTrial) strayed(end time.Duration, f system.Following) {
	n := &t.fresh
	if n.astray == 0 {
		n.wrong = end
	}
	if n.astray++; n.astray < strays {
		return
	}
	t.event("violation", "wrong chain", fmt.Sprintf("%s: at height %d its tip is %q, that of the chain is %q at %d", t.names[0], f.Height, f.Tip, t.chain.Tip, t.chain.Height), n.wrong, 0)
	n.end(n.wrong, record.WrongBytes, "")
}

// mark keeps what a poll told. The lock is the caller's.
func (t *syncTrial) mark(start, end time.Duration, f system.Following, received, sent int64, trouble string) {
	_, serve := t.has(f)
	t.marks = append(t.marks, record.Mark{
		Before: min(start, t.fresh.asked), Start: start, End: end, Verified: max(0, f.Height), Written: max(-1, f.Indexed),
		Received: received, Sent: sent, Peers: max(-1, f.Connected), Complete: serve, Trouble: trouble,
	})
}

// judge decides about the node by the clock, and says whether the trial's load is
// over; if not, when to judge again. The lock is the caller's.
func (t *syncTrial) judge(now time.Duration) (over bool, next time.Duration) {
	n := &t.fresh
	if n.ended > 0 {
		return true, now
	}
	limit := t.released + t.deadline
	if now >= limit {
		t.decide(now)
		return true, now
	}
	next = limit
	if n.down || n.told == 0 && !t.attached() { // its patience begins when it runs
		return false, next
	}
	if !n.stalled {
		patient := n.progress + t.stall
		if now < patient {
			return false, min(next, patient)
		}
		n.stalled = true
		detail := t.names[0]
		if why := n.why(); why != "" {
			detail += ": " + why
		}
		t.event("node", "stalled", detail, now, 0)
	}
	if t.pending > 0 {
		return false, next
	}
	if now < t.hope {
		return false, min(next, t.hope)
	}
	t.decide(now)
	return true, now
}

// decide ends a node that has come to a standstill, or to its deadline.
func (t *syncTrial) decide(at time.Duration) {
	n := &t.fresh
	switch {
	case t.cutOff():
		n.end(at, record.Cancelled, classCut)
	case !n.stalled:
		n.end(at, record.Deadline, "")
	case n.silent != nil && !errors.Is(n.silent, context.DeadlineExceeded):
		outcome, class, _ := outcomeOf(n.silent, nil)
		n.end(at, outcome, class)
	default:
		n.end(at, record.Stalled, n.why())
	}
}
