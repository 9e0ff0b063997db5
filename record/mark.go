package record

import (
	"iter"
	"time"
)

// Mark is the progress of one node of a swarm when it was polled. The reported state is of
// some time between the start and the end of the poll; what it reports for the first time
// happened after Before, the start of the last poll that did not report it yet.
//
// In the scenario sync there is only the fresh node. Verified is the height of its chain, in
// blocks, and Written the height that all subscribers of the chain have reached.
//
// Not every poll yields a mark: only those in which a further percent of the content was
// verified, something was completed, or trouble began.
type Mark struct {
	Node int `db:"node"` // index into the trial's nodes, see DetailSeeder
	// start of the poll of this node whose mark this follows, since the trial's epoch; the node's start
	// when there was none
	Before   time.Duration `db:"before_ns"`
	Start    time.Duration `db:"start_ns"` // of the poll that reported it
	End      time.Duration `db:"end_ns"`
	Verified int64         `db:"verified"`           // bytes of the content that the node has and has checked
	Written  int64         `db:"written" none:"-1"`  // in sync, see above; −1: not reported
	Received int64         `db:"received" none:"-1"` // payload bytes, including duplicates; −1: not reported
	Sent     int64         `db:"sent" none:"-1"`     // payload bytes sent; −1: not reported
	Peers    int           `db:"peers" none:"-1"`    // connected; −1: not reported
	Complete bool          `db:"complete"`           // the node reports that it has everything
	Trouble  string        `db:"trouble"`            // why it cannot continue, in its own words
}

// Marks records marks, as far as possible in the order in which their polls ended. They are
// written within a second.
func (w *TrialWriter) Marks(marks []Mark) error {
	return w.guarded(func() error { return putAll(w.run, markTable, marks, w.trial.ID) })
}

var markTable = newTable[Mark]("marks", "seq", "trial, ", "")

// Marks reads a trial's marks in the order in which they were recorded, in
// constant memory. After an error it ends.
func (r *Reader) Marks(trial int64) iter.Seq2[Mark, error] { return stream(r, markTable, trial, 0) }
