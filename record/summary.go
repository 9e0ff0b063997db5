package record

import (
	"maps"
	"sync"

	"github.com/plimsoll-project/plimsoll/stats"
)

// Measure is a time that a [Summary] keeps as a histogram.
type Measure int

const (
	// TTFB is the time from the intended start to the first byte of the body.
	// It covers operations that were ok, and those cut off by the experiment (starved,
	// deadline, in-flight, cancelled) after their first byte had arrived.
	TTFB Measure = iota
	// Duration is the time from the intended start to the last byte, of
	// operations that were ok.
	Duration
	numMeasures
)

var measureNames = [...]string{"ttfb", "duration"}

// String is the measure's name in run.db.
func (m Measure) String() string { return measureNames[m] }

// maxClasses limits the distinct classes that a summary counts; further ones count as
// OtherClasses.
const maxClasses = 1000

// OtherClasses is the class of everything after the first thousand distinct classes of a
// [Summary].
const OtherClasses = "(other classes)"

// Summary accumulates operations in constant memory (1.1 MB): counts, bytes
// and histograms. It is safe for concurrent use.
//
// Failures of the server are in no histogram: a fast refusal is not a fast answer.
// Operations cut off by the experiment are censored: they took at least as long as they were
// watched. [Summary.Quantile] ignores them and is therefore too low if there are many;
// [Summary.KaplanMeier] takes them into account.
type Summary struct {
	mu       sync.Mutex
	counts   Counts
	hist     [numMeasures]*histogram
	censored [numMeasures]*histogram
}

// Counts are the plain numbers of a [Summary].
type Counts struct {
	Ops      int64              `db:"ops"`
	Outcomes [numOutcomes]int64 // indexed by Outcome
	Classes  map[string]int64   // of operations that have one
	Bytes    int64              `db:"bytes"`    // body bytes of all operations
	OKBytes  int64              `db:"ok_bytes"` // body bytes of those that were ok
	// InFlightBytes are the body bytes received by operations that were in flight at the
	// end of the window: unfinished work done in the window.
	InFlightBytes int64 `db:"in_flight_bytes"`
	First         int64 `db:"first_ns"` // earliest start, nanoseconds since the epoch
	Last          int64 `db:"last_ns"`  // latest last byte, nanoseconds since the epoch
}

// OutcomeMap returns Outcomes by name, without zeros.
func (c Counts) OutcomeMap() map[string]int64 {
	m := make(map[string]int64)
	for o, n := range c.Outcomes {
		if n != 0 {
			m[Outcome(o).String()] = n
		}
	}
	return m
}

// Finished returns the number of operations that ended by themselves, the denominator of the
// success rate.
func (c Counts) Finished() int64 { return SumOutcomes(c.OutcomeMap(), Outcome.Finished) }

// NewSummary returns an empty summary.
func NewSummary() *Summary {
	s := new(Summary)
	for m := range numMeasures {
		s.hist[m], s.censored[m] = newHistogram(), newHistogram()
	}
	return s
}

// Ops adds operations and never fails.
func (s *Summary) Ops(ops []Op) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range ops {
		s.add(&ops[i])
	}
	return nil
}

func (s *Summary) add(op *Op) {
	if op.Kind == OpWarmup {
		return
	}
	c := &s.counts
	if c.Ops == 0 || op.Start < c.First {
		c.First = op.Start
	}
	if c.Ops == 0 || op.LastByte > c.Last {
		c.Last = op.LastByte
	}
	c.Ops++
	c.Outcomes[op.Outcome]++
	c.Bytes += op.Bytes
	if op.Class != "" {
		c.class(op.Class, 1)
	}

	switch {
	case op.Outcome == OK:
		c.OKBytes += op.Bytes
		if op.FirstByte != 0 {
			s.hist[TTFB].record(op.FirstByte - op.Intended)
		}
		s.hist[Duration].record(op.LastByte - op.Intended)
	case !op.Outcome.Finished():
		if op.Outcome == InFlight {
			c.InFlightBytes += op.Bytes
		}
		if op.FirstByte != 0 {
			s.hist[TTFB].record(op.FirstByte - op.Intended)
		} else if op.Kind.receives() {
			s.censored[TTFB].record(op.LastByte - op.Intended)
		}
		s.censored[Duration].record(op.LastByte - op.Intended)
	}
}

func (c *Counts) class(name string, n int64) {
	if c.Classes == nil {
		c.Classes = make(map[string]int64)
	}
	if _, ok := c.Classes[name]; !ok && len(c.Classes) >= maxClasses {
		name = OtherClasses
	}
	c.Classes[name] += n
}

// Counts returns the numbers so far.
func (s *Summary) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.counts
	c.Classes = maps.Clone(c.Classes)
	return c
}

// Count returns the number of operations in the measure's histogram.
func (s *Summary) Count(m Measure) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hist[m].count()
}

// Quantile returns the quantile q of the measure in seconds: the smallest value that at least
// the share q of its operations do not exceed. NaN without operations, +Inf above an hour.
// Censored operations are ignored.
func (s *Summary) Quantile(m Measure, q float64) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hist[m].quantile(q)
}

// KaplanMeier returns the quantile q of the measure in seconds, taking censored operations
// into account: the smallest time by which the share q of operations was done, estimated by
// the product limit (Kaplan and Meier 1958). It equals [Summary.Quantile] if none were
// censored, and is +Inf if the data do not reach that far: more than 1−q may have taken
// longer than they were watched.
func (s *Summary) KaplanMeier(m Measure, q float64) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.censored[m].count() == 0 {
		return s.hist[m].quantile(q)
	}
	var all []stats.Lifetime
	for happened, h := range map[bool]*histogram{true: s.hist[m], false: s.censored[m]} {
		for t, n := range h.each {
			all = append(all, stats.Lifetime{Time: t, Happened: happened, N: n})
		}
	}
	return stats.ProductLimit(all, q)
}
