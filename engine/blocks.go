package engine

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
)

// blocks executes the plan: warm-up blocks, then measured blocks, each with every cell
// once. It continues where an earlier session ended.
func (r *run) blocks(ctx context.Context) (*scenario.Stop, error) {
	conditions := &exits{Exit: r.plan.Experiment.Exit}
	// A run that was ended by an exit condition stays ended: resuming does not change its
	// plan, which contains the condition.
	if s := conditions.reached(r.soFar(record.Trial{})); s != nil {
		return s, nil
	}
	met, err := r.continued()
	if err != nil {
		return nil, err
	}
	consecutive := 0
	var first firstBlock
	for job := range r.schedule() {
		cell, block := job.cell, job.block
		if why := first.spoilt(block); why != "" && r.cfg.StopInvalid {
			r.invalid = why
			r.event("phase", "stopped", r.invalid, 0)
			return nil, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		end := func() {}
		if r.cfg.BetweenTrials != nil {
			end = r.cfg.BetweenTrials(ctx)
		}
		r.say(Event{Kind: EventBegin, N: job.n, Total: job.total, Cell: cell.ID, Block: block})
		r.stoppedBy = nil
		trial, err := r.trial(ctx, cell, block)
		end()
		if err != nil {
			return nil, err
		}
		r.say(Event{Kind: EventEnd, Trial: trial, Cell: cell.ID})
		if trial.State == record.Failed {
			r.failed++
			consecutive++
			if consecutive >= failuresInARow {
				return nil, fmt.Errorf("engine: %d trials in a row could not be executed; the last, %s: %s",
					consecutive, cell.ID, trial.Error)
			}
		} else {
			consecutive = 0
			first.add(trial)
			r.done[trialKey{cell.ID, block}] = trial
		}
		for _, s := range []*scenario.Stop{r.stoppedBy, conditions.reached(r.soFar(trial))} {
			if s == nil {
				continue
			}
			r.event("phase", "exit condition", s.Error(), 0)
			if met == nil || !endsTrialOnly(s) { // of those that end only a trial, the first is reported
				met = s
				err = r.rec.Meta("stopped", s.Error())
			}
			if err != nil || !endsTrialOnly(s) {
				return met, err
			}
		}
	}
	return met, nil
}

// continued returns the exit condition that ended a trial, but not the run, in an earlier session.
func (r *run) continued() (met *scenario.Stop, err error) {
	if !r.cfg.Resume {
		return nil, nil
	}
	if s := r.earlierStop(); s != nil && endsTrialOnly(s) {
		return s, nil
	}
	return nil, r.rec.Meta("stopped", "")
}

// firstBlock are the trials of the first measured block of this session.
type firstBlock []record.Trial

func (f *firstBlock) add(trial record.Trial) {
	if !trial.Warmup && trial.State == record.Done && (len(*f) == 0 || (*f)[0].Block == trial.Block) {
		*f = append(*f, trial)
	}
}

// spoilt judges the block before a trial of another one: it returns the reasons if none of its trials is valid (the
// next ones would be no better), otherwise an empty text.
func (f firstBlock) spoilt(next int) string {
	if len(f) == 0 || f[0].Block == next {
		return ""
	}
	reasons := map[string]int{}
	for _, t := range f {
		if t.Valid() {
			return ""
		}
		for _, why := range t.Invalid {
			reasons[why]++
		}
	}
	var why []string
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		why = append(why, fmt.Sprintf("%s %d", reason, reasons[reason]))
	}
	return fmt.Sprintf("none of the %d trials of the first block is valid (%s)", len(f), strings.Join(why, ", "))
}

// failuresInARow is the number of failed trials in a row that end the run: something is
// broken that retrying does not fix.
const failuresInARow = 5

func (r *run) soFar(last record.Trial) progressSoFar {
	return progressSoFar{
		Seconds:       r.earlier + time.Since(r.begun).Seconds(),
		Bytes:         r.bytes,
		TrialFinished: record.SumOutcomes(last.Outcomes, record.Outcome.Finished),
		TrialFailures: record.SumOutcomes(last.Outcomes, record.Outcome.ServerFailure),
	}
}

// job is a trial to execute: the n-th of at most total.
type job struct {
	n, total int
	cell     experiment.Cell
	block    int
}

// schedule returns the trials that are left to execute, in order.
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

// complete reports whether the whole plan has been executed.
func (r *run) complete() bool {
	for range r.schedule() {
		return false
	}
	return true
}

// Order returns the order of the cells within one block: a permutation of 0…n-1 that
// depends only on the seed and the block, so that a resumed run keeps its order. All cells
// of a block are executed before the next block begins, and each block has its own order,
// so that drift of the machine affects all cells alike (a randomised complete block
// design).
func Order(seed uint64, block, n int) []int {
	return rand.New(rand.NewPCG(seed, uint64(block)+1)).Perm(n)
}
