package report

import (
	"fmt"
	"strconv"
	"strings"
)

// before says what an operation costs before its bytes count: "9.12 round trips
// and 2.10 ms". What its interval leaves open is not told as a number.
func (f *Fit) before() string {
	a := show(float64(f.A.Value), "s")
	switch {
	case !f.A.Lo.Known() || !f.A.Hi.Known() || f.A.Hi <= 0:
		a = "an undetermined time"
	case f.A.Lo <= 0:
		a = "up to " + show(float64(f.A.Hi), "s")
	}
	r := f.Rounds
	switch {
	case f.Inline.whole():
		return a + " (nothing crossed the link)"
	case !r.Value.Known():
		return a
	case !counted(r):
		return "an undetermined number of round trips and " + a
	}
	return roundWords(float64(r.Value)) + " and " + a
}

// counted reports whether an interval is narrow enough to speak of so many
// round trips: to a half, or to a fifth of them.
func counted(r Estimate) bool {
	return r.Lo.Known() && r.Hi.Known() && max(r.Hi-r.Value, r.Value-r.Lo) <= max(0.5, r.Value/5)
}

// roundWords counts round trips: "9.12 round trips".
func roundWords(v float64) string {
	if n := decimals(v); n != "1.00" {
		return n + " round trips"
	}
	return "1.00 round trip"
}

// decimals prints a count of round trips, with two decimals wherever it is told, as
// its interval has them: 1.04 and 1.14 are no number of whole trips both, and are not
// the same.
func decimals(v float64) string {
	s := strconv.FormatFloat(v, 'f', 2, 64)
	if s == "-0.00" {
		return "0.00"
	}
	return s
}

// costClause is what the verdict says of the first operation that was fitted.
func (r *Report) costClause() string {
	var first *Fit
	var parts []string
	for i := range r.Fits {
		f := &r.Fits[i]
		if f.model == nil || first != nil && (f.Operation != first.Operation || f.Connections != first.Connections) {
			continue
		}
		if first == nil {
			first = f
		}
		switch {
		case f.refuted():
			parts = append(parts, f.System+" an undetermined time (its fit does not hold)")
		case f.near():
			parts = append(parts, f.System+" about "+f.before())
		default:
			parts = append(parts, f.System+" "+f.before())
		}
	}
	if first == nil {
		return r.trendClause()
	}
	what := article(first.Operation)
	if r.nameOf(first) != first.Operation {
		what += " over connections that are " + map[string]string{"keep": "kept", "fresh": "fresh"}[first.Connections]
	}
	if !first.B.Value.Known() { // one size: the time of the bytes is part of it
		return what + " takes " + list(parts)
	}
	return "before its bytes count, " + what + " takes " + list(parts)
}

// trendClause is what the verdict says of operations among more and more objects.
func (r *Report) trendClause() string {
	var up []string
	most := unknown
	for _, t := range r.Trends {
		if !t.Slope.Lo.Known() || t.Cut > 0 && !t.Shown {
			continue // see [slowsDown]
		}
		most = highest(most, float64(t.To))
		if t.Shown && t.Slope.Value > 0 {
			up = append(up, t.System+" "+t.Operation)
		}
	}
	switch {
	case !most.Known():
		return ""
	case up == nil:
		return "up to " + count(int64(most)) + " objects no operation is shown to become slower with their number"
	}
	return "with the number of objects (up to " + count(int64(most)) + ") it becomes slower: " + list(up)
}

func article(operation string) string {
	if strings.ContainsAny(operation[:1], "aeiou") {
		return "an " + operation
	}
	return "a " + operation
}

// fewCosts is how many operations of a system the answer tells.
const fewCosts = 4

// costs say what each system's operations cost.
func (r *Report) costs() []Answer {
	out := []Answer{}
	for _, s := range r.Systems {
		var parts []string
		n := 0
		for i := range r.Fits {
			f := &r.Fits[i]
			if f.System != s.Name || f.model == nil {
				continue
			}
			if n++; n <= fewCosts {
				parts = append(parts, r.nameOf(f)+": "+f.words())
			}
		}
		if n > fewCosts {
			parts = append(parts, fmt.Sprintf("and %d more", n-fewCosts))
		}
		if parts != nil {
			out = append(out, Answer{s.Name, strings.Join(parts, "; ") + "."})
		}
	}
	if len(out) == 0 {
		return r.comparisons()
	}
	return out
}

// nameOf names a fit among those of its system.
func (r *Report) nameOf(f *Fit) string {
	for i := range r.Fits {
		if r.Fits[i].Connections != f.Connections {
			return f.Operation + " (" + f.Connections + ")"
		}
	}
	return f.Operation
}

// refuted reports whether the trials are shown not to lie on the fit's line, and far
// enough from it that its numbers are not to be quoted.
func (f *Fit) refuted() bool { return f.tested && !f.Holds && !f.near() }

func (f *Fit) words() string {
	if f.refuted() {
		return "no line fits its times (the worst cell is off by " + percent(float64(f.Misfit)) + ")"
	}
	s := f.before()
	if f.near() {
		s = "about " + s
	}
	if f.Rate.Lo.Known() && f.Rate.Hi.Known() && !f.Inline.whole() {
		s += ", then " + show(float64(f.Rate.Value), "B/s")
	}
	if a := f.Against; a != nil && a.Ratio.Lo.Known() {
		s += fmt.Sprintf(", %s what %s takes for the same absolute bytes", show(float64(a.Ratio.Value), "×"), a.System)
	}
	return s
}
