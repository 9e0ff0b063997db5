package engine

import (
	"iter"
	"math/rand/v2"

	"github.com/plimsoll-project/plimsoll/experiment"
)

// job is a trial that is to be executed: the n-th of at most total.
type job struct {
	n, total int
	cell     experiment.Cell
	block    int
}

// schedule is what is left to execute, in its order.
func (r *run) schedule() iter.Seq[job] {
	return func(yield func(job) bool) {
		total, n := len(r.plan.Cells)*(r.plan.Warmup+r.plan.Blocks), 0
		for block := -r.plan.Warmup; block < r.plan.Blocks; block++ {
			for _, i := range Order(r.plan.Experiment.Seed, block+r.plan.Warmup, len(r.plan.Cells)) {
				cell := r.plan.Cells[i]
				n++
				if _, done := r.done[trialKey{cell.ID, block}]; done {
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
