package findings

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/report/internal/words"
	"github.com/plimsoll-project/plimsoll/stats"
)

// Curve is the throughput of one system against the number of users at once, all else
// equal.
type Curve struct {
	System, Where string
	Trials        []stats.Load
	Latency       map[float64]float64      // seconds, median over trials of the median of operations, by users
	Limited       map[float64]Limit        // levels at which something else than the system is the limit
	Show          func(x float64) string   // throughput in words
	Time          func(sec float64) string // a time in words
}

// Knee is what a curve says.
type Knee struct {
	*Curve
	Fit   stats.Scaling
	Seen  bool   // there is a knee
	Falls bool   // throughput at the highest level is shown to be below that of another
	Why   string // why there is none, or none is told; empty: the curve has too few levels to ask
}

// kneeAlpha is the level at which throughput is shown to fall, over all curves.
const kneeAlpha = 0.01

// Knees fits the universal scalability law to each curve. Levels at which the link,
// the machine or the generator is the limit are left out: what is flat or falls there
// need not be the system's doing, and where fewer than four remain nothing is fitted.
func Knees(curves []Curve, conf float64, seed uint64) []Knee {
	knees := make([]Knee, len(curves))
	falls := make([]float64, len(curves))
	for i := range curves {
		c := &curves[i]
		knees[i].Curve, falls[i] = c, math.NaN()
		var own []stats.Load
		levels := map[float64]bool{}
		for _, t := range c.Trials {
			levels[t.N] = true
			if c.Limited[t.N] == "" {
				own = append(own, t)
			}
		}
		if len(levels) < stats.FewestLevels {
			continue
		}
		fit, err := stats.FitScaling(own, conf, seed)
		switch {
		case err != nil && len(c.Limited) > 0:
			knees[i].Why = "too few levels are left at which the system itself is the limit"
		case err != nil:
			knees[i].Why = strings.TrimPrefix(err.Error(), "scaling: ")
		default:
			knees[i].Fit, knees[i].Seen, knees[i].Why, falls[i] = fit, fit.Knee, fit.Why, fit.Falls
		}
	}
	for i, p := range stats.Holm(falls) {
		k := &knees[i]
		k.Falls = p < kneeAlpha
		if k.Seen && !k.Falls {
			k.Seen, k.Why = false, fmt.Sprintf("that throughput falls is not shown for one of %d curves", len(curves))
		}
	}
	return knees
}

// SayKnees are the findings: where throughput falls beyond a number of users, where it
// falls and the number is not told, and where no fall is seen.
func SayKnees(knees []Knee) []Finding {
	seen := Finding{Rule: "knee", Tone: Warn, Title: "More at once is slower",
		Text: "Beyond N* operations at once the throughput falls: each waits for the others (σ), and what each pair of them costs (κ) grows faster than what another one adds. N* = √((1 − σ)/κ) of the universal scalability law, with intervals at 95 %; throughput at the highest level is shown to be below the best.",
		Try:  "Offer no more than N* at once (a queue or a limit on connections in front of the system), and look for what all operations share: a lock, a disk, memory for each."}
	falls := Finding{Rule: "throughput-falls", Tone: Warn, Title: "More at once is slower, from where is not told",
		Text: "Throughput at the highest level is shown to be below the best (Welch's test, corrected for all levels and systems), but no N* is told: the law of scalability does not describe these levels, or its peak does not lie between them.",
		Try:  "Offer no more at once than at the best level, and measure more levels about it: below the lowest, or where it breaks off."}
	none := Finding{Rule: "no-knee", Tone: Neutral, Title: "No knee of concurrency was seen",
		Text: "Up to the highest level measured throughput is not shown to fall, or too few levels are left to ask. That is no promise for more at once; where the link, the machine or the generator was the limit it says nothing of the system.",
		Try:  "Measure with more at once, and where the link or the machine is full with a faster one."}
	for i := range knees {
		k := &knees[i]
		switch {
		case k.Seen:
			seen.Subjects = appendNew(seen.Subjects, k.System)
			seen.Evidence = append(seen.Evidence, k.name()+": "+k.words())
		case k.Falls:
			falls.Subjects = appendNew(falls.Subjects, k.System)
			falls.Evidence = append(falls.Evidence, k.name()+": "+k.fallWords())
		case k.Why != "":
			none.Evidence = append(none.Evidence, k.name()+": "+k.noWords())
		}
	}
	var out []Finding
	if seen.Evidence != nil {
		seen.Title += ": " + words.List(seen.Subjects)
		out = append(out, seen)
	}
	if falls.Evidence != nil {
		falls.Title += ": " + words.List(falls.Subjects)
		out = append(out, falls)
	}
	if none.Evidence != nil {
		out = append(out, none)
	}
	return out
}

