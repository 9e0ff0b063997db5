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

// objects is what became of the objects of a trial.
type objects struct {
	accepted []object // in the order of acceptance: what memory grows with, 40 bytes each
	sum      []int64  // bytes of the accepted ones up to each
	states   map[record.JobState]int64

	n, touched, attempts, retried, adopted int64
	stored, bytes                          int64 // accepted, and their bytes
	notDurable, late                       int64 // not at their full redundancy in time
	noRoom                                 int64 // not stored because the system had no room
	full, fullAt, lastAt                   float64
	first, last                            float64 // the first put; the latest moment
}

// readObjects reads a trial's jobs. settle is how long an object may take to its full
// redundancy; until is the end of what was watched.
func readObjects(facts *record.Reader, trial int64, settle, deadline, until float64) (*objects, error) {
	s := &objects{states: map[record.JobState]int64{}, last: until}
	var open []float64 // accepted then, and not durable
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
		s.stored++
		s.bytes += j.Size
		s.lastAt = max(s.lastAt, at)
		x := object{at: at, took: at - began, settled: nan, size: j.Size}
		switch {
		case j.State == record.JobAccepted:
			open = append(open, at)
		case !j.Adopted:
			x.settled = full - began
			s.full, s.fullAt = s.full+float64(j.Size), max(s.fullAt, full)
			if full-at > settle {
				s.late++
			}
		}
		if j.Adopted {
			x.took = nan // its times are those of the finding
		}
		s.accepted = append(s.accepted, x)
	}
	for _, at := range open {
		if s.last-at > settle {
			s.notDurable++
		}
	}
	slices.SortStableFunc(s.accepted, func(a, b object) int { return cmp.Compare(a.at, b.at) })
	total := int64(0)
	for _, x := range s.accepted {
		total += x.size
		s.sum = append(s.sum, total)
	}
	return s, s.firstPut(facts, trial, deadline)
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

// by is how many objects were accepted by a moment, and their bytes.
func (s *objects) by(at float64) (objects int64, bytes float64) {
	n, _ := slices.BinarySearchFunc(s.accepted, at, func(x object, at float64) int {
		if x.at <= at {
			return -1
		}
		return 1
	})
	if n == 0 {
		return 0, 0
	}
	return int64(n), float64(s.sum[n-1])
}

// began is when the first put did.
func (s *objects) began() float64 {
	if s.first > 0 {
		return s.first
	}
	at := math.Inf(1)
	for _, x := range s.accepted {
		if !math.IsNaN(x.took) {
			at = min(at, x.at-x.took)
		}
	}
	return at
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
