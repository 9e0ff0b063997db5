package report

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// WritePredictions writes answers to several questions as one table for a
// terminal of the given width (0: there is none, and tables are whole).
func WritePredictions(w io.Writer, all []*Prediction, width int) error {
	var b strings.Builder
	answered(&b, all, width)
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteText writes the prediction for a terminal of the given width (0: there is none, and tables are whole).
func (p *Prediction) WriteText(w io.Writer, width int) error {
	if p.Checks == nil {
		return WritePredictions(w, []*Prediction{p}, width)
	}
	var b strings.Builder
	p.checked(&b, width)
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteJSON writes the prediction; docs/predict.md describes its fields.
func (p *Prediction) WriteJSON(w io.Writer) error { return writeIndented(w, p) }

// WritePredictionsJSON writes several as an array, one as an object.
func WritePredictionsJSON(w io.Writer, all []*Prediction) error {
	if len(all) == 1 {
		return all[0].WriteJSON(w)
	}
	return writeIndented(w, all)
}

func writeIndented(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

func answered(b *strings.Builder, all []*Prediction, width int) {
	same, differs := common(all)
	first := all[0]
	says := "Held out: the cells that lie in their intervals when each is predicted from the others."
	if !slices.ContainsFunc(all, func(p *Prediction) bool {
		return slices.ContainsFunc(p.Answers, func(a Predicted) bool { return a.Single.Lo.Known() })
	}) {
		says = fmt.Sprintf("%s of the medians of new trials lie in the interval, if the model is right. ", percent(first.Confidence)) + says
	} else {
		says = fmt.Sprintf("An interval has %s of what would be measured: of medians of trials, of single operations. ", percent(first.Confidence)) + says
	}
	if !slices.ContainsFunc(all, func(p *Prediction) bool {
		return slices.ContainsFunc(p.Answers, func(a Predicted) bool { return a.Refused == "" })
	}) {
		says = "" // there is no interval and nothing held out to explain
	}
	wrap(b, strings.TrimSpace(fmt.Sprintf("%s, from the models of %s; nothing was executed now. %s", capital(same), first.Run, says)), width, "")
	b.WriteByte('\n')
	t := textTable{head: []string{"system", "what", "predicted", "median of a trial"}, right: []bool{false, false, true, true}}
	for i := len(differs) - 1; i >= 0; i-- {
		t.head, t.right = slices.Insert(t.head, 0, differs[i].Label), slices.Insert(t.right, 0, true)
	}
	measured, single, line := false, false, false
	for _, p := range all {
		for _, a := range p.Answers {
			measured, single, line = measured || a.Ran > 0, single || a.Single.Lo.Known(), line || a.Line.Known()
		}
	}
	if measured {
		t.head, t.right = append(t.head, "measured"), append(t.right, true)
	}
	if single {
		t.head, t.right = append(t.head, "one operation"), append(t.right, true)
	}
	if line {
		t.head, t.right = append(t.head, "link alone"), append(t.right, true)
	}
	t.head, t.right = append(t.head, "held out"), append(t.right, false)
	if line {
		t.drop = map[int]int{len(t.head) - 2: 2} // where the link cuts an interval a note says so
	}
	var said []remark
	for _, p := range all {
		var at []string
		for _, d := range differs {
			at = append(at, levelOrAny(p.Asked, d.Path))
		}
		where := strings.Join(at, ", ")
		for _, a := range p.Answers {
			if a.Refused != "" {
				said = append(said, remark{"no prediction for " + a.System + ", " + a.What, where, a.Refused})
				if a.Measured == nil {
					continue
				}
			}
			t.cut(len(at), mostName)
			row := append(slices.Clone(at), a.System, a.What, show(float64(a.Trial.Value), a.Unit), between(a.Trial, a.Unit))
			if measured {
				row = append(row, a.measuredWords())
			}
			if single {
				row = append(row, between(a.Single, a.Unit))
			}
			if line {
				row = append(row, number(a.Line, a.Unit).Text)
			}
			held := "–"
			if a.Cells > 0 {
				held = fmt.Sprintf("%d of %d", a.Inside, a.Cells)
			}
			t.rows = append(t.rows, append(row, held))
			if a.Note != "" {
				said = append(said, remark{a.System + ", " + a.What, where, a.Note})
			}
		}
	}
	t.below = told(said)
	try := slices.IndexFunc(all, (*Prediction).Refused)
	if try < 0 {
		try = slices.IndexFunc(all, func(p *Prediction) bool { return p.Try != "" })
	}
	if try >= 0 && all[try].Try != "" {
		t.below = append(t.below, "to measure it: "+all[try].Try)
	}
	if t.rows == nil {
		for _, l := range t.below {
			wrap(b, "  "+l, width, "      ")
		}
		b.WriteByte('\n')
		return
	}
	t.write(b, width)
}

// measuredWords are the median over the trials of this very cell, with its interval.
func (a *Predicted) measuredWords() string {
	switch {
	case a.Ran == 0:
		return "not run"
	case a.Ran > 1:
		return "several cells"
	case a.Measured == nil:
		return "–"
	}
	return showRange(a.Measured.Value, a.Measured.Lo, a.Measured.Hi, a.Unit)
}

// remark is what is said of a model at a place.
type remark struct{ of, where, text string }

// told says what is the same of several places once.
func told(said []remark) []string {
	var lines []string
	done := map[remark]bool{}
	for _, r := range said {
		key := remark{of: r.of, text: r.text}
		if done[key] {
			continue
		}
		done[key] = true
		var places []string
		for _, s := range said {
			if s.of == r.of && s.text == r.text && s.where != "" {
				places = append(places, s.where)
			}
		}
		at := ""
		if places != nil {
			at = " (" + strings.Join(places, "; ") + ")"
		}
		lines = append(lines, r.of+at+": "+r.text)
	}
	return lines
}

// levelOrAny is the level that a question has of a factor, in words.
func levelOrAny(asked []Factor, path string) string {
	if f := asking(asked, path); f != nil {
		return f.Text()
	}
	return "any"
}

// common is what all questions have in common, in words, and the factors in which
// they differ.
func common(all []*Prediction) (same string, differs []Factor) {
	var words []string
	for i, p := range all {
		for _, f := range p.Asked {
			switch {
			case asking(differs, f.Path) != nil:
			case slices.ContainsFunc(all, func(p *Prediction) bool {
				g := asking(p.Asked, f.Path)
				return g == nil || g.Value != f.Value
			}):
				differs = append(differs, f)
			case i == 0:
				words = append(words, f.Label+" "+f.Text())
			}
		}
	}
	switch {
	case words == nil && differs == nil:
		return "as in the run", nil
	case words == nil:
		return "predictions", differs
	}
	return list(words), differs
}

// between is an interval in one unit.
func between(e Estimate, unit string) string {
	if !e.Lo.Known() || !e.Hi.Known() {
		return "–"
	}
	_, suffix := quantity(float64(e.Hi), unit)
	f := conversion(float64(e.Hi), unit)
	return digits(float64(e.Lo)*f, 3) + "–" + digits(float64(e.Hi)*f, 3) + " " + suffix
}

// fewMisses is how many of the held-out cells are listed, those that are
// farthest off.
const fewMisses = 8

func (p *Prediction) checked(b *strings.Builder, width int) {
	wrap(b, fmt.Sprintf("Each cell of %s, left out and predicted from the others. Where predictions are right, %s of the cells lie in their intervals, and as many of the trials.", p.Run, percent(p.Confidence)), width, "")
	b.WriteByte('\n')
	// Where a system has several models of one thing, what is predicted names the model.
	t := textTable{head: []string{"system", "what", "cells", "inside", "trials", "inside", "median distance"}, right: []bool{false, false, true, true, true, true, true}, most: map[int]int{0: mostName}}
	misses := textTable{head: []string{"farthest off", "cell", "system", "what", "measured", "predicted", "interval", "inside"}, right: []bool{false, false, false, false, true, true, true, false}, most: map[int]int{2: mostName}}
	type miss struct {
		c *Calibration
		h HeldOut
	}
	var all []miss
	for i := range p.Checks {
		c := &p.Checks[i]
		t.rows = append(t.rows, []string{c.System, p.named(c), count(int64(c.Cells)), shareOf(c.Inside, c.Cells), count(int64(c.Trials)), shareOf(c.Within, c.Trials), percentOf(c.Distance)})
		if c.Unasked > 0 {
			t.below = append(t.below, fmt.Sprintf("%s, %s: %s not supported by the others", c.System, p.named(c), plural(int64(c.Unasked), "cell is", "cells are")))
		}
		if c.Refused != "" {
			t.below = append(t.below, c.System+", "+p.named(c)+": predictions are refused: "+c.Refused)
		}
		for _, h := range c.Held {
			if h.Refused == "" {
				all = append(all, miss{c, h})
			}
		}
	}
	t.write(b, width)
	slices.SortStableFunc(all, func(a, b miss) int {
		return int(math.Copysign(1, distance(b.h)-distance(a.h)))
	})
	for _, m := range all[:min(fewMisses, len(all))] {
		inside := "yes"
		if !m.h.inside() {
			inside = "no"
		}
		misses.rows = append(misses.rows, []string{m.h.Where, m.h.Cell, m.c.System, p.named(m.c), show(float64(m.h.Measured), m.c.Unit), show(float64(m.h.Time.Value), m.c.Unit), between(m.h.Time, m.c.Unit), inside})
	}
	if misses.rows != nil {
		misses.drop = map[int]int{1: 1}
		misses.write(b, width)
	}
}

// named is what a model is of, with the model itself where the system has several of it.
func (p *Prediction) named(c *Calibration) string {
	n := 0
	for _, other := range p.Checks {
		if other.System == c.System && other.What == c.What {
			n++
		}
	}
	if n < 2 {
		return c.What
	}
	return c.What + " (" + strings.NewReplacer(besideLine, "", " of factors", "", "universal ", "").Replace(c.Model) + ")"
}

// distance is how far a cell lies from its prediction, twice as much being as
// far as half as much.
func distance(h HeldOut) float64 { return math.Abs(math.Log1p(h.off())) }

func shareOf(n, of int) string {
	if of == 0 {
		return "–"
	}
	return percent(float64(n) / float64(of))
}

func percentOf(n Num) string {
	if !n.Known() {
		return "–"
	}
	return percent(float64(n))
}
