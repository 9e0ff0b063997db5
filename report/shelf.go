package report

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
)

// stored is when an object was stored, and how long that took.
type stored struct {
	at, took float64
	size     int64
	retried  bool // it needed several attempts, and took is of the last
}

// shelf is what became of the objects of a trial, those stored in the order in
// which they were.
type shelf struct {
	// Of more objects than [shelfMost] these are some, drawn by their index: each stands
	// for as many as there are to one of them.
	accepted, durable []stored
	bytes             []int64     // of the accepted ones so far
	slow              [2][]stored // of accepted and durable those that took longest, to be under way in a stall; only where they are some
	sparse            bool        // accepted or durable are some
	full, fullBytes   int64       // objects durable that were put, and their bytes
	fullAt, takenAt   float64     // latest of durable, and of accepted; 0: none
	settled           bool        // some were seen to become durable
	unstored          []attempt
	noRoom            int64  // of them, those that the system had no room for
	whyNoRoom         string // of the latest
	count             Objects
	first             float64 // the first put, also one in vain, began; 0: not known
	last              float64 // latest moment
	object            int64   // highest index
}

// shelved reads the jobs of a trial. settle is how long an object may take from
// accepted to durable; until is the end of what was watched.
func (in *input) shelved(trial int64, settle, until float64) (*shelf, error) {
	s := &shelf{object: -1, last: until}
	if in.jobs == nil {
		return s, nil
	}
	var accepted, durables someOf
	slow := [2]extremes{longest(), longest()}
	var open []float64 // accepted at, not durable, and lately
	for j, err := range in.jobs(trial) {
		if err != nil {
			return nil, fmt.Errorf("report: %w", err)
		}
		s.object = max(s.object, j.Object)
		c := &s.count
		c.Attempts += int64(j.Attempts)
		if j.Attempts > 1 {
			c.Retried++
		}
		if began := j.Began.Seconds(); j.Attempts > 0 && began > 0 && (s.first == 0 || began < s.first) {
			s.first = began
		}
		if j.Adopted {
			c.Adopted++
		}
		at, durable := j.Accepted.Seconds(), j.Durable.Seconds()
		s.last = max(s.last, at, durable, j.Began.Seconds())
		switch j.State {
		case record.JobPutting, record.JobWaiting, record.JobFailed, record.JobRefused:
			s.unstored = append(s.unstored, attempt{j.Began.Seconds(), j.Size, j.State == record.JobFailed || j.State == record.JobRefused, j.Attempts > 1})
			if strings.Contains(j.Error, system.ErrQuota.Error()) {
				s.noRoom++
				s.whyNoRoom = j.Error
			}
		}
		switch j.State {
		case record.JobPutting:
			c.Putting++
		case record.JobWaiting:
			c.Waiting++
		case record.JobFailed:
			c.Failed++
		case record.JobRefused:
			c.Refused++
		case record.JobUnreadable:
			c.Unreadable++
		case record.JobMissing:
			c.Missing++
		case record.JobAccepted, record.JobDurable:
			c.Accepted++
			c.Bytes += j.Size
			took := at - j.Began.Seconds()
			if j.Adopted {
				took = math.NaN() // its times are those of the finding
			}
			x := stored{at, took, j.Size, j.Attempts > 1}
			s.takenAt = max(s.takenAt, at)
			accepted.add(j.Object, x)
			slow[0].add(x)
			if j.State == record.JobAccepted {
				if open = append(open, at); len(open) >= shelfMost && len(open)&(len(open)-1) == 0 {
					open = slices.DeleteFunc(open, func(at float64) bool {
						if s.last-at > settle {
							c.NotDurable++
							return true
						}
						return false
					})
				}
				continue
			}
			c.Durable++
			s.settled = true
			if !j.Adopted {
				x = stored{durable, durable - j.Began.Seconds(), j.Size, j.Attempts > 1}
				durables.add(j.Object, x)
				s.full, s.fullBytes, s.fullAt = s.full+1, s.fullBytes+j.Size, max(s.fullAt, durable)
				slow[1].add(x)
				if durable-at > settle {
					c.Late++
				}
			}
		}
	}
	if err := in.firstPut(trial, s); err != nil {
		return nil, err
	}
	for _, o := range open {
		if s.last-o > settle {
			s.count.NotDurable++
		}
	}
	s.accepted, s.durable, s.sparse = accepted.kept, durables.kept, accepted.skip+durables.skip > 0
	byTime := func(a, b stored) int { return cmp.Compare(a.at, b.at) }
	if s.sparse {
		for i := range s.slow {
			s.slow[i] = slow[i].all()
		}
	}
	slices.SortStableFunc(s.accepted, byTime)
	slices.SortStableFunc(s.durable, byTime)
	total := int64(0)
	for _, x := range s.accepted {
		total += x.size
		s.bytes = append(s.bytes, total)
	}
	return s, nil
}

