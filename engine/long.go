package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
)

// A trial that continues goes on until its scenario or an exit condition ends it: in
// this session, or, after any other kind of end, in a later one. No deadline ends it,
// and no error makes it fail: what it has recorded stays, and a resumed run goes on
// with it.

// revivals in a row of a system that dies again before another object is stored
// are enough.
const revivals = 3

// judgeEvery is how often exit conditions are judged when the scenario says nothing
// new, so that a standstill is noticed.
const judgeEvery = time.Second

// errDied is why the load ends when a process of the system has died under it.
var errDied = errors.New("a process of the system has ended")

// errLink is why the load ends when the link emulator has died: no packet passes.
var errLink = errors.New("the link emulator has died")

// untilEnd executes a trial that continues.
func (t *execution) untilEnd(ctx context.Context) (record.Trial, error) {
	if err := t.open(ctx); err != nil {
		return record.Trial{}, err
	}
	died, stored := 0, int64(0)
	for {
		out, end, err := t.load(ctx)
		if end == nil && err == nil { // it came to its own end
			return t.finish(out, nil)
		}
		var stop *scenario.Stop
		switch {
		case errors.As(end, &stop):
			if err != nil && !errors.Is(err, context.Canceled) {
				return record.Trial{}, t.pause(out, err)
			}
			return t.finish(out, stop)
		case !errors.Is(end, errDied) && !errors.Is(end, errLink):
			return record.Trial{}, t.pause(out, errors.Join(canceled(ctx), err))
		}
		if t.state.Accepted > stored {
			died, stored = 0, t.state.Accepted
		}
		died++
		if err := t.mend(ctx, out, died, errors.Is(end, errLink)); err != nil {
			return record.Trial{}, err
		}
	}
}

// open makes the system ready and begins the trial, or goes on with it.
func (t *execution) open(ctx context.Context) error {
	r, s := t.r, t.s
	earlier, kept := r.kept[trialKey{t.cell.ID, t.block}]
	ready, cancel := context.WithTimeout(ctx, r.readyTime(s))
	defer cancel()
	var err error
	if !kept && s.used && !s.attached() {
		err = r.redeploy(ready, s, "each trial begins with a fresh deployment")
	}
	if err == nil {
		err = t.ready(ready)
	}
	if ended := canceled(ctx); ended != nil {
		return ended
	}
	if err != nil {
		return fmt.Errorf("%s: %w", t.cell.System, err)
	}
	if kept {
		err = t.goOn(earlier)
	} else {
		err = t.begin()
	}
	if err != nil {
		return err
	}
	s.used = true
	if s.changed != "" && kept {
		t.mark("system changed", s.changed)
	}
	return nil
}

// goOn continues a trial of an earlier session.
func (t *execution) goOn(earlier record.Trial) error {
	r := t.r
	w, last, err := r.rec.Continue(earlier)
	if err != nil {
		return err
	}
	t.w = w
	if err := t.recordLinks(); err != nil {
		return err
	}
	if t.others, err = recordedOthers(r.rec.Samples(earlier.ID)); err != nil {
		return err
	}
	events, err := r.rec.Events()
	if err != nil {
		return err
	}
	for _, e := range events {
		if e.Trial == w.ID() && e.Kind == markEvent {
			t.marks = append(t.marks, markNote(e.What, e.Detail))
		}
	}
	var back time.Duration
	t.clock, back = continued(earlier.Epoch, time.Now(), last)
	// What a session that was killed has lasted is known only now.
	if seen := earlier.Epoch.Add(last); seen.After(r.lastSeen) && !r.lastSeen.IsZero() && seen.Before(r.begun) {
		r.earlier += seen.Sub(r.lastSeen).Seconds()
		r.lastSeen = seen
	}
	text := fmt.Sprintf("goes on with %s after %s without a session", Describe(t.cell),
		words.Duration(t.clock.Now()-last))
	t.event("session", "continued", text)
	r.say.Note(fmt.Sprintf("%s; it began %s", text, earlier.Epoch.Local().Format("2006-01-02 15:04:05")))
	if back > 0 {
		t.mark("the wall clock was set back", fmt.Sprintf("by at least %s between two sessions; times go on from the "+
			"last recorded one", words.Duration(back)))
	}
	return nil
}

// Marks are events that become notes of the trial, whatever session it ends in.
const markEvent = "mark"

func (t *execution) mark(what, detail string) {
	t.event(markEvent, what, detail)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.marks = append(t.marks, markNote(what, detail))
	t.r.say.Note(markNote(t.s.use.Name+": "+what, detail))
}

func markNote(what, detail string) string {
	if detail == "" {
		return what
	}
	return what + ": " + detail
}

func (t *execution) event(kind, what, detail string) {
	if err := t.w.Event(record.Event{At: time.Now(), Kind: kind, What: what, Detail: detail}); err != nil {
		t.r.say.Note(fmt.Sprintf("cannot record event %q: %v", what, err))
	}
}

// watch judges exit conditions and looks after the system's processes while the
// trial says nothing new, until ctx ends. Other trials than those that continue are
// judged when they are over.
func (t *execution) watch(ctx context.Context, cancel context.CancelCauseFunc) (done chan struct{}) {
	done = make(chan struct{})
	if !t.continues {
		close(done)
		return done
	}
	t.mu.Lock()
	t.conditions, t.reported = trialConditions(t.r.plan.Experiment.Exit), false
	t.mu.Unlock()
	go func() {
		defer close(done)
		tick := time.NewTicker(judgeEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if t.s.died() != nil {
				cancel(errDied)
				return
			}
			if t.r.bed.EmulatorErr() != nil {
				cancel(errLink)
				return
			}
			t.mu.Lock()
			s, reported := t.state, t.reported
			t.mu.Unlock()
			if !reported { // what is stored already is not known here
				t.judge(nil, cancel)
				continue
			}
			s.At = t.clock.Now()
			t.judge(&s, cancel)
		}
	}()
	return done
}

