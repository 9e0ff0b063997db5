package stats

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// ThroughputModel is the law of [Scaling] to ask for numbers of users that have no
// trial. Near its best fit the law is taken for its tangent, so that what cells
// miss it by and what blocks and trials differ by add up as in a [LevelModel].
type ThroughputModel struct {
	Levels, Trials int
	Why            error   // why a prediction must not be made at all; nil: it may
	Misfit         float64 // standard deviation, as a share, by which levels miss it beyond their noise

	loads  []Load
	levels []Level
	best   law
	fit    *cellFit
}

// FitThroughput fits the law. That the trials do not support a prediction is in
// its Why.
func FitThroughput(loads []Load) *ThroughputModel {
	m := &ThroughputModel{Trials: len(loads), loads: loads}
	levels, err := levelsOf(loads)
	if err != nil {
		m.Why = err
		return m
	}
	m.Levels, m.levels = len(levels), levels
	m.best, m.fit = throughputAt(levels, loads)
	m.Misfit = m.fit.misfit()
	if m.fit.rejected() && m.Misfit >= nearLevelMisfit {
		m.Why = fmt.Errorf("the universal scalability law does not hold: levels of concurrency miss it by %.0f %% beyond what their repetitions differ by (%s)", 100*m.Misfit, formatP(m.fit.p))
	}
	return m
}

func throughputAt(levels []Level, loads []Load) (law, *cellFit) {
	best := bestLaw(levels, meansOf(levels), true, true)
	trials := make([]cellTrial, len(loads))
	for i, l := range loads {
		trials[i] = cellTrial{cell: int(l.N), block: l.Block, row: best.tangent(l.N), log: math.Log(l.X) - best.log(l.N)}
	}
	return best, fitCells(trials, fitPure(trials))
}

// tangent is by how much ln X changes with σ and with κ.
func (l law) tangent(n float64) []float64 {
	d := 1 + l.sigma*(n-1) + l.kappa*n*(n-1)
	return []float64{-(n - 1) / d, -n * (n - 1) / d}
}

// Supports says why the law must not be asked for n users; nil: it may be.
func (m *ThroughputModel) Supports(n float64) error {
	if m.Why != nil {
		return m.Why
	}
	if lo, hi := m.levels[0].N, m.levels[len(m.levels)-1].N; n < lo || n > hi {
		return fmt.Errorf("a concurrency of %g is outside of what was run, %g to %g", n, lo, hi)
	}
	return nil
}

// Predict is the throughput of n users: the median of so many trials, run at
// another time, lies within the interval at conf.
func (m *ThroughputModel) Predict(n float64, trials int, conf float64) Interval {
	if err := m.Supports(n); err != nil {
		return unknown(m.Trials, err.Error())
	}
	return m.at(n, trials, true, conf)
}

func (m *ThroughputModel) at(n float64, trials int, elsewhere bool, conf float64) Interval {
	row := make([]float64, len(m.fit.columns))
	row[0] = 1
	copy(row[m.fit.first:], m.best.tangent(n))
	return m.fit.around(m.best.log(n), m.fit.reach(row, trials, elsewhere, conf), conf)
}

// HoldOut leaves each level out in turn and predicts it from the others, as
// [LevelModel.HoldOut] does; the first and the last are not supported by them.
// Cell is the number of users.
func (m *ThroughputModel) HoldOut(conf float64) []LevelHeldOut {
	var held []LevelHeldOut
	for _, l := range m.levels {
		h := LevelHeldOut{Cell: int(l.N), Trials: l.n}
		var values []float64
		var others []Load
		for _, o := range m.loads {
			if o.N == l.N {
				values = append(values, o.X)
			} else {
				others = append(others, o)
			}
		}
		h.Value = Median(values)
		rest := &ThroughputModel{Trials: len(others), loads: others, levels: slices.DeleteFunc(slices.Clone(m.levels), func(x Level) bool { return x.N == l.N })}
		// Three parameters and levels left to see whether they fit.
		err := errors.New("too few levels are left to test the law with")
		if len(rest.levels) >= FewestLevels {
			rest.best, rest.fit = throughputAt(rest.levels, others)
			err = rest.Supports(l.N)
		}
		if err != nil {
			h.Median = unknown(len(others), err.Error())
			h.Trial = h.Median
		} else {
			h.Median, h.Trial = rest.at(l.N, h.Trials, false, conf), rest.at(l.N, 1, false, conf)
		}
		for _, v := range values {
			if h.Trial.Bounded() && h.Trial.Contains(v) {
				h.Inside++
			}
		}
		held = append(held, h)
	}
	return held
}