// shelfMost is how many objects of a load test are kept, so that the memory of a
// report does not grow with them. The times of an eighth of a million tell a median
// to a few thousandths of the spread.
const shelfMost = 1 << 17

// someOf keeps some of many objects: those whose index, well mixed, ends in skip
// zeros, so that no pattern in the sizes of a data set agrees with the choice.
type someOf struct {
	kept  []stored
	index []int64 // of those kept
	skip  int
}

func (d *someOf) add(object int64, x stored) {
	if !d.drawn(object) {
		return
	}
	d.kept, d.index = append(d.kept, x), append(d.index, object)
	for len(d.kept) > shelfMost {
		d.skip++
		n := 0
		for i, o := range d.index {
			if d.drawn(o) {
				d.kept[n], d.index[n] = d.kept[i], o
				n++
			}
		}
		d.kept, d.index = d.kept[:n], d.index[:n]
	}
}

// drawn mixes an index by the finalizer of SplitMix64 (Steele, Lea and Flood, 2014).
func (d *someOf) drawn(object int64) bool {
	z := uint64(object) + 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	z ^= z >> 31
	return bits.TrailingZeros64(z) >= d.skip
}

// slowMost is how many objects are kept of those that took longest: many more than
// are under way at once.
const slowMost = 1 << 12

// extremes are so many objects that come first by an order.
type extremes struct {
	most  int
	order func(a, b stored) int
	kept  []stored // up to twice as many
}

func longest() extremes {
	return extremes{most: slowMost, order: func(a, b stored) int { return -cmp.Compare(a.took, b.took) }} // those of unknown time come last
}

func (e *extremes) add(x stored) {
	if e.kept = append(e.kept, x); len(e.kept) >= 2*e.most {
		e.kept = e.all()
	}
}

func (e *extremes) all() []stored {
	slices.SortStableFunc(e.kept, e.order)
	return e.kept[:min(len(e.kept), e.most)]
}

// weight is how many objects, and bytes for one byte, an accepted one that was kept stands for.
func (s *shelf) weight() (objects, bytes float64) {
	if !s.sparse || len(s.accepted) == 0 {
		return 1, 1
	}
	return float64(s.count.Accepted) / float64(len(s.accepted)), float64(s.count.Bytes) / float64(max(1, s.bytes[len(s.bytes)-1]))
}

// lastAccepted is when the last object was accepted.
func (s *shelf) lastAccepted() float64 {
	if s.sparse {
		return s.takenAt
	}
	return s.accepted[len(s.accepted)-1].at
}

// firstPut corrects when the first put of a trial began: of an object that was tried
// again a job tells the latest attempt alone. A put that began before all of those was
// over, and is recorded, a deadline after them at the latest.
func (in *input) firstPut(trial int64, s *shelf) error {
	if s.count.Retried == 0 || in.ops == nil {
		return nil
	}
	until := math.Inf(1)
	if in.plan.Deadline > 0 {
		until = s.first + in.plan.Deadline
	}
	for op, err := range in.ops(trial) {
		if err != nil {
			return fmt.Errorf("report: %w", err)
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

// attempt is the latest one of an object that is not stored.
type attempt struct {
	began   float64
	size    int64
	over    bool // the object was given up
	retried bool // it was not the first
}

// by is how many objects were accepted by a moment, and their bytes.
func (s *shelf) by(at float64) (objects int, bytes float64) {
	n, _ := slices.BinarySearchFunc(s.accepted, at, func(x stored, at float64) int {
		if x.at <= at {
			return -1
		}
		return 1
	})
	if n == 0 {
		return 0, 0
	}
	each, size := s.weight()
	return int(math.Round(each * float64(n))), size * float64(s.bytes[n-1])
}
