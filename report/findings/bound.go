package findings

import (
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/stats"
)

// Limit is what a cell is bound by: what would have to be faster for the cell to be.
type Limit string

const (
	Link       Limit = "link"        // the links carry what they can, with the round trips that the work needs
	OneLink    Limit = "one link"    // that of the node that sends most is full, while all together are not
	RoundTrips Limit = "round trips" // most of the time is round trips that follow one another
	CPU        Limit = "one CPU"     // a process uses about one CPU: as much as one thread can have, if it is one
	Machine    Limit = "machine"     // all CPUs together are used up, by whomever
	Work       Limit = "own work"    // the system's own work alone, with nothing to wait for, takes nearly as long
	Disk       Limit = "disk"        // somebody waits for storage most of the time
	Generator  Limit = "generator"   // what is measured is the load generator
	Waiting    Limit = "waiting"     // none of the others that are known
)

// Shares from which on a cell is bound by something: its interval must lie beyond.
const (
	// Above this share of its load line a cell has less to gain than repeated links
	// differ by between days.
	atLine = 0.85
	// Above this share the line is wrong, and other rules sound the alarm.
	overLine = 1.10
	// Below this share of the line something else decides.
	farBelow = 0.70
	// A process within a tenth of one CPU may have one thread that never sleeps, or
	// several that sleep; one that uses more is not held back by a single thread.
	oneCPU, oneCPUWide = 0.90, 1.10
	// From this share of all CPUs on, work waits for them.
	machineFull = 0.85
	// More than half of the time: without it a cell would be twice as fast.
	mostOfTime = 0.50
	// The chance that a run in which everything is at its threshold names a limit.
	boundAlpha = 0.05
	// Fewer trials tell no spread.
	fewestTrials = 3
	// Of a cell that loses more of its operations than this the bytes are not in the
	// throughput: how far it is from its line says nothing.
	manyLost = 0.05
)

// Shares is what is known of a cell: of each quantity one value per valid trial, none
// where it was not measured.
type Shares struct {
	System, Where string // whose cell, and the words that name it
	Line          []float64
	LineWords     string    // what the line is of, "of the line" where empty
	Link          []float64 // how full the link of the node is that sends most, of its rate
	RoundTrips    []float64 // sequential round trips, of an operation's time
	// What RoundTrips is times where their number is as small, or as large, as it may
	// be: the ends of its interval over its middle. 0: it is counted, not estimated.
	FewerTrips, MoreTrips float64
	Busiest               []float64 // CPUs that the system's busiest process keeps busy
	Machine               []float64 // CPU used, of the machine's
	Storage               []float64 // time in which somebody waits for storage, of the time
	Work                  []float64 // time of the system's own work alone, of the time
	Saturated             float64   // share of the trials that are invalid because the generator was the limit
	Lost                  float64   // share of the operations that came to nothing
	Others                []float64 // CPU used by others, of the machine's
	NotWaiting            string    // why waiting is not told here; empty: it may be
}

// Bounds is what one cell is bound by.
type Bounds struct {
	Cell    *Shares
	By      []Limit
	Unknown []string // what was not measured, in words; of a cell that waits
}

// quantity is one kind of share with its thresholds.
type quantity struct {
	of     func(*Shares) []float64
	limit  Limit
	lo, hi func(*Shares) float64 // what it may be times; nil: 1
	least  float64               // bound from here on
	most   float64               // and up to here; 0: any
	below  float64               // not bound below this
	known  string                // what it is, for those that do not have it; empty: not missed
	spoken func(s *Shares, i stats.Interval) string
}

