package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
)

// continues reports whether interrupted trials are continued by the next session instead of
// starting over.
func (c Config) continues() bool { return c.Plan.Experiment.LoadTest() }

// revives reports whether a deployment of a system can be started again on its data.
func (c Config) revives(use experiment.SystemUse) bool {
	return !use.Attached() && infoOf(c.Systems, use).Kept != ""
}

// nodesDir is the directory of a deployment that outlives a session: it is in the run
// directory, because the scratch directory is removed with the process.
func (c Config) nodesDir(name string) string { return filepath.Join(c.Dir, "nodes", name) }

// canContinue reports whether an interrupted trial is continued. Trials that cannot be continued are
// added to startedOver with the reason.
func (r *run) canContinue(t record.Trial) bool {
	_, use := r.cellAndUse(t.Cell)
	if t.State != record.Running || !r.cfg.continues() {
		return false
	}
	if use.Attached() {
		return true
	}
	why := "it cannot be brought up again with its data"
	if r.cfg.revives(use) {
		_, err := os.Stat(r.cfg.nodesDir(use.Name))
		if err == nil {
			return true
		}
		why = fmt.Sprintf("its data is gone (%v)", err)
	}
	r.startedOver = append(r.startedOver, use.Name+": "+why+", so its trial begins anew, with a fresh deployment")
	return false
}

// cellAndUse returns the cell of a recorded trial and its system; empty if a damaged record names a cell that is
// not in the plan.
func (r *run) cellAndUse(id string) (cell experiment.Cell, use experiment.SystemUse) {
	if i := slices.IndexFunc(r.plan.Cells, func(c experiment.Cell) bool { return c.ID == id }); i >= 0 {
		cell = r.plan.Cells[i]
		use = r.plan.Experiment.System(cell.System)
	}
	return cell, use
}

// clock is the time of a trial since its epoch: monotonic within a session, and never
// earlier than the records of earlier sessions.
type clock struct{ epoch time.Time } // with a monotonic reading, so setting the wall clock has no effect

// continued returns the clock of a continued trial. It starts at the wall-clock time since the
// epoch or, if the wall clock was set back, at the last recorded time.
func continued(epoch, now time.Time, last time.Duration) clock {
	passed := now.Round(0).Sub(epoch) // by the wall clock: an earlier process had another monotonic clock
	return clock{now.Add(-max(passed, last))}
}

// Now implements Sink.Now.
func (c clock) Now() time.Duration { return time.Since(c.epoch) }

// The events with which a session begins.
const (
	runBegins  = "run begins"
	runResumed = "run resumed"
)

// earlierSeconds returns how long the earlier sessions of a run lasted in total, and the last known
// time: each session lasts from its first event to the last known event or end of a trial's load,
// because a killed session leaves no final event.
func earlierSeconds(events []record.Event, trials []record.Trial) (sum float64, last time.Time) {
	type moment struct {
		at     time.Time
		begins bool // a session; nothing ran before
	}
	var all []moment
	for _, e := range events {
		all = append(all, moment{e.At, e.Kind == "phase" && (e.What == runBegins || e.What == runResumed)})
	}
	for _, t := range trials {
		all = append(all, moment{t.Epoch.Add(time.Duration(t.Seconds * float64(time.Second))), false})
	}
	slices.SortStableFunc(all, func(a, b moment) int { return a.at.Compare(b.at) })
	for i, m := range all {
		if i > 0 && !m.begins {
			sum += m.at.Sub(last).Seconds()
		}
		last = m.at
	}
	return sum, last
}
