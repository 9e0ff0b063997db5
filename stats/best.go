package stats

import (
	"fmt"
	"math"
)

// BestFit says which combination of levels has the lowest value.
type BestFit struct {
	Cells []BestCell // those that have trials, the lowest first
	// Tied is how many of them, from the first on, do not differ significantly from the lowest:
	// with at least the confidence asked for, the one that truly is the lowest is
	// among these. 1: it is the lowest.
	Tied     int
	Warnings []string
}

// BestCell is one combination.
type BestCell struct {
	Levels []int
	Value  float64  // geometric mean, in the mean of all blocks
	N      int      // trials
	Ratio  Interval // to the lowest; its lower end is above 1 where Tied is false
	// that it is no higher than the lowest, corrected for the number of combinations; where one of
	// the two has a single trial, as if its noise were the others'
	P    float64
	Tied bool
}

// Best finds the combination with the lowest value and those that do not
// differ from it: all that are not significantly higher than the lowest seen, each at
// 1−conf divided by the number of comparisons. The truly lowest is lost from the
// set only when one of its own comparisons errs, so that the set has it with
// confidence conf, whichever was seen lowest (multiple comparisons with the best:
// Gupta 1965; Hsu, Multiple Comparisons, 1996, ch. 4; by Bonferroni, since
// combinations need not have the same noise).
//
// A combination with a single trial differs from none. Combinations without
// trials are not considered. Errors are as of [Factorial].
func Best(factors []FactorialFactor, obs []FactorialObs, conf float64) (BestFit, error) {
	d, err := newDesign(factors, obs, conf)
	if err != nil {
		return BestFit{}, err
	}
	return d.best(conf), nil
}

func (d *design) best(conf float64) BestFit {
	m, blocked := d.paired()
	fit := BestFit{Warnings: append(m.sparse(), d.unpaired(blocked)...)}
	lowest := m.cells[m.lowest()]
	others := max(1, len(m.cells)-1)
	trials := map[string]int{}
	for _, o := range d.obs {
		trials[cellKey(o.Levels)]++
	}
	for _, levels := range m.cells {
		at := m.cell(levels)
		c := BestCell{Levels: levels, Value: math.Exp(dot(at, m.y)), N: trials[cellKey(levels)]}
		if cellKey(levels) == cellKey(lowest) {
			c.Ratio, c.P, c.Tied = Interval{Mid: 1, Lo: 1, Hi: 1, Conf: conf, N: len(d.obs)}, 1, true
		} else {
			r := m.ratio(difference(at, m.cell(lowest)))
			c.Ratio = r.interval(conf, (1-conf)/float64(others))
			c.P = min(1, r.above()*float64(others))
			// Also when nothing was repeated. A single trial says nothing of its own noise,
			// so it shows no more than two that disagree.
			c.Tied = !(c.P <= 1-conf) || min(c.N, trials[cellKey(lowest)]) < 2
		}
		fit.Cells = append(fit.Cells, c)
		if c.Tied {
			fit.Tied++
		}
	}
	// Those that are tied come first, though one with few trials may be higher than
	// one with many that is not.
	sortBy(fit.Cells, func(c BestCell) float64 {
		if c.Tied {
			return math.Log(c.Ratio.Mid) - 1e6
		}
		return math.Log(c.Ratio.Mid)
	})
	return fit
}

// sparse says what limits a comparison of combinations.
func (m *cellModel) sparse() []string {
	if m.freedom == 0 {
		return []string{"no combination was repeated: nothing says how far trials differ by chance"}
	}
	once := 0
	for _, h := range m.leverage {
		if 1-h < 1e-8 {
			once++
		}
	}
	if once > 0 {
		return []string{fmt.Sprintf("%d combinations have one trial: their noise is taken from the others", once)}
	}
	return nil
}

func (d *design) unpaired(blocked bool) []string {
	if blocked || len(d.blocks) == 1 {
		return nil
	}
	return []string{fmt.Sprintf("not compared within the %d blocks: they have too few combinations in common",
		len(d.blocks))}
}
