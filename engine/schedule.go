package engine

import (
	"iter"
	"math/rand/v2"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/stats"
)

// job is a trial that is to be executed: the n-th of at most total.
type job struct {
	n, total int
	cell     experiment.Cell
	block    int
}

// schedule is what is left to execute, in its order. What the run has done by then
// can make a trial unnecessary.
func (r *run) schedule() iter.Seq[job] {
	return func(yield func(job) bool) {
		total, n := len(r.plan.Cells)*(r.plan.Warmup+r.plan.Blocks), 0
		for block := -r.plan.Warmup; block < r.plan.Blocks; block++ {
			narrow := r.narrowGroups(block)
			for _, i := range Order(r.plan.Experiment.Seed, block+r.plan.Warmup, len(r.plan.Cells)) {
				cell := r.plan.Cells[i]
				n++
				if _, done := r.done[trialKey{cell.ID, block}]; done || narrow[cell.Group()] {
					continue
				}
				if !yield(job{n, total, cell, block}) {
					return
				}
			}
		}
	}
}

// complete reports whether nothing of the plan is left to execute.
func (r *run) complete() bool {
	for range r.schedule() {
		return false
	}
	return true
}

// Order is the order of the cells within one block: a permutation of 0…n-1
// that depends on the seed and the block alone, so that a resumed run goes on
// in the order it had. All cells of a block are executed before the next block
// begins, each block in an order of its own, so that drift of the machine hits
// every cell alike (a randomised complete block design).
func Order(seed uint64, block, n int) []int {
	return rand.New(rand.NewPCG(seed, uint64(block)+1)).Perm(n)
}

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

// cellValues returns the valid values of a metric that were measured before a
// block, per cell. Before, and not until now: a resumed run must decide as the
// interrupted one did.
func (r *run) cellValues(metric string, before int) map[string][]float64 {
	values := map[string][]float64{}
	for key, t := range r.done {
		if v, ok := t.Metrics[metric]; ok && t.Valid() && key.block < before {
			values[key.cell] = append(values[key.cell], v)
		}
	}
	return values
}

func cellsByGroup(cells []experiment.Cell) map[string][]experiment.Cell {
	groups := map[string][]experiment.Cell{}
	for _, c := range cells {
		groups[c.Group()] = append(groups[c.Group()], c)
	}
	return groups
}
