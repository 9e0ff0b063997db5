package findings

import (
	"fmt"
	"math"
	"slices"

	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/stats"
)

// Moving is when something moved in the trials of one cell, while operations were
// under way all the time.
type Moving struct {
	Name       string
	Resolution float64  // seconds: shorter pauses cannot be seen
	Pauses     []Silent // between two signs of movement, all trials together
}

// Silent is a time in which nothing moved.
type Silent struct {
	Trial    int64
	From, To float64 // seconds since the trial began
}

const (
	// leastPauses are needed to know what is usual.
	leastPauses = 20
	// longPause times what 95 % of the pauses are below is none of them.
	longPause = 5
	// leastSilent is how many times the resolution a stall lasts at least.
	leastSilent = 3
	stallsNamed = 3
)

// LongPause is from where on a pause, in the unit of those given, is none of the
// usual ones: five times what 95 % are below, and half as much again as the longest of so many would be, with a chance of
// 1 in 100, were their logarithms normal with the median and the 95 % that they
// have; exponential pauses stay far below it. +Inf: there are too few to tell.
func LongPause(pauses []float64) float64 {
	n := len(pauses)
	if n < leastPauses {
		return math.Inf(1)
	}
	seen := slices.Sorted(slices.Values(pauses))
	half, most := stats.Median(seen), seen[n*95/100]
	limit := longPause * most
	if half > 0 {
		limit = max(limit, 1.5*half*math.Pow(most/half, math.Sqrt(2*math.Log(100*float64(n)))/1.645))
	}
	return limit
}

// Stalls finds times in which nothing moved though there was something to move.
func Stalls(all []Moving) []Finding {
	f := Finding{Rule: "stalled", Tone: Warn, Title: "Nothing moved for a while",
		Text: fmt.Sprintf("Operations were under way, and for longer than is usual in these trials no byte came and none ended. What is usual the run itself tells: more than %d times what 95 %% of the pauses are below, and %d times what can be seen. Medians hide it; the slowest operations and the throughput have it.", longPause, leastSilent),
		Try:  "See what happened at that moment: the system's logs, its CPU and its disk in the figure over time, a garbage collection, the machine's other work."}
	for _, m := range all {
		seen := make([]float64, len(m.Pauses))
		for i, p := range m.Pauses {
			seen[i] = p.To - p.From
		}
		limit := max(LongPause(seen), leastSilent*m.Resolution)
		var long []Silent
		sum := 0.0
		for _, p := range m.Pauses {
			if p.To-p.From > limit {
				long, sum = append(long, p), sum+p.To-p.From
			}
		}
		if long == nil {
			continue
		}
		slices.SortStableFunc(long, func(a, b Silent) int {
			switch {
			case a.To-a.From > b.To-b.From:
				return -1
			case a.To-a.From < b.To-b.From:
				return 1
			}
			return 0
		})
		var some []string
		for _, p := range long[:min(len(long), stallsNamed)] {
			some = append(some, fmt.Sprintf("nothing for %s from %s on in trial %d", words.Show(p.To-p.From, "s"), words.Show(p.From, "s"), p.Trial))
		}
		f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %s; %s altogether, %s; more than %s counts (n = %s)", m.Name, words.List(some), words.Plural(int64(len(long)), "time", "times"), words.Show(sum, "s"), words.Show(limit, "s"), words.Plural(int64(len(seen)), "pause", "pauses")))
	}
	if f.Evidence == nil {
		return nil
	}
	return []Finding{f}
}
