package report

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// WriteText writes the prediction for a terminal of the given width (100 when 0).
func (p *Prediction) WriteText(w io.Writer, width int) error {
	if width <= 0 {
		width = 100
	}
	var b strings.Builder
	if p.Checks != nil {
		p.checked(&b, width)
	} else {
		p.answered(&b, width)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteJSON writes the prediction; docs/predict.md describes its fields.
func (p *Prediction) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(p)
}

func (p *Prediction) answered(b *strings.Builder, width int) {
	wrap(b, fmt.Sprintf("%s, from the models of %s; nothing was executed. An interval has %s of what would be measured: of medians of trials, of single operations. Held out: the cells that lie in their intervals when each is predicted from the others.",
		capital(p.askedWords()), p.Run, percent(p.Confidence)), width, "")
	b.WriteByte('\n')
	t := textTable{head: []string{"system", "what", "time", "median of a trial", "one operation", "link alone", "held out"}, right: []bool{false, false, true, true, true, true, false}}
	for _, a := range p.Answers {
		if a.Refused != "" {
			t.below = append(t.below, "no prediction for "+a.System+", "+a.What+": "+a.Refused)
			continue
		}
		t.rows = append(t.rows, []string{clip(a.System, 16), a.What, show(float64(a.Time.Value), "s"), between(a.Time), between(a.Single), number(a.Line, "s").Text, fmt.Sprintf("%d of %d", a.Inside, a.Cells)})
		if a.Note != "" {
			t.below = append(t.below, a.System+", "+a.What+": "+a.Note)
		}
	}
	if t.rows == nil {
		t.head = []string{}
	}
	t.write(b, width)
}

func (p *Prediction) askedWords() string {
	var words []string
	for _, f := range p.Asked {
		words = append(words, f.Label+" "+f.Text())
	}
	if words == nil {
		return "as in the run"
	}
	return list(words)
}

// between is an interval in one unit.
func between(e Estimate) string {
	if !e.Lo.Known() || !e.Hi.Known() {
		return "–"
	}
	_, suffix := quantity(float64(e.Hi), "s")
	f := conversion(float64(e.Hi), "s")
	return digits(float64(e.Lo)*f, 3) + "–" + digits(float64(e.Hi)*f, 3) + " " + suffix
}

// fewMisses is how many of the held-out cells are listed, those that are
// farthest off.
const fewMisses = 8

func (p *Prediction) checked(b *strings.Builder, width int) {
	wrap(b, fmt.Sprintf("Each cell of %s, left out and predicted from the others. Where predictions are right, %s of the cells lie in their intervals, and as many of the trials.", p.Run, percent(p.Confidence)), width, "")
	b.WriteByte('\n')
	t := textTable{head: []string{"system", "what", "cells", "inside", "trials", "inside", "median distance"}, right: []bool{false, false, true, true, true, true, true}}
	misses := textTable{head: []string{"farthest off", "cell", "system", "what", "measured", "predicted", "interval", "inside"}, right: []bool{false, false, false, false, true, true, true, false}}
	type miss struct {
		c *Calibration
		h HeldOut
	}
	var all []miss
	for i := range p.Checks {
		c := &p.Checks[i]
		t.rows = append(t.rows, []string{clip(c.System, 16), c.What, count(int64(c.Cells)), shareOf(c.Inside, c.Cells), count(int64(c.Trials)), shareOf(c.Within, c.Trials), percentOf(c.Distance)})
		if c.Unasked > 0 {
			t.below = append(t.below, fmt.Sprintf("%s, %s: %s not supported by the others", c.System, c.What, plural(int64(c.Unasked), "cell is", "cells are")))
		}
		if c.Refused != "" {
			t.below = append(t.below, c.System+", "+c.What+": predictions are refused: "+c.Refused)
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
		misses.rows = append(misses.rows, []string{m.h.Where, m.h.Cell, clip(m.c.System, 16), m.c.What, show(float64(m.h.Measured), "s"), show(float64(m.h.Time.Value), "s"), between(m.h.Time), inside})
	}
	if misses.rows != nil {
		misses.drop = map[int]int{1: 1}
		misses.write(b, width)
	}
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
