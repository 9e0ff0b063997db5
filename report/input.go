package report

import (
	"iter"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
)

// input is what a report is computed from: the run directory's contents, with
// everything that grows with the number of operations or seconds left on disk
// and streamed.
type input struct {
	meta     map[string]string
	plan     planView
	raw      []byte // plan.json
	metrics  []record.Metric
	trials   []record.Trial
	links    []record.LinkCheck
	events   []record.Event
	windows  func(trial int64) iter.Seq2[record.Window, error]
	polls    func(trial int64) iter.Seq2[record.Poll, error] // nil: there are none
	jobs     func(trial int64) iter.Seq2[record.Job, error]
	ops      func(trial int64) iter.Seq2[record.Op, error] // for scenarios whose operations are few
	marks    func(trial int64) iter.Seq2[record.Mark, error]
	latest   func(trial int64, until time.Duration) (time.Duration, error) // the last that was recorded until then
	samples  func(trial int64) iter.Seq2[record.Sample, error]             // nil: there are none
	searches []record.Search
	name     string   // of the run directory
	sets     []string // --set arguments that it is judged again by
	written  bool     // a process has the run open for writing
	glance   bool     // the run is looked at again and again while it goes on
	err      error    // why something could not be read
}

// planView is what a report needs of a plan.
type planView struct {
	Hash, Scenario, Title, Question, Description string
	Seed                                         uint64
	Unapplied                                    []string // what of the experiment does not apply to attached systems
	Systems                                      []System
	Baseline                                     string
	Blocks                                       int
	Cells                                        []Cell
	Skipped                                      []SkippedCell // left out of the plan
	OpenLoop                                     bool          // arrivals of their own, not as fast as answers come
	Until                                        int           // not 0: repetitions may end after this many blocks
	Link                                         string        // in words, when it does not vary
	Imported                                     *experiment.Imported
	Gates                                        []string
	Deadline                                     float64 // of an operation, in seconds; 0: not known
}
