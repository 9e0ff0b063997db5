package stats

import (
	"errors"
	"math"
)

// Gain is the ratio of the lowest combination to the default.
type Gain struct {
	To       []int // levels of the lowest combination that was measured
	Ratio    Interval
	Warnings []string
}

// BestGain compares the lowest combination with the default: the ratio of their
// geometric means, within blocks. As the lowest was chosen by the same trials, its
// interval is at 1−conf divided by the number of combinations it was chosen from; the
// middle still promises a little too much where combinations are close to each other.
//
// Errors are as of [Factorial]; and a default without trials.
func BestGain(factors []FactorialFactor, obs []FactorialObs, conf float64) (Gain, error) {
	d, err := newDesign(factors, obs, conf)
	if err != nil {
		return Gain{}, err
	}
	cells, blocked := d.paired()
	g := Gain{To: cells.cells[cells.lowest()], Warnings: append(cells.sparse(), d.unpaired(blocked)...)}
	from, to := cells.cell(make([]int, len(factors))), cells.cell(g.To)
	if from == nil {
		return Gain{}, errors.New("factorial: the default combination has no trial")
	}
	by := cells.linearFit
	if by.freedom == 0 { // nothing was repeated: the model's misfit has to do
		by = d.model().linearFit
	}
	tail := (1 - conf) / 2 / math.Max(1, float64(len(cells.cells)-1))
	g.Ratio = by.ratio(difference(to, from)).interval(conf, tail)
	return g, nil
}
