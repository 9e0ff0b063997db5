package record

import (
	"iter"
	"time"
)

// Mark is how far one node of a swarm was when it was asked. The state reported
// lies between the poll's start and its end; what it reports for the first time
// happened after Before, the start of the last poll that did not report it yet.
//
// In the scenario sync there is one node, the fresh one, and Verified is the height
// of its chain, in blocks, Written that up to which everything that subscribes to
// the chain has followed, Received and Sent what has crossed the node's link since
// it was started, in bytes of IP packets.
//
// Not every poll leaves a mark: those do in which a further percent of the
// content was verified, anything came to an end, or trouble began.
type Mark struct {
	Node int // index into the trial's nodes, see DetailRole
	// start of the poll of this node whose mark this follows, since the trial's epoch; the node's start when there was
	// none
	Before   time.Duration
	Start    time.Duration // of the poll that reported it
	End      time.Duration
	Verified int64  // bytes of the content that the node has and has checked
	Written  int64  // bytes of them that it says are on its disk; −1: it does not report it
	Received int64  // payload bytes received, duplicates included; −1: it does not report it
	Sent     int64  // payload bytes sent; −1 likewise
	Peers    int    // connected; −1 likewise
	Complete bool   // the node says that it has all
	Trouble  string // why it cannot go on, in its own words
}

// Marks records marks, in the order in which their polls ended as far as
// possible. They are written within a second.
func (w *TrialWriter) Marks(marks []Mark) error {
	return w.locked(func() error {
		for i := range marks {
			if err := put(w.run, markTable, &marks[i], w.trial.ID, w.marked); err != nil {
				return err
			}
			w.marked++
		}
		return nil
	})
}

var markTable = newTable("marks", "seq", "trial, seq, ",
	"node, before_ns, start_ns, end_ns, verified, written, received, sent, peers, complete, trouble", "",
	func(m *Mark) []any {
		return []any{
			&m.Node, &m.Before, &m.Start, &m.End, &m.Verified, optional[int64]{&m.Written, -1},
			optional[int64]{&m.Received, -1},
			optional[int64]{&m.Sent, -1}, optional[int]{&m.Peers, -1}, &m.Complete, &m.Trouble,
		}
	})

// Marks reads a trial's marks in the order in which they were recorded, in
// constant memory. After an error it ends.
func (r *Reader) Marks(trial int64) iter.Seq2[Mark, error] { return stream(r, markTable, trial, -1) }
