package report

import (
	"github.com/plimsoll-project/plimsoll/report/findings"
	"github.com/plimsoll-project/plimsoll/stats"
)

// NumberShape is how the time goes with a knob that is a number, all others at one
// set of levels.
type NumberShape struct {
	System string    `json:"system"`
	Where  string    `json:"where,omitempty"` // the conditions, and the other knobs where they are not at their default
	Path   string    `json:"path"`
	Label  string    `json:"label"`
	Unit   string    `json:"unit"`
	Shape  string    `json:"shape"` // "u", "falling", "rising", "flat", "not shown"
	Why    string    `json:"why"`
	Lowest Num       `json:"lowest"` // the level with the least time
	From   Num       `json:"from"`   // levels that cannot be told from it
	To     Num       `json:"to"`
	Levels []ShapeAt `json:"levels"`
}

// ShapeAt is one level of a number.
type ShapeAt struct {
	Cell       string `json:"cell"`
	At         Num    `json:"at"`
	Value      Num    `json:"value"` // seconds, geometric mean; where some never served the median
	Lo         Num    `json:"lo"`
	Hi         Num    `json:"hi"`
	Ratio      Num    `json:"ratio"` // to the lowest, with an interval corrected for the number of levels
	RatioLo    Num    `json:"ratio_lo"`
	RatioHi    Num    `json:"ratio_hi"`
	Useful     Num    `json:"useful"` // share of the peers, median
	UsefulLo   Num    `json:"useful_lo"`
	UsefulHi   Num    `json:"useful_hi"`
	Timeouts   Num    `json:"timeouts"`
	Trials     int    `json:"trials"`
	Unfinished int    `json:"unfinished"` // never came to serve; in no number here
	// Of a level that is in no fit as some trials never came to serve: this is shown to
	// happen more often than where it was compared.
	Fails bool `json:"fails,omitempty"`

	text string
}

// shapes looks at each numeric factor of three levels or more while nothing else
// changes.
func (r *Report) shapes() {
	for i := range r.factors {
		f := &r.factors[i]
		unit, ok := f.numeric()
		if !ok {
			continue
		}
		type rest struct{ system, where string }
		of := map[rest][]*Synced{}
		var order []rest
		for k := range r.Syncs {
			s := &r.Syncs[k]
			where := s.Where
			if !f.knob() {
				where = r.withoutFactor(s.cell, f.Path, false)
			}
			if more := r.withoutFactor(s.cell, f.Path, true); more != "" {
				if where != "" {
					where += ", "
				}
				where += more
			}
			p := rest{s.System, where}
			if of[p] == nil {
				order = append(order, p)
			}
			of[p] = append(of[p], s)
		}
		for _, p := range order {
			if n := r.numberShape(f, unit, of[p]); n != nil {
				n.System, n.Where = p.system, p.where
				r.Shapes = append(r.Shapes, *n)
			}
		}
	}
}

// withoutFactor names the levels of the other factors: of knobs that are not at
// their default, or of conditions.
func (r *Report) withoutFactor(c *Cell, path string, knobs bool) string {
	var words []string
	for i := range r.factors {
		f := &r.factors[i]
		if l := f.level(c); f.Path != path && f.knob() == knobs && (l > 0 || !knobs && l == 0) {
			words = append(words, f.words(l))
		}
	}
	return joined(words)
}

func (r *Report) numberShape(f *syncFactor, unit string, cells []*Synced) *NumberShape {
	n := &NumberShape{Path: f.Path, Label: f.Label, Unit: unit, Shape: stats.UnknownShape, Lowest: unknown, From: unknown, To: unknown}
	var at []float64
	var obs []stats.ShapeObs
	for l := range f.Levels {
		v, _, _ := f.number(l)
		for _, s := range cells {
			if f.level(s.cell) != l || s.Trials == 0 {
				continue
			}
			x := ShapeAt{Cell: s.Cell, At: Num(v), Value: unknown, Lo: unknown, Hi: unknown, Ratio: unknown, RatioLo: unknown, RatioHi: unknown, Useful: unknown, UsefulLo: unknown, UsefulHi: unknown, Timeouts: unknown,
				Trials: s.Trials, Unfinished: s.unfinished(), text: f.Levels[l].Text()}
			if m := s.time; m.Median.Known() {
				x.Value, x.Lo, x.Hi = m.Median, m.Lo, m.Hi
			}
			if m, ok := s.cell.Metrics["useful_share"]; ok {
				x.Useful, x.UsefulLo, x.UsefulHi = m.Median, m.Lo, m.Hi
			}
			if m, ok := s.cell.Metrics["timeouts"]; ok {
				x.Timeouts = m.Median
			}
			n.Levels = append(n.Levels, x)
			if s.unfinished() > 0 {
				continue
			}
			at = append(at, v)
			for _, t := range s.trials {
				if v := t.Metrics["sync_time"]; v > 0 {
					obs = append(obs, stats.ShapeObs{Level: len(at) - 1, Block: t.Block, Value: v})
				}
			}
		}
	}
	if len(n.Levels) < 3 {
		return nil
	}
	failing := n.failing()
	if len(at) == 0 || len(at)+failing < 3 {
		n.Why = "fewer than three levels at which every node came to serve, or is shown not to"
		return n
	}
	fit, err := stats.Shape(at, obs, Confidence)
	if err != nil {
		n.Why = err.Error()
		return n
	}
	n.Lowest, n.From, n.To = Num(fit.Levels[fit.Lowest].At), Num(fit.Levels[fit.From].At), Num(fit.Levels[fit.To].At)
	for _, l := range fit.Levels {
		for i := range n.Levels {
			if x := &n.Levels[i]; float64(x.At) == l.At {
				x.Ratio = Num(l.Ratio.Mid)
				if l.Ratio.Bounded() {
					x.RatioLo, x.RatioHi = Num(l.Ratio.Lo), Num(l.Ratio.Hi)
				}
			}
		}
	}
	n.Shape, n.Why = findings.ShapeOf(fit, n.levels(), n.Unit)
	return n
}

// failing marks the levels at which nodes are shown to fail, and counts them.
func (n *NumberShape) failing() int {
	levels := n.levels()
	count := findings.ShowFailing(levels)
	for i := range levels {
		n.Levels[i].Fails = levels[i].Shown
	}
	return count
}

// levels are the levels as rules look at them.
func (n *NumberShape) levels() []findings.Level {
	var all []findings.Level
	for _, x := range n.Levels {
		all = append(all, findings.Level{Name: x.text, At: float64(x.At), Left: x.Unfinished, Trials: x.Trials, Shown: x.Fails})
	}
	return all
}

// words say what the shape is.
func (n *NumberShape) words() string {
	s := n.found()
	return s.Words()
}

// found is the shape as rules look at it.
func (n *NumberShape) found() findings.Shape {
	return findings.Shape{Knob: n.Label, Where: n.Where, Unit: n.Unit, Shape: n.Shape, Why: n.Why, Lowest: float64(n.Lowest), From: float64(n.From), To: float64(n.To)}
}

// uShape: how the time goes with numbers.
func uShape(r *Report) []Finding {
	var all []findings.Shape
	for i := range r.Shapes {
		n := &r.Shapes[i]
		s := n.found()
		if len(r.Systems) > 1 {
			s.Where = joined([]string{n.System, n.Where})
		}
		s.Levels = n.levels()
		all = append(all, s)
	}
	return findings.ShapeFound(all)
}