// seen takes what the scenario says of itself.
func (t *execution) seen(s scenario.State, cancel context.CancelCauseFunc) {
	t.mu.Lock()
	t.state, t.reported = s, true
	t.mu.Unlock()
	t.r.say.State(s, t.cell)
	t.judge(&s, cancel)
}

// judge ends the trial when an exit condition is met; s is nil while the
// scenario has not said how far it is.
func (t *execution) judge(s *scenario.State, cancel context.CancelCauseFunc) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := progressSoFar{
		Seconds: t.r.earlier + time.Since(t.r.begun).Seconds(), Bytes: t.r.bytes, State: s,
	}
	if s != nil {
		p.Bytes += s.Bytes
	}
	if stop := firstMet(t.conditions, p); stop != nil {
		cancel(stop) // the first one stays
	}
}

// finish ends the trial by itself, or by an exit condition.
func (t *execution) finish(out loaded, stop *scenario.Stop) (record.Trial, error) {
	trial, err := t.measured(out)
	if err != nil {
		return record.Trial{}, err
	}
	t.mu.Lock()
	words := natural(t.state)
	t.mu.Unlock()
	if stop != nil {
		words = stop.Condition + ": " + stop.Why
	}
	if words != "" {
		trial.Notes = append(trial.Notes, record.NoteEnded+words)
		t.event("phase", "trial ended", words)
	}
	t.r.ended, t.r.stoppedBy = words, stop
	return t.end(trial)
}

// pause ends this session of the trial, which stays as it is for the next one.
func (t *execution) pause(out loaded, cause error) error {
	interrupted := cause == nil || errors.Is(cause, context.Canceled)
	why := "interrupted"
	if !interrupted {
		why = cause.Error()
	}
	t.event("session", "paused", why)
	if err := t.suspend(out); err != nil {
		return errors.Join(cause, err)
	}
	t.r.paused++
	if interrupted {
		return context.Canceled
	}
	return cause
}

// suspend records the trial as it is, to go on later.
func (t *execution) suspend(out loaded) error {
	trial, err := t.measured(out)
	if err != nil {
		return err
	}
	return t.w.Pause(trial)
}

// mend brings up again what has died, the link or the system on its data, and
// goes on with the trial.
func (t *execution) mend(ctx context.Context, out loaded, times int, link bool) error {
	r, s := t.r, t.s
	what := "a process ended"
	if out.died != nil {
		what = fmt.Sprintf("process %s ended: %s (see %s)", out.died.Name(), firstLine(out.died.Err()),
			out.died.LogPath())
	}
	again := func(ctx context.Context) error { return r.restart(ctx, s, what) }
	if link {
		what, again = errLink.Error(), t.mendLink
	}
	died := fmt.Errorf("%s: %s", s.use.Name, what)
	if times > revivals {
		return t.pause(out, fmt.Errorf("%w; it was brought up again %d times and died each time before another "+
			"object was stored", died, revivals))
	}
	if !link && !s.keeps {
		return t.pause(out, fmt.Errorf("%w; this system cannot be brought up again with its data", died))
	}
	if link {
		t.mark("the link was down", what+"; it was started again")
	} else {
		t.mark("daemon died", what+"; it was brought up again on its data")
	}
	if err := t.suspend(out); err != nil {
		return err
	}
	begun := time.Now()
	up, cancel := context.WithTimeout(ctx, r.readyTime(s))
	defer cancel()
	if err := again(up); err != nil {
		if ended := canceled(ctx); ended != nil {
			return ended
		}
		return fmt.Errorf("%w; and it cannot be brought up again: %w", died, err)
	}
	var err error
	kept := record.Trial{ID: t.w.ID(), Cell: t.cell.ID, Block: t.block, Warmup: t.block < 0, State: record.Running,
		Epoch: t.clock.epoch}
	t.w, _, err = r.rec.Continue(kept) // the clock goes on: it is this session's
	r.event("phase", "goes on", what+", and was brought up again", time.Since(begun))
	return err
}

// mendLink brings the link back as the trial had it.
func (t *execution) mendLink(ctx context.Context) error {
	if err := t.r.mendLink(ctx); err != nil || !t.r.hasLink(t.s, t.cell) {
		return err
	}
	return t.r.shapeLink(ctx, t.s, t.cell)
}

// firstLine is an error without the lines of a log that it may quote.
func firstLine(err error) string {
	text, _, _ := strings.Cut(fmt.Sprint(err), "\n")
	text, _, _ = strings.Cut(text, "; see ")
	return text
}

// readyTime bounds what may be needed before a trial: a restart with all of its
// data, a wait for a server that recovers, a check of the link.
func (r *run) readyTime(s *site) time.Duration {
	limit, _ := r.startTime(s)
	return limit + startMargin + r.prepareTime(s) + healthPatience + 2*time.Minute
}

// Describe names a cell for people.
func Describe(c experiment.Cell) string {
	text := c.System
	for _, f := range c.Factors {
		if f.Path != "system" {
			text += ", " + f.Label + " " + f.Value
		}
	}
	return text
}
