package upload

import (
	"slices"
	"time"

	"github.com/plimsoll-project/plimsoll/stats"
)

// recentTimes are the times that it took to store an object in the last window: the latest
// recentMost of them.
type recentTimes struct {
	window time.Duration // 0: none are kept
	times  []recentTime
}

type recentTime struct{ at, took time.Duration }

const recentMost = 4096

func (r *recentTimes) add(at, took time.Duration) {
	if r.window <= 0 {
		return
	}
	if len(r.times) >= 2*recentMost {
		r.times = slices.Delete(r.times, 0, len(r.times)-recentMost+1)
	}
	r.times = append(r.times, recentTime{at, took})
}

// median in seconds; 0: there is none.
func (r *recentTimes) median(at time.Duration) float64 {
	r.times = slices.DeleteFunc(r.times, func(x recentTime) bool { return x.at < at-r.window })
	if len(r.times) == 0 {
		return 0
	}
	var took []float64
	for _, x := range r.times[max(0, len(r.times)-recentMost):] {
		took = append(took, x.took.Seconds())
	}
	return stats.Median(took)
}
