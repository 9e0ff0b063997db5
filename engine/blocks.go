package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
)

// blocks executes the plan: warm-up blocks first, then measured blocks, each
// with every cell once. It goes on where an earlier session ended.
func (r *run) blocks(ctx context.Context) (*scenario.Stop, error) {
	conditions := exitConditions(r.plan.Experiment.Exit)
	// A run that an exit condition has ended stays ended: its plan, and the
	// condition in it, do not change by resuming.
	if s := firstMet(conditions, r.soFar(record.Trial{})); s != nil {
		return s, nil
	}
	var met *scenario.Stop // the first condition that ended a trial, not the run
	if r.cfg.Resume {
		if s := r.earlierStop(); s != nil && endsTrialOnly(s) {
			met = s
		} else if err := r.rec.Meta("stopped", ""); err != nil { // it goes on
			return nil, err
		}
	}
	consecutive := 0
	first := firstBlock{}
	for job := range r.schedule() {
		cell, block := job.cell, job.block
		if stop := first.over(block); stop != nil && r.cfg.StopInvalid {
			r.event("phase", "stopped", stop.Error(), 0)
			return nil, stop
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		end := r.alone(ctx, cell, block)
		r.say.Begin(job.n, job.total, cell, block, block < 0)
		r.stoppedBy = nil
		trial, err := r.trial(ctx, cell, block)
		end()
		if err != nil {
			return nil, err
		}
		r.say.End(trial, cell)
		if trial.State == record.Failed {
			r.failed++
			consecutive++
			if consecutive >= failuresInARow {
				return nil, fmt.Errorf("engine: %d trials in a row could not be executed; the last, %s: %s",
					consecutive, cell.ID, trial.Error)
			}
		} else {
			consecutive = 0
			first.count(trial)
			r.done[trialKey{cell.ID, block}] = trial
		}
		s := r.stoppedBy
		if s != nil && endsTrialOnly(s) {
			r.event("phase", "exit condition", s.Error(), 0)
			if met == nil {
				met = s
				if err := r.rec.Meta("stopped", s.Error()); err != nil {
					return nil, err
				}
			}
			s = nil
		}
		if s == nil {
			s = firstMet(conditions, r.soFar(trial))
		}
		if s != nil {
			r.event("phase", "exit condition", s.Error(), 0)
			return s, errors.Join(r.rec.Meta("stopped", s.Error()))
		}
	}
	return met, nil
}

// alone waits until a trial has the client's machine for itself, until end is called. What
// disturbs it is recorded: others' CPU, and with it the trial's validity, may come from that.
func (r *run) alone(ctx context.Context, cell experiment.Cell, block int) (end func()) {
	if r.cfg.Alone == nil {
		return func() {}
	}
	disturbed := func(err error) {
		if err != nil && ctx.Err() == nil {
			r.event("note", "trial disturbed", fmt.Sprintf("%s, %s: %v", cell.ID, record.BlockName(block), err), 0)
			r.say.Note(fmt.Sprintf("%s was disturbed: %v", cell.ID, err))
		}
	}
	release, err := r.cfg.Alone(ctx)
	disturbed(err)
	return func() { disturbed(release()) }
}

// InvalidBlock is the first block of a session when no trial of it is valid: the
// next ones would be no better.
type InvalidBlock struct {
	Trials  int
	Reasons map[string]int // trials by reason
}

func (b *InvalidBlock) Error() string {
	var why []string
	for _, reason := range slices.Sorted(maps.Keys(b.Reasons)) {
		why = append(why, fmt.Sprintf("%s %d", reason, b.Reasons[reason]))
	}
	return fmt.Sprintf("none of the %d trials of the first block is valid (%s)", b.Trials, strings.Join(why, ", "))
}

// firstBlock counts the trials of the first measured block that a session executes.
type firstBlock struct {
	InvalidBlock
	block int
	valid bool
	left  bool
}

func (f *firstBlock) count(t record.Trial) {
	if t.Warmup || f.left || t.State != record.Done {
		return
	}
	if f.Trials == 0 {
		f.block, f.Reasons = t.Block, map[string]int{}
	}
	f.Trials++
	f.valid = f.valid || t.Valid()
	for _, why := range t.Invalid {
		f.Reasons[why]++
	}
}

// over is the first block, once another begins, when it has no valid trial.
func (f *firstBlock) over(next int) *InvalidBlock {
	if f.left || f.Trials == 0 || next == f.block {
		return nil
	}
	if f.left = true; f.valid {
		return nil
	}
	return &f.InvalidBlock
}

// failuresInARow trials that cannot be executed at all end the run: something
// is broken that patience does not mend.
const failuresInARow = 5

func (r *run) soFar(last record.Trial) progressSoFar {
	p := progressSoFar{Seconds: r.earlier + time.Since(r.begun).Seconds(), Bytes: r.bytes}
	for _, o := range record.Outcomes() {
		n := last.Outcomes[o.String()]
		if o.Finished() {
			p.TrialFinished += n
		}
		if o.ServerFailure() {
			p.TrialFailures += n
		}
	}
	return p
}