func quantities() []quantity {
	share := func(what string) func(*Shares, stats.Interval) string {
		return func(_ *Shares, i stats.Interval) string { return percents(i) + " " + what }
	}
	return []quantity{
		{of: func(s *Shares) []float64 { return s.Line }, limit: Link, least: atLine, below: farBelow, known: "the load line", spoken: func(s *Shares, i stats.Interval) string {
			if s.LineWords != "" {
				return "at " + percents(i) + " " + s.LineWords
			}
			return "at " + percents(i) + " of the line"
		}},
		{of: func(s *Shares) []float64 { return s.Link }, limit: OneLink, least: atLine, below: atLine, spoken: share("of the busiest sender's link")},
		{of: func(s *Shares) []float64 { return s.RoundTrips }, limit: RoundTrips, least: mostOfTime, below: mostOfTime, known: "round trips",
			lo: func(s *Shares) float64 { return s.FewerTrips }, hi: func(s *Shares) float64 { return s.MoreTrips }, spoken: share("of the time in round trips")},
		{of: func(s *Shares) []float64 { return s.Busiest }, limit: CPU, least: oneCPU, most: oneCPUWide, below: oneCPU, known: "CPU", spoken: func(_ *Shares, i stats.Interval) string {
			return words.Digits(i.Mid, 2) + " CPUs kept busy by its busiest process"
		}},
		{of: func(s *Shares) []float64 { return s.Machine }, limit: Machine, least: machineFull, below: machineFull, spoken: func(_ *Shares, i stats.Interval) string {
			i.Mid, i.Lo, i.Hi = min(i.Mid, 1), min(i.Lo, 1), min(i.Hi, 1) // see [words.PartOf]
			return percents(i) + " of the machine's CPU in use"
		}},
		{of: func(s *Shares) []float64 { return s.Storage }, limit: Disk, least: mostOfTime, below: mostOfTime, known: "the disk", spoken: share("of the time somebody waits for storage")},
		{of: func(s *Shares) []float64 { return s.Work }, limit: Work, least: atLine, below: atLine, spoken: share("of the time is its own work alone")},
	}
}

// Bound says what each cell is bound by. A limit is named when the share is shown to
// lie beyond its threshold, by Student's test over trials, one-sided, after Holm's
// correction over all cells and quantities; of a cell near its line that is also
// RTT-bound both are said; the machine is no limit of a cell at its line. Waiting is said when the cell is shown to lie far below
// its line and each quantity that was measured below its threshold (an intersection
// of tests: Berger 1982); where nothing is known
// of CPU it is not said. Cells whose generator was the limit say nothing else.
func Bound(cells []Shares) []Bounds {
	all := quantities()
	type claim struct {
		cell  int
		limit Limit
	}
	var claims []claim
	var ps []float64
	for i := range cells {
		s := &cells[i]
		if s.Saturated > mostOfTime || len(s.Line) > 0 && stat.Mean(s.Line, nil) > overLine {
			continue // of the generator are the trials left in which it happened to suffice
		}
		waits := 1.0
		if s.Lost <= manyLost && s.NotWaiting == "" && len(s.Line) >= fewestTrials && max(len(s.Busiest), len(s.Machine)) >= fewestTrials {
			waits = 0
		}
		for _, q := range all {
			values := q.of(s)
			if len(values) < fewestTrials {
				if len(values) > 0 {
					waits = 1 // measured, and too seldom to exclude it
				}
				continue
			}
			beyond := above(times(values, q.lo, s), q.least)
			if q.most > 0 {
				beyond = max(beyond, 1-above(values, q.most))
			}
			if q.limit == OneLink { // at the line every link is full
				beyond = max(beyond, belowLine(s))
			}
			claims, ps = append(claims, claim{i, q.limit}), append(ps, beyond)
			below := 1 - above(times(values, q.hi, s), q.below)
			if q.most > 0 {
				// Several threads are not held back by one.
				below = min(below, above(values, q.most))
			}
			waits = max(waits, below)
		}
		if waits < 1 {
			claims, ps = append(claims, claim{i, Waiting}), append(ps, waits)
		}
	}
	bounds := make([]Bounds, len(cells))
	for i := range cells {
		s := &cells[i]
		bounds[i].Cell = s
		if s.Saturated > mostOfTime {
			bounds[i].By = []Limit{Generator}
		}
		for _, q := range all {
			if q.known != "" && len(q.of(s)) < fewestTrials {
				bounds[i].Unknown = append(bounds[i].Unknown, q.known)
			}
		}
	}
	for i, p := range stats.Holm(ps) {
		if b := &bounds[claims[i].cell]; p < boundAlpha && !slices.Contains(b.By, claims[i].limit) {
			b.By = append(b.By, claims[i].limit)
		}
	}
	for i := range bounds {
		// At its line there is nothing left that a quieter machine would give.
		if b := &bounds[i]; slices.Contains(b.By, Link) {
			b.By = slices.DeleteFunc(b.By, func(l Limit) bool { return l == Machine })
		}
	}
	return bounds
}

