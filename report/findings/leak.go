package findings

import (
	"fmt"
	"math"
	"slices"

	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/stats"
)

// Life is what one process was seen to hold from its start, or the first time that
// it was looked at, to its end.
type Life struct {
	Name   string    // of the process
	Hours  []float64 // when, from any beginning
	Memory []float64 // bytes of its resident set; NaN: not told
	Files  []float64 // open file descriptors
	Thread []float64 // threads
	Things float64   // that were handled meanwhile; 0: not known
	Thing  string    // what they are: "object"
}

const (
	// warmUp is the share of a life in which caches fill and stores are opened.
	warmUp = 0.25
	// leastLife is the shortest time, in hours, of which a slope per hour is worth
	// saying.
	leastLife = 1. / 6
	// leakSure is the chance of a false alarm over all lives of a report (after Holm).
	leakSure = 0.001
	// leastRise is by how much of where it was something must have risen, and must
	// as least rise by the lower end of the interval.
	leastRise = 0.05
	// goesOn is the least ratio of the slope of the second half to that of the first:
	// what approaches a limit with a time constant of the time that was watched, or
	// less, is below it (e^−0.625 − e^−1 over e^−0.25 − e^−0.625 is 0.69).
	goesOn = 0.7
	// slowed is the ratio below which growth slowed down clearly: what is left of it then
	// may as well be what filled. Between this and what is shown to go on nothing is
	// known but that it grew.
	slowed = 0.5
	// goesOnSure is by how many standard errors the second half must lie above that:
	// one-sided 5 %. Without it noise hides, one time in two, that a cache fills.
	goesOnSure = 1.645
)

// held is something that a process may leak.
type held struct {
	found      Finding
	what, unit string
	least      float64 // rise that matters, in the unit
	of         func(*Life) []float64
}

func leaks() []held {
	return []held{
		{Finding{Rule: "leak-memory", Tone: Warn, Title: "The memory of a process goes on growing",
			Try: "Let it run several times as long, then leave it idle: what falls was in use, what stays and goes on is a leak. A profile of its heap at two moments says what it holds."},
			"resident memory", "B", 1 << 20, func(l *Life) []float64 { return l.Memory }},
		{Finding{Rule: "leak-files", Tone: Warn, Title: "A process opens more and more files",
			Try: "List what is open (/proc/PID/fd) at two moments; compare with its limit (ulimit -n), at which it will fail."},
			"open file descriptors", "1", 16, func(l *Life) []float64 { return l.Files }},
		{Finding{Rule: "leak-threads", Tone: Warn, Title: "A process starts more and more threads",
			Try: "Dump its threads or goroutines at two moments: those that wait for ever are the leak."},
			"threads", "1", 16, func(l *Life) []float64 { return l.Thread }},
	}
}

// grew is what is said of growth that is shown, and of which is not known whether it
// goes on.
func grew() Finding {
	return Finding{Rule: "grew", Tone: Warn, Title: "Processes grew, and it cannot be told whether that goes on",
		Text: fmt.Sprintf("After the first %s of their lives they still grew, which neither noise nor a random walk explains (Perron and Yabu's test, corrected for all processes, chance below %g). In the second half of what is left they rose at least %s as fast as in the first, and that it was more than %s is not shown: that is a leak, or a cache that is not full yet.",
			words.Percent(warmUp), leakSure, words.Percent(slowed), words.Percent(goesOn)),
		Try: "Let it run several times as long: what fills slows down, and a leak does not. Then leave it idle: what falls was in use."}
}

// Leak finds what processes hold more and more of: after a warm-up, with a slope
// that neither noise nor a random walk explains. Where it is shown to go on, that is
// said; where it did not slow down clearly, that it grew.
func Leak(lives []Life) []Finding {
	var out []Finding
	open := grew()
	for _, h := range leaks() {
		type risen struct {
			life *Life
			fit  stats.DriftFit
		}
		var all []risen
		var ps []float64
		for i := range lives {
			l := &lives[i]
			x, y := finite(l.Hours, h.of(l))
			if len(x) == 0 || slices.Max(x)-slices.Min(x) < leastLife {
				continue
			}
			if f := stats.Drift(x, y, warmUp); !math.IsNaN(f.P) {
				all, ps = append(all, risen{l, f}), append(ps, f.P)
			}
		}
		f := h.found
		f.Text = fmt.Sprintf("After the first %s of its life it still grows, which neither noise nor a random walk explains (Perron and Yabu's test, corrected for all processes, chance below %g), and in the second half of what is left it is shown to rise more than %s as fast as in the first. That is a leak, or something kept for each thing that was handled, which a longer run would show as well.", words.Percent(warmUp), leakSure, words.Percent(goesOn))
		for i, p := range stats.Holm(ps) {
			r := all[i]
			rise := r.fit.Slope.Lo * r.fit.Span
			if p >= leakSure || rise < max(h.least, leastRise*r.fit.From) || !(r.fit.Early > 0) {
				continue
			}
			text := fmt.Sprintf("%s: %s from %s to %s in %s h, %s per hour%s (n = %s)", r.life.Name, h.what,
				words.Show(r.fit.From, h.unit), words.Show(r.fit.To, h.unit), words.Digits(r.fit.Span, 3),
				words.Range(r.fit.Slope.Mid, r.fit.Slope.Lo, r.fit.Slope.Hi, h.unit), perThings(r.life, r.fit, h.unit), words.Count(int64(r.fit.N)))
			switch {
			case goes(r.fit):
				f.Evidence = append(f.Evidence, text)
			case r.fit.Late >= slowed*r.fit.Early:
				open.Evidence = append(open.Evidence, text)
			}
		}
		if f.Evidence != nil {
			out = append(out, f)
		}
	}
	return append(out, withEvidence(open)...)
}

// goes reports whether what rose in the first half is shown to rise on in the second.
func goes(f stats.DriftFit) bool {
	return f.Late-goesOn*f.Early > goesOnSure*math.Hypot(f.LateSE, goesOn*f.EarlySE)
}

// perThings is the slope for what was handled, where that is known.
func perThings(l *Life, f stats.DriftFit, unit string) string {
	if !(l.Things > 0) {
		return ""
	}
	hours := slices.Max(l.Hours) - slices.Min(l.Hours)
	return fmt.Sprintf(", %s per 1,000 %s", words.Show(f.Slope.Mid*hours/l.Things*1000, unit), l.Thing+"s")
}

// finite leaves out what was not told.
func finite(x, y []float64) (xs, ys []float64) {
	for i := range min(len(x), len(y)) {
		if y[i]-y[i] == 0 {
			xs, ys = append(xs, x[i]), append(ys, y[i])
		}
	}
	return xs, ys
}
