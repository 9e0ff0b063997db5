package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/plimsoll-project/plimsoll/testbed"
)

// Busy looks at what others use of this machine's CPU: by the measure and the limit
// that decide later whether a trial is valid. Empty: trials can be.
func Busy(ctx context.Context, cfg Config) []Problem {
	e := cfg.Plan.Experiment
	limit := float64(e.Limits.Others)
	// What polls tell of a system is no less true on a busy machine.
	if limit <= 0 || e.Collect != nil || slices.Contains(e.Skip, "machine") || slices.Contains(e.Skip, busyName) {
		return nil
	}
	what := testbed.Here().Busy(ctx, limit)
	if what == "" {
		return nil
	}
	return []Problem{{
		Name: busyName, What: fmt.Sprintf("%s; with more than %.0f %% (limits.others) a trial is invalid", what,
			100*limit),
		Hint: "wait until it is quiet, or end the other programs",
	}}
}

const busyName = "busy"

// awaitQuiet waits for a while for a machine on which trials can be valid, and goes on
// then in any case: those that are not say so.
func (r *run) awaitQuiet(ctx context.Context) error {
	begun := time.Now()
	for said := false; ; said = true {
		busy := Busy(ctx, r.cfg)
		waited := time.Since(begun).Round(time.Second)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case len(busy) == 0 && said:
			r.say.Note(fmt.Sprintf("the machine is quiet after %s", waited))
			return nil
		case len(busy) == 0:
			return nil
		case time.Since(begun) >= r.cfg.WaitQuiet:
			r.say.Note(busy[0].What + "; continuing anyway")
			return nil
		case !said:
			r.say.Note(fmt.Sprintf("%s; waiting up to %s for quiet", busy[0].What, r.cfg.WaitQuiet))
		}
	}
}