// times are values times what they may be.
func times(values []float64, by func(*Shares) float64, s *Shares) []float64 {
	if by == nil || by(s) <= 0 {
		return values
	}
	all := make([]float64, len(values))
	for i, v := range values {
		all[i] = v * by(s)
	}
	return all
}

// belowLine is the p that the cell is not far below its line; 1 where that is not
// known.
func belowLine(s *Shares) float64 {
	if len(s.Line) < fewestTrials {
		return 1
	}
	return 1 - above(s.Line, farBelow)
}

// above is the p that the mean of values is not above at (Student's test, one-sided).
func above(values []float64, at float64) float64 {
	mean, half := stat.Mean(values, nil), spreadOf(values)
	if half == 0 {
		switch {
		case mean > at:
			return 0
		case mean < at:
			return 1
		}
		return 0.5
	}
	return distuv.StudentsT{Sigma: 1, Nu: float64(len(values) - 1)}.Survival((mean - at) / half)
}

// spreadOf is the standard error of the mean.
func spreadOf(xs []float64) float64 {
	return stat.StdErr(stat.StdDev(xs, nil), float64(len(xs)))
}

// interval is the median of values, as tables tell it, with its interval at 95 %, or
// with their range where there are too few for one.
func interval(xs []float64) stats.Interval {
	i := stats.MedianCI(xs, 0.95)
	if !i.Bounded() {
		i.Lo, i.Hi = slices.Min(xs), slices.Max(xs)
	}
	return i
}

// boundTexts are what is said of each limit, without evidence. Rules keep the names
// that they had before the scenarios shared them.
func boundTexts() map[Limit]Finding {
	return map[Limit]Finding{
		Link: {Rule: "link-bound", Tone: Neutral, Title: "Limited by the link", Text: "Within " + words.Percent(1-atLine) + " of the load line: on this link a faster system would not be faster. Where round trips are named as well, the line itself is mostly round trips, slow start's pauses included, and not bandwidth.",
			Try: "Use a faster link, fewer bytes or fewer round trips; to compare systems, compare them where they are not at the line."},
		OneLink: {Rule: "one-link-full", Tone: Neutral, Title: "A seeder's link is the limit", Text: "All links together had more to give, while that of the node that sends most was nearly full: much went out of it that others could have passed on.",
			Try: "More seeders, a faster link for this one, or settings by which others pass on sooner."},
		RoundTrips: {Rule: "rtt-bound", Tone: Neutral, Title: "Limited by round trips", Text: "More than half of an operation's time is round trips that follow one another: bandwidth and CPU would not make it faster.",
			Try: "Keep connections, ask for more at once (pipelining, larger segments, more connections), or measure nearer to the server."},
		CPU: {Rule: "cpu-bound", Tone: Neutral, Title: "About one CPU is used", Text: "The system's busiest process, with those that it started, uses about one CPU. That is as much as one thread can have; whether it is one, or several that each use less, is not measured.",
			Try: "Look at the threads of that process (top -H, a profile): if one of them never sleeps, the processor decides, and a setting by which it uses more threads would help."},
		Machine: {Rule: "machine-busy", Tone: Warn, Title: "The machine was the limit", Text: "All CPUs together were used up: the systems' processes, the links' emulator and plimsoll waited for each other and for whatever else ran. Times say more about this machine than about the systems.",
			Try: "Use fewer nodes or connections, slower links, or a quieter or larger machine; limits.others makes trials invalid in which others used much of it."},
		Work: {Rule: "compute-bound", Tone: Neutral, Title: "Bound by its own work", Text: "The time is nearly that of the same work from a local file, without a network: a faster link or more peers would not help.",
			Try: "A faster CPU or disk, or settings that change the work itself."},
		Disk: {Rule: "disk-bound", Tone: Warn, Title: "Limited by the disk", Text: "During most of the time some task on this machine waited for storage, which is not told by whose it was.",
			Try: "Repeat with the store in memory or on a faster disk: if the time stays, something else waited."},
		Waiting: {Rule: "waiting", Tone: Neutral, Title: "Nothing that was measured is the limit", Text: "Shown to be far below the load line, and nothing else that was measured is used up: what is left is waiting: for TCP to find its speed (in short trials on fresh connections most of all), for timers, windows and answers, or for the system itself. What was not measured is named; it may be that.",
			Try: "Vary the round trip (link.delay) and the concurrency: what grows with the one waits for answers, what shrinks with the other waits for its turn. Measure what is named as not known."},
	}
}

