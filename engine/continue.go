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

// continues reports whether trials go on where a session of the run was cut off, instead of
// beginning anew.
func (c Config) continues() bool { return c.Plan.Experiment.LoadTest() }

// revives reports whether a deployment of the system of a use can be brought up again.
func (c Config) revives(use experiment.SystemUse) bool {
	return !use.Attached() && infoOf(c.Systems, use).Kept != ""
}

// nodesDir is where a deployment is kept that outlives a session: below the run
// directory, because the scratch directory goes with the process.
func (c Config) nodesDir(name string) string { return filepath.Join(c.Dir, "nodes", name) }

// keep says of a trial that was cut off whether it goes on. Those that cannot
// are remembered in lost, with the reason.
func (r *run) keep(t record.Trial) bool {
	_, use := r.cellAndUse(t.Cell)
	if t.State != record.Running || !r.cfg.continues() {
		return false
	}
	if use.Attached() {
		return true
	}
	if !r.cfg.revives(use) {
		r.lost = append(r.lost, fmt.Sprintf("%s: it cannot be brought up again with its data, so its trial begins "+
			"anew, with a fresh deployment", use.Name))
		return false
	}
	if _, err := os.Stat(r.cfg.nodesDir(use.Name)); err != nil {
		r.lost = append(r.lost, fmt.Sprintf("%s: its data is gone (%v), so its trial begins anew, with a fresh "+
			"deployment", use.Name, err))
		return false
	}
	return true
}

// cellAndUse are those of a recorded trial; empty where a damaged record names a cell that the plan does not have.
func (r *run) cellAndUse(id string) (cell experiment.Cell, use experiment.SystemUse) {
	if i := slices.IndexFunc(r.plan.Cells, func(c experiment.Cell) bool { return c.ID == id }); i >= 0 {
		cell = r.plan.Cells[i]
		use = r.plan.Experiment.System(cell.System)
	}
	return cell, use
}

// clock is the time of a trial since its epoch: monotonic within a session, and
// never before what earlier sessions have recorded.
type clock struct{ epoch time.Time } // with a monotonic reading: a wall clock that is set moves nothing

// continued is the clock of a trial that goes on: at what the wall clock says
// has passed since its epoch or, when it was set back, at the last moment recorded.
func continued(epoch, now time.Time, last time.Duration) clock {
	passed := now.Round(0).Sub(epoch) // without the monotonic reading, which an earlier process had
	return clock{now.Add(-max(passed, last))}
}

// Now implements Sink.Now.
func (c clock) Now() time.Duration { return time.Since(c.epoch) }

// The events with which a session begins.
const (
	runBegins  = "run begins"
	runResumed = "run resumed"
)

// earlierSeconds is how long the earlier sessions of a run lasted: each from its
// first event to the last that is known of it, an event or the end of a trial's
// load, because one that was killed left no event of its end. A trial that went
// on in a later session says nothing of the end of its first one: its seconds
// span the time between them. last is that of the latest session.
func earlierSeconds(events []record.Event, trials []record.Trial) (sum float64, last time.Time) {
	var begun time.Time
	seen := func(at time.Time) {
		if at.After(last) {
			last = at
		}
	}
	end := func(before time.Time) {
		if begun.IsZero() {
			return
		}
		for _, t := range trials {
			ended := t.Epoch.Add(time.Duration(t.Seconds * float64(time.Second)))
			if !t.Epoch.Before(begun) && (before.IsZero() || ended.Before(before)) {
				seen(ended)
			}
		}
		sum += last.Sub(begun).Seconds()
	}
	for _, e := range events {
		if e.Kind == "phase" && (e.What == runBegins || e.What == runResumed) {
			end(e.At)
			begun, last = e.At, e.At
		}
		seen(e.At)
	}
	end(time.Time{})
	return sum, last
}
