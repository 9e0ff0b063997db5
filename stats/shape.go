package stats

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// ShapeObs is a trial at a level of a number that was varied.
type ShapeObs struct {
	Level int // index into the levels
	Block int // trials of the same block differ in nothing but the level, noise aside
	Value float64
}

// Shapes of [ShapeFit].
const (
	UShape       = "u"         // falls, then rises: both ends are higher than a level between them
	FallingShape = "falling"   // the first level is higher than the lowest, the last is not shown to be
	RisingShape  = "rising"    // the last level is higher than the lowest, the first is not shown to be
	FlatShape    = "flat"      // all levels are within a tenth of the lowest
	UnknownShape = "not shown" // the trials do not tell
)

// flatShape is how much higher than the lowest a level may at most be where all are
// called equal.
const flatShape = 1.1

// ShapeFit says how a value goes with a number.
type ShapeFit struct {
	Shape  string
	Levels []ShapeLevel // in rising order
	Lowest int          // among Levels
	// From and To are the first and the last of Levels that cannot be told from the
	// lowest; with the confidence asked for, the truly lowest is one of these or
	// between them.
	From, To int
	Why      string // one sentence, with figures
	Warnings []string
}

// ShapeLevel is what was seen at one level.
type ShapeLevel struct {
	At    float64
	Value float64  // geometric mean, in the mean of all blocks
	Ratio Interval // to the lowest
	Tied  bool     // not shown to be higher than the lowest
}

// Shape tells whether a value falls and then rises again with a number, such as
// a timeout that can be too short and too long. A U is told when the lowest and
// the highest level are both shown to be higher than a level between them, each
// at 1−conf corrected for the number of levels it is compared with: an
// intersection of two tests, so a value that only falls is called a U in at most
// 1−conf of the experiments (Berger 1982; Lind and Mehlum, With or without U?,
// 2010, of a parabola; none is assumed here). In the same way a value that only
// rises is called falling no more often.
//
// An error: levels that are no numbers or not told apart, no trials, values
// without a logarithm.
func Shape(levels []float64, obs []ShapeObs, conf float64) (ShapeFit, error) {
	order := make([]int, len(levels))
	for i, v := range levels {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return ShapeFit{}, fmt.Errorf("shape: level %v is no finite number", v)
		}
		if slices.Contains(levels[:i], v) {
			return ShapeFit{}, fmt.Errorf("shape: level %v is there twice", v)
		}
		order[i] = i
	}
	sortBy(order, func(i int) float64 { return levels[i] })
	factor := FactorialFactor{Name: "level"}
	for _, i := range order {
		factor.Levels = append(factor.Levels, strconv.FormatFloat(levels[i], 'g', -1, 64))
	}
	var trials []FactorialObs
	for _, o := range obs {
		if o.Level < 0 || o.Level >= len(levels) {
			return ShapeFit{}, fmt.Errorf("shape: a trial has level %d of %d", o.Level, len(levels))
		}
		trials = append(trials, FactorialObs{Levels: []int{slices.Index(order, o.Level)}, Block: o.Block, Value: o.Value})
	}
	if len(trials) == 0 {
		return ShapeFit{}, errors.New("shape: no trials")
	}
	best, err := Best([]FactorialFactor{factor}, trials, conf)
	if err != nil {
		return ShapeFit{}, fmt.Errorf("shape: %w", err)
	}
	lowest := best.Cells[0].Levels[0]
	sortBy(best.Cells, func(c BestCell) float64 { return float64(c.Levels[0]) })
	fit := ShapeFit{Warnings: best.Warnings, From: -1}
	for i, c := range best.Cells {
		l := c.Levels[0]
		if l == lowest {
			fit.Lowest = i
		}
		if c.Tied {
			fit.To = i
			if fit.From < 0 {
				fit.From = i
			}
		}
		fit.Levels = append(fit.Levels, ShapeLevel{At: levels[order[l]], Value: c.Value, Ratio: c.Ratio, Tied: c.Tied})
	}
	fit.Shape, fit.Why = fit.tell()
	return fit, nil
}

func (f ShapeFit) tell() (shape, why string) {
	first, last := f.Levels[0], f.Levels[len(f.Levels)-1]
	lowest := f.Levels[f.Lowest]
	most := 0.0
	for _, l := range f.Levels {
		most = max(most, l.Ratio.Hi)
	}
	over := func(l ShapeLevel) string {
		return fmt.Sprintf("%.3g times (at least %.3g times) as much at %.4g as at %.4g", l.Ratio.Mid, l.Ratio.Lo, l.At, lowest.At)
	}
	switch {
	case len(f.Levels) == 1:
		return UnknownShape, "one level alone"
	case !first.Tied && !last.Tied:
		return UShape, over(first) + ", " + over(last)
	case !first.Tied:
		return FallingShape, over(first) + "; the highest level is not shown to be higher than the lowest value"
	case !last.Tied:
		return RisingShape, over(last) + "; the lowest level is not shown to be higher than the lowest value"
	case most <= flatShape:
		return FlatShape, fmt.Sprintf("no level is more than %.3g times the lowest value", most)
	}
	return UnknownShape, "neither end is shown to be higher than the lowest value, nor are all shown to be alike"
}
