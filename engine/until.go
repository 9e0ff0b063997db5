package engine

import (
	"github.com/plimsoll-project/plimsoll/stats"
)

// confidence of the interval that `repetitions: until` narrows.
const confidence = 0.95

// narrowGroups are the groups of cells that need no further block: after the
// least number of blocks, those in which every cell's interval of the median is
// narrow enough. A group ends as a whole, because its systems are compared
// block by block.
//
// Looking again after each block makes the final interval a little too narrow
// (optional stopping); the report says which runs stopped in this way.
func (r *run) narrowGroups(block int) map[string]bool {
	rep := r.plan.Experiment.Repetitions
	if rep.Until == nil || block < rep.Min {
		return nil
	}
	values := r.cellValues(rep.Until.Metric, block)
	narrow := map[string]bool{}
	for group, cells := range cellsByGroup(r.plan.Cells) {
		narrow[group] = true
		for _, c := range cells {
			if !narrowEnough(values[c.ID], float64(rep.Until.Within)) {
				narrow[group] = false
			}
		}
	}
	return narrow
}

func narrowEnough(values []float64, within float64) bool {
	half := stats.Halfwidth(values, confidence)
	return half <= within // false for NaN: too few values
}
