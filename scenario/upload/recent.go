package upload

import (
	"slices"
	"time"

	"github.com/plimsoll-project/plimsoll/stats"
)

// recentTimes are the times that it took lately to store an object. It keeps so
// many that their median is known well, and not more.
type recentTimes struct {
	window time.Duration // 0: none are kept
	times  []recentTime
	every  int // each so many is kept; 0: each
	passed int
}

type recentTime struct{ at, took time.Duration }

const recentMost = 4096

func (r *recentTimes) add(at, took time.Duration) {
	if r.window <= 0 {
		return
	}
	if r.passed++; r.passed < r.every {
		return
	}
	r.passed = 0
	r.times = append(r.times, recentTime{at, took})
	if len(r.times) < recentMost {
		return
	}
	r.prune(at)
	if len(r.times) > recentMost/2 {
		kept := r.times[:0]
		for i := 0; i < len(r.times); i += 2 {
			kept = append(kept, r.times[i])
		}
		r.times, r.every = kept, 2*max(1, r.every)
	} else if len(r.times) < recentMost/8 {
		r.every /= 2
	}
}

func (r *recentTimes) prune(at time.Duration) {
	r.times = slices.DeleteFunc(r.times, func(x recentTime) bool { return x.at < at-r.window })
}

// median in seconds; 0: there is none.
func (r *recentTimes) median(at time.Duration) float64 {
	r.prune(at)
	if len(r.times) == 0 {
		return 0
	}
	took := make([]float64, len(r.times))
	for i, x := range r.times {
		took[i] = x.took.Seconds()
	}
	return stats.Median(took)
}
