package upload

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
)

// object is one that the system accepted. Times are seconds since the trial's epoch;
// NaN: not known.
type object struct {
	at, took float64 // of the acceptance, and since its last put began
	settled  float64 // until its full redundancy
	size     int64
}

// mostObjects is how many objects are kept for medians and series: of more every
// second, fourth, eighth … What is summed is of all.
const mostObjects = 1 << 17

// objects is what became of the objects of a trial.
type objects struct {
	sample []object // of the accepted ones, in the order of acceptance
	step   int64    // objects for each of the sample
	states map[record.JobState]int64
	up     []stored // what was accepted up to each moment of a poll, in order of time

	n, touched, attempts, retried, adopted int64
	stored, bytes                          int64 // accepted, and their bytes
	notDurable, late                       int64 // not at their full redundancy in time
	noRoom                                 int64 // not stored because the system had no room
	full, fullAt, lastAt                   float64
	first, last                            float64 // the first put; the latest moment
	earliest                               float64 // the first put of an accepted object, by its job
}

// stored is what was accepted up to a moment.
type stored struct {
	at             float64
	objects        int64
	bytes, rounded float64 // file bytes, and those in whole sectors
}

// readObjects reads a trial's jobs. settle is how long an object may take to its full
// redundancy; moments are those at which sums are wanted, the last of them the end of
// what was watched; rounded is what an object of a size takes on the servers.
func readObjects(facts *record.Reader, trial int64, settle, deadline float64, moments []float64, rounded func(int64) int64) (*objects, error) {
	s := &objects{states: map[record.JobState]int64{}, step: 1, earliest: math.Inf(1)}
	for _, at := range moments {
		s.up = append(s.up, stored{at: at})
		s.last = max(s.last, at)
	}
	for j, err := range facts.Jobs(trial) {
		if err != nil {
			return nil, err
		}
		began, at, full := j.Began.Seconds(), j.Accepted.Seconds(), j.Durable.Seconds()
		s.n++
		s.states[j.State]++
		s.attempts += int64(j.Attempts)
		s.last = max(s.last, began, at, full)
		if j.Attempts > 0 {
			s.touched++
			if began > 0 && (s.first == 0 || began < s.first) {
				s.first = began
			}
		}
		if j.Attempts > 1 {
			s.retried++
		}
		if j.Adopted {
			s.adopted++
		}
		if j.State != record.JobAccepted && j.State != record.JobDurable {
			known := j.State != record.JobUnreadable && j.State != record.JobMissing
			if known && strings.Contains(j.Error, system.ErrQuota.Error()) {
				s.noRoom++
			}
			continue
		}
		x := object{at: at, took: at - began, settled: nan, size: j.Size}
		if j.State == record.JobDurable && !j.Adopted {
			x.settled = full - began
			s.full, s.fullAt = s.full+float64(j.Size), max(s.fullAt, full)
			if full-at > settle {
				s.late++
			}
		}
		if j.Adopted {
			x.took = nan // its times are those of the finding
		} else {
			s.earliest = min(s.earliest, began)
		}
		s.accept(x, rounded(j.Size))
	}
	for i := 1; i < len(s.up); i++ {
		s.up[i].objects += s.up[i-1].objects
		s.up[i].bytes += s.up[i-1].bytes
		s.up[i].rounded += s.up[i-1].rounded
	}
	slices.SortStableFunc(s.sample, func(a, b object) int { return cmp.Compare(a.at, b.at) })
	if err := s.overdue(facts, trial, settle); err != nil {
		return nil, err
	}
	return s, s.firstPut(facts, trial, deadline)
}

// accept counts an object from the first moment on that has it.
func (s *objects) accept(x object, rounded int64) {
	if s.stored%s.step == 0 {
		s.sample = append(s.sample, x)
	}
	if len(s.sample) > mostObjects {
		for i := range s.sample[:mostObjects/2+1] {
			s.sample[i] = s.sample[2*i]
		}
		s.sample, s.step = s.sample[:mostObjects/2+1], 2*s.step
	}
	s.stored++
	s.bytes += x.size
	s.lastAt = max(s.lastAt, x.at)
	if i, _ := slices.BinarySearchFunc(s.up, x.at, func(m stored, at float64) int { return cmp.Compare(m.at, at) }); i < len(s.up) {
		s.up[i].objects++
		s.up[i].bytes += float64(x.size)
		s.up[i].rounded += float64(rounded)
	}
}

// overdue counts the objects that never came to their full redundancy, and had time.
func (s *objects) overdue(facts *record.Reader, trial int64, settle float64) error {
	if s.states[record.JobAccepted] == 0 {
		return nil
	}
	for j, err := range facts.Jobs(trial) {
		if err != nil {
			return err
		}
		if j.State == record.JobAccepted && s.last-j.Accepted.Seconds() > settle {
			s.notDurable++
		}
	}
	return nil
}

// firstPut corrects when the first put began: of an object that was tried again its job
// knows the last attempt alone. An earlier one ended a deadline later at most.
func (s *objects) firstPut(facts *record.Reader, trial int64, deadline float64) error {
	if s.retried == 0 {
		return nil
	}
	until := math.Inf(1)
	if deadline > 0 {
		until = s.first + deadline
	}
	for op, err := range facts.Ops(trial) {
		if err != nil {
			return err
		}
		if began := float64(op.Start) / 1e9; op.Kind == record.OpPut && began < s.first {
			s.first = began
		}
		if float64(op.LastByte)/1e9 > until {
			break
		}
	}
	return nil
}

// by is what was accepted by a moment of a poll.
func (s *objects) by(at float64) stored {
	i, found := slices.BinarySearchFunc(s.up, at, func(m stored, at float64) int { return cmp.Compare(m.at, at) })
	if !found {
		panic("upload: what was accepted is known at the moments of polls only")
	}
	return s.up[i]
}

// began is when the first put did.
func (s *objects) began() float64 {
	if s.first > 0 {
		return s.first
	}
	return s.earliest
}

// times are those that are known, in the order of acceptance.
func times(all []object, of func(object) float64) (known []float64) {
	for _, x := range all {
		if v := of(x); !math.IsNaN(v) {
			known = append(known, v)
		}
	}
	return known
}

func accepting(x object) float64 { return x.took }
func settling(x object) float64  { return x.settled }
