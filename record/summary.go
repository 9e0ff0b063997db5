package record

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

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
// otherClasses.
const maxClasses = 1000

// otherClasses is the class of everything after the first thousand distinct classes of a
// [Summary].
const otherClasses = "(other classes)"

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
		name = otherClasses
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

// Histograms count nanoseconds in buckets of three significant figures: a value read back
// differs from the recorded one by at most 0.1 %; values below a microsecond are exact.
// Values above maxTracked are counted as overflow, not clamped: a quantile among them is
// +Inf.
const (
	maxTracked         = time.Hour
	significantFigures = 3
)

// histogram is a dense HDR histogram of nanoseconds (270 kB) and the number of values
// above its range.
type histogram struct {
	h    *hdrhistogram.Histogram
	over int64
}

func newHistogram() *histogram {
	return &histogram{h: hdrhistogram.New(1, int64(maxTracked), significantFigures)}
}

// record counts one value; a negative one counts as 0.
func (h *histogram) record(ns int64) {
	if ns > int64(maxTracked) {
		h.over++
		return
	}
	// It cannot fail: the range was checked above.
	_ = h.h.RecordValue(max(ns, 0))
}

// count returns the number of values.
func (h *histogram) count() int64 { return h.h.TotalCount() + h.over }

// decode adds a stored histogram: HdrHistogram V2, compressed, in base64.
func (h *histogram) decode(hdr string, over int64) error {
	p, err := hdrhistogram.DecodePacked([]byte(hdr))
	if err != nil {
		return fmt.Errorf("histogram: %w: %w", ErrCorrupt, err)
	}
	if dropped := p.MergeInto(h.h); dropped != 0 {
		return fmt.Errorf("histogram: %w: %d values out of range", ErrCorrupt, dropped)
	}
	h.over += over
	return nil
}

// each yields every bucket's value (seconds) and count, in ascending order. Overflow comes last, as
// +Inf.
func (h *histogram) each(yield func(seconds float64, count int64) bool) {
	for _, b := range h.h.Distribution() {
		if b.Count > 0 && !yield(float64(b.From)/float64(time.Second), b.Count) {
			return
		}
	}
	if h.over > 0 {
		yield(math.Inf(1), h.over)
	}
}

// quantile returns the smallest recorded value (seconds) that at least the share q of all
// values do not exceed: the ⌈q·n⌉-th in order. NaN without values; +Inf above maxTracked.
func (h *histogram) quantile(q float64) float64 {
	if !(q >= 0 && q <= 1) {
		return math.NaN()
	}
	rank := max(int64(math.Ceil(q*float64(h.count()))), 1)
	var seen int64
	for v, n := range h.each {
		if seen += n; seen >= rank {
			return v
		}
	}
	return math.NaN()
}

// windowNs is the width of a window: a second.
const windowNs = int64(1e9)

// Window is what happened in one second of a trial.
type Window struct {
	Second   int64              `db:"second"`   // begins this many seconds after the epoch
	Outcomes [numOutcomes]int64 `db:"outcomes"` // operations that ended in it, by Outcome
	// Bytes are the body bytes received in it. An operation's bytes are spread evenly from
	// its first byte to its last, so that a long transfer does not appear as a burst at its
	// end; the sum over all windows is exact.
	Bytes int64 `db:"bytes"`
}

// maxSpread is the largest number of windows over which the bytes of an operation are spread;
// those of a longer operation all count in its last window.
const maxSpread = 24 * 3600

// windower accumulates what has to be added to the stored windows of a trial.
type windower map[int64]*Window // by second

func (w windower) at(second int64) *Window {
	o := w[second]
	if o == nil {
		o = &Window{Second: second}
		w[second] = o
	}
	return o
}

func (w windower) add(op *Op) {
	if op.Kind == OpWarmup {
		return
	}
	end := w.at(floorDiv(op.LastByte, windowNs))
	end.Outcomes[op.Outcome]++
	if op.Bytes != 0 {
		w.spread(op, end)
	}
}

// spread adds the operation's bytes to the windows from its first byte (or its start, if it
// has none) to its last.
func (w windower) spread(op *Op, end *Window) {
	from := cmp.Or(op.FirstByte, op.Start)
	first := floorDiv(from, windowNs)
	span := op.LastByte - from
	if first >= end.Second || end.Second-first > maxSpread {
		end.Bytes += op.Bytes
		return
	}
	var given int64
	for second := first; second < end.Second; second++ {
		share := float64((second+1)*windowNs-from) / float64(span)
		upTo := min(int64(math.Round(share*float64(op.Bytes))), op.Bytes)
		w.at(second).Bytes += upTo - given
		given = upTo
	}
	end.Bytes += op.Bytes - given
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// windowTable adds written rows to existing ones.
var windowTable = newTable[Window]("windows", "second", "trial, ", "ON CONFLICT (trial, second) DO UPDATE SET "+
	regexp.MustCompile(`\w+`).ReplaceAllString(windowSums, "$0 = $0 + excluded.$0"))

var windowSums = "bytes, " + strings.ReplaceAll(strings.Join(outcomeNames[:], ", "), "-", "_")

// Windows streams the seconds of a trial in which something happened, in order and in constant
// memory. After an error it ends. While the trial runs, past windows can still grow: by bytes
// of a long transfer or late operations.
func (r *Reader) Windows(trial int64) iter.Seq2[Window, error] {
	return stream(r, windowTable, trial, math.MinInt64)
}
