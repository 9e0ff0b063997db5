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
	Node int `db:"node"` // index into the trial's nodes, see DetailRole
	// start of the poll of this node whose mark this follows, since the trial's epoch; the node's start
	// when there was none
	Before   time.Duration `db:"before_ns"`
	Start    time.Duration `db:"start_ns"` // of the poll that reported it
	End      time.Duration `db:"end_ns"`
	Verified int64         `db:"verified"`           // bytes of the content that the node has and has checked
	Written  int64         `db:"written" none:"-1"`  // of them, on its disk by its word; −1: it does not report it
	Received int64         `db:"received" none:"-1"` // payload bytes, duplicates included; −1 likewise
	Sent     int64         `db:"sent" none:"-1"`     // payload bytes sent; −1 likewise
	Peers    int           `db:"peers" none:"-1"`    // connected; −1 likewise
	Complete bool          `db:"complete"`           // the node says that it has all
	Trouble  string        `db:"trouble"`            // why it cannot go on, in its own words
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

var markTable = newTable[Mark]("marks", "seq", "trial, seq, ", "")

// Marks reads a trial's marks in the order in which they were recorded, in
// constant memory. After an error it ends.
func (r *Reader) Marks(trial int64) iter.Seq2[Mark, error] { return stream(r, markTable, trial, -1) }