// someCells is how many cells of a system are named.
const someCells = 3

// SayBounds are the findings: one for each limit, with what shows it.
func SayBounds(bounds []Bounds) []Finding {
	texts := boundTexts()
	var systems []string
	cells := map[string]int{}
	for _, b := range bounds {
		if cells[b.Cell.System] == 0 {
			systems = append(systems, b.Cell.System)
		}
		cells[b.Cell.System]++
	}
	var out []Finding
	for _, limit := range []Limit{Machine, CPU, Disk, Work, OneLink, Waiting, RoundTrips, Link} {
		f := texts[limit]
		for _, system := range systems {
			var parts []string
			for _, b := range bounds {
				if b.Cell.System == system && slices.Contains(b.By, limit) {
					parts = append(parts, b.words(limit))
				}
			}
			if parts == nil {
				continue
			}
			n := len(parts)
			if n > someCells {
				parts = append(parts[:someCells:someCells], fmt.Sprintf("and %d more", n-someCells))
			}
			f.Subjects = append(f.Subjects, system)
			of := "cells"
			if cells[system] == 1 {
				of = "cell"
			}
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s in %d of %d %s: %s", system, n, cells[system], of, strings.Join(parts, "; ")))
		}
		if f.Evidence != nil {
			f.Title += ": " + words.List(f.Subjects)
			out = append(out, f)
		}
	}
	return out
}

// words are the figures of a cell, all that were measured.
func (b Bounds) words(limit Limit) string {
	s := b.Cell
	var parts []string
	n := 0
	for _, q := range quantities() {
		if values := q.of(s); len(values) >= fewestTrials && (q.limit == limit || q.limit == Link || limit == Waiting) {
			parts = append(parts, q.spoken(s, interval(values)))
			n = max(n, len(values))
		}
	}
	if limit == Machine && len(s.Others) > 0 {
		parts = append(parts, words.Percent(stat.Mean(s.Others, nil))+" by others")
	}
	text := strings.Join(parts, ", ") + fmt.Sprintf(" (n = %d)", n)
	if s.Where != "" {
		text = s.Where + ": " + text
	}
	var also []string
	for _, l := range b.By {
		if l != limit && l != CPU { // which is no more than perhaps a limit
			also = append(also, string(l))
		}
	}
	if also != nil {
		text += ", also bound by " + words.List(also)
	}
	if limit != CPU && slices.Contains(b.By, CPU) {
		text += ", and about one CPU is used"
	}
	if limit == Waiting && b.Unknown != nil {
		text += ", not known: " + words.List(b.Unknown)
	}
	return text
}
