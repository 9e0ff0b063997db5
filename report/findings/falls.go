package findings

import (
	"fmt"
	"math"
	"slices"

	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/stats"
)

// Curve is the throughput of one system against the number of operations at once, all
// else equal.
type Curve struct {
	System, Where string
	Trials        []stats.Load
	Limited       map[float64]Limit      // levels at which something else than the system is the limit
	Show          func(x float64) string // throughput in words
}

// Fall is a curve whose throughput at the highest level is significantly below that of
// another.
type Fall struct {
	*Curve
	Levels []stats.Level
}

// fallAlpha is the significance level of a fall, over all curves.
const fallAlpha = 0.01

// Falls compares the levels of each curve. Levels at which the link, the machine or the
// generator is the limit are left out: what falls there need not be the system's doing.
func Falls(curves []Curve) (falls []Fall) {
	all, ps := make([]Fall, len(curves)), make([]float64, len(curves))
	for i := range curves {
		c := &curves[i]
		var own []stats.Load
		for _, t := range c.Trials {
			if c.Limited[t.N] == "" {
				own = append(own, t)
			}
		}
		levels, p, err := stats.Fall(own)
		if err != nil {
			p = math.NaN()
		}
		all[i], ps[i] = Fall{c, levels}, p
	}
	for i, p := range stats.Holm(ps) {
		if p < fallAlpha {
			falls = append(falls, all[i])
		}
	}
	return falls
}

// SayFalls is the finding of curves that fall.
func SayFalls(all []Fall) []Finding {
	f := Finding{Rule: "throughput-falls", Tone: Warn, Title: "Throughput falls under load",
		Text: "Throughput with the most operations at once is significantly below that with fewer (Welch's test at 1 %, corrected for all levels and systems). Levels at which the link, the machine or the generator is the limit are left out.",
		Try:  "Limit concurrency to the best level (a queue or a limit on connections in front of the system), and look for what all operations share: a lock, a disk, memory for each."}
	for i := range all {
		c := &all[i]
		if !slices.Contains(f.Subjects, c.System) {
			f.Subjects = append(f.Subjects, c.System)
		}
		best, top := c.best(), c.Levels[len(c.Levels)-1]
		name := c.System
		if c.Where != "" {
			name += ", " + c.Where
		}
		f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %s at %g, %s at %g, %s× as much (p = %.1g, n = %d)",
			name, c.Show(best.X), best.N, c.Show(top.X), top.N, number(top.X/best.X), best.P, best.Trials+top.Trials))
	}
	if f.Evidence == nil {
		return nil
	}
	f.Title += ": " + words.List(f.Subjects)
	return []Finding{f}
}

// Words says at which levels throughput falls, and what it is there.
func (f *Fall) Words() (where, figures string) {
	best, top := f.best(), f.Levels[len(f.Levels)-1]
	where = fmt.Sprintf("with %g at once than with %g", top.N, best.N)
	return where, where + ": " + f.Show(top.X) + ", not " + f.Show(best.X)
}

// best is the level of most throughput of those that are significantly above the highest.
func (f *Fall) best() stats.Level {
	best := f.Levels[0]
	for _, l := range f.Levels {
		if l.P < fallAlpha && (l.X > best.X || best.P >= fallAlpha) {
			best = l
		}
	}
	return best
}