func appendNew(all []string, s string) []string {
	if slices.Contains(all, s) {
		return all
	}
	return append(all, s)
}

func (k *Knee) name() string {
	if k.Where == "" {
		return k.System
	}
	return k.System + ", " + k.Where
}

// words are the figures of a knee: where it is, and throughput and time there and
// beyond.
func (k *Knee) words() string {
	f := &k.Fit
	top := f.Levels[len(f.Levels)-1]
	s := fmt.Sprintf("N* = %s (%s…%s) with %s, %s at %g", number(f.Peak.Mid), number(f.Peak.Lo), number(f.Peak.Hi), k.Show(f.PeakX.Mid), k.Show(top.X), top.N)
	near := f.Levels[0].N
	for _, l := range f.Levels {
		if math.Abs(math.Log(l.N/f.Peak.Mid)) < math.Abs(math.Log(near/f.Peak.Mid)) {
			near = l.N
		}
	}
	if a, ok := k.Latency[near]; ok {
		if b, has := k.Latency[top.N]; has {
			s += fmt.Sprintf("; median time of an operation %s at %g, %s at %g", k.Time(a), near, k.Time(b), top.N)
		}
	}
	s += fmt.Sprintf("; σ = %s (%s…%s), κ = %s (%s…%s)", number(f.Sigma.Mid), number(f.Sigma.Lo), number(f.Sigma.Hi), number(f.Kappa.Mid), number(f.Kappa.Lo), number(f.Kappa.Hi))
	return s + fmt.Sprintf(" (n = %d, %d levels)", f.Peak.N, len(f.Levels)) + k.limited()
}

// Beyond says where more at once is slower, and what is delivered there and with the
// most at once; both are empty where that is not shown.
func (k *Knee) Beyond() (where, figures string) {
	if !k.Seen && !k.Falls {
		return "", ""
	}
	f := &k.Fit
	top := f.Levels[len(f.Levels)-1]
	if k.Seen {
		return fmt.Sprintf("beyond N* = %s at once", number(f.Peak.Mid)),
			fmt.Sprintf("beyond N* = %s at once (%s…%s): %s there, %s at %g", number(f.Peak.Mid), number(f.Peak.Lo), number(f.Peak.Hi), k.Show(f.PeakX.Mid), k.Show(top.X), top.N)
	}
	best := k.best()
	where = fmt.Sprintf("with %g at once than with %g", top.N, best.N)
	return where, where + ": " + k.Show(top.X) + ", not " + k.Show(best.X)
}

// best is the level of most throughput from which that at the highest level is shown
// to have fallen.
func (k *Knee) best() stats.Level {
	levels := k.Fit.Levels
	best := levels[0]
	for _, l := range levels {
		if l.Fell < kneeAlpha && (l.X > best.X || best.Fell >= kneeAlpha) {
			best = l
		}
	}
	return best
}

// fallWords are how far a curve falls that has no knee, and why it has none.
func (k *Knee) fallWords() string {
	f := &k.Fit
	best, top, n := k.best(), f.Levels[len(f.Levels)-1], 0
	for _, t := range k.Trials {
		if t.N == best.N || t.N == top.N {
			n++
		}
	}
	return fmt.Sprintf("%s at %g, %s at %g, %s× as much (p = %.1g, n = %d); no N*: %s", k.Show(best.X), best.N, k.Show(top.X), top.N, number(top.X/best.X), best.Fell, n, k.Why) + k.limited()
}

// noWords say up to where no knee is seen, and why.
func (k *Knee) noWords() string {
	top := 0.0
	for _, t := range k.Trials {
		top = max(top, t.N)
	}
	s := fmt.Sprintf("none up to %g: %s", top, k.Why)
	if f := &k.Fit; f.Law == stats.Contention && f.Holds && f.Sigma.Lo > 0 {
		s += fmt.Sprintf("; it levels off, σ = %s (%s…%s)", number(f.Sigma.Mid), number(f.Sigma.Lo), number(f.Sigma.Hi))
	}
	return s + k.limited()
}

// limited names the levels that are left out.
func (k *Knee) limited() string {
	by := map[Limit][]float64{}
	for n, l := range k.Limited {
		by[l] = append(by[l], n)
	}
	s := ""
	for _, l := range []Limit{Link, Machine, Generator} {
		if by[l] == nil {
			continue
		}
		slices.Sort(by[l])
		var at []string
		for _, n := range by[l] {
			at = append(at, number(n))
		}
		s += fmt.Sprintf("; at %s the %s is the limit", words.List(at), l)
	}
	return s
}
