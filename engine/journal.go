package engine

import (
	"iter"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
)

// journal is the memory of a trial that goes on, kept in the record.
type journal struct {
	*record.TrialWriter
	read *record.Reader
}

var _ scenario.Journal = journal{}

// Earlier implements scenario.Journal.
func (j journal) Earlier() iter.Seq2[record.Job, error] { return j.read.Jobs(j.ID()) }

// EarlierOps implements scenario.Journal.
func (j journal) EarlierOps() iter.Seq2[record.Op, error] { return j.read.Ops(j.ID()) }

// EarlierPolls implements scenario.Journal.
func (j journal) EarlierPolls() iter.Seq2[record.Poll, error] { return j.read.Polls(j.ID()) }

// EarlierEvents implements scenario.Journal.
func (j journal) EarlierEvents() iter.Seq2[record.Event, error] { return j.read.EventsOf(j.ID()) }
