package report

import (
	"iter"
	"math"
	"runtime"
	"testing"

	"github.com/plimsoll-project/plimsoll/record"
)

// manyJobs are those of a load test of so many objects in an hour, four at a time,
// with sizes that repeat, and nothing from 30 to 40 minutes.
func manyJobs(n int64) iter.Seq2[record.Job, error] {
	return func(yield func(record.Job, error) bool) {
		step := 3000 / float64(n)
		for i := range n {
			at := float64(i+5) * step
			began := at - 4*step
			if at > 1800 {
				if at += 600; began > 1800 {
					began += 600
				}
			}
			if !yield(record.Job{Object: i, State: record.JobDurable, Attempts: 1, Size: 1000 * (1 + i%8), Began: dur(began), Accepted: dur(at), Durable: dur(at + 0.5)}, nil) {
				return
			}
		}
	}
}

// The memory of a report does not grow with the objects of a load test, and what it
// tells of many it tells as of few: sums exactly, all else by those that were drawn.
func TestShelfOfManyObjects(t *testing.T) {
	const n = 6 * shelfMost
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	in := &input{jobs: func(int64) iter.Seq2[record.Job, error] { return manyJobs(n) }}
	s, err := in.shelved(1, 7200, 90000)
	must(t, err)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if held := int64(after.HeapAlloc) - int64(before.HeapAlloc); held > 150*shelfMost {
		t.Errorf("%d MB are held of %d objects", held>>20, n)
	}
	if k := len(s.accepted); !s.sparse || k > shelfMost || k < shelfMost/3 || len(s.durable) != k {
		t.Errorf("%d accepted and %d durable objects are kept", k, len(s.durable))
	}
	if s.count.Accepted != n || s.count.Durable != n || s.count.Bytes != n*4500 || s.full != n || s.fullBytes != n*4500 {
		t.Errorf("counted %+v, %d of %d B durable", s.count, s.full, s.fullBytes)
	}
	if objects, bytes := s.by(1e9); objects != n || math.Abs(bytes-n*4500) > 1 {
		t.Errorf("%d objects and %v B were accepted in the end", objects, bytes)
	}
	for _, at := range []float64{300, 1500, 2100, 3000} {
		want := at
		if at > 1800 {
			want = max(1800, at-600)
		}
		objects, bytes := s.by(at)
		if part := want / 3000; math.Abs(float64(objects)/n-part) > 0.01 || math.Abs(bytes/(n*4500)-part) > 0.01 {
			t.Errorf("by %v s: %d objects and %v B, want %v of all", at, objects, bytes, part)
		}
	}
	// That polls go on for a day does not hide what was under way in the pause.
	for _, slow := range s.slow {
		if n := len(slow); n != slowMost {
			t.Errorf("%d of the slowest objects are kept", n)
		}
		if began := slow[0].at - slow[0].took; began > 1800 || slow[0].at < 2400 {
			t.Errorf("the slowest object was under way from %v s to %v s", began, slow[0].at)
		}
	}
	few := &input{jobs: func(int64) iter.Seq2[record.Job, error] { return manyJobs(1000) }}
	if s, err := few.shelved(1, 7200, 3700); err != nil || s.sparse || len(s.accepted) != 1000 || len(s.slow[0]) != 0 {
		t.Errorf("%v: of few objects all are kept: %+v", err, s.count)
	}
}
