package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/validity"
)

// longTrial is a trial that goes on until its scenario or an exit condition ends
// it: in this session, or, after any other kind of end, in a later one. No
// deadline ends it, and no error makes it fail: what it has recorded stays, and
// a resumed run goes on with it.
type longTrial struct {
	r     *run
	s     *site
	cell  experiment.Cell
	block int
	w     *record.TrialWriter
	clock clock
	marks []string // notes that its sessions left
	check *record.LinkCheck
	paid  *record.Event // what was spent before it, where it begins in this session

	others othersUsed // over all sessions so far

	mu         sync.Mutex
	conditions []exitCondition // of this load
	state      scenario.State
	told       bool // state was set in this load
	wall       *wallWatch
}

// revivals in a row of a system that dies again before another object is stored
// are enough.
const revivals = 3

// judgeEvery is how often exit conditions are judged when the scenario says
// nothing new: progress of nothing is to be noticed.
const judgeEvery = time.Second

// errDied is why the load ends when a process of the system has died under it.
var errDied = errors.New("a process of the system has ended")

// errLink is why the load ends when the link emulator has died: no packet passes.
var errLink = errors.New("the link emulator has died")

// long executes a trial of a cell that continues.
func (r *run) long(ctx context.Context, cell experiment.Cell, block int) (record.Trial, error) {
	t, err := r.openLong(ctx, cell, block)
	if err != nil {
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

// openLong makes the system ready and begins the trial, or goes on with it.
func (r *run) openLong(ctx context.Context, cell experiment.Cell, block int) (*longTrial, error) {
	s := r.sites[cell.System]
	earlier, kept := r.kept[trialKey{cell.ID, block}]
	ready, cancel := context.WithTimeout(ctx, r.readyTime(s))
	defer cancel()
	var err error
	switch {
	case !kept && s.used && !s.attached():
		err = r.redeploy(ready, s, "each trial begins with a fresh deployment")
	default:
		err = r.mendLink(ready)
		if err == nil {
			_, err = r.healthy(ready, s)
		}
	}
	var check *record.LinkCheck
	if err == nil {
		check, err = r.prepareLink(ready, s, cell, block)
	}
	if ended := canceled(ctx); ended != nil {
		return nil, ended
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cell.System, err)
	}
	t := &longTrial{r: r, s: s, cell: cell, block: block}
	if kept {
		err = t.goOn(earlier)
	} else {
		t.clock = newClock(time.Now())
		t.w, err = r.rec.Begin(cell.ID, block, block < 0, t.clock.epoch)
	}
	if err != nil {
		return nil, err
	}
	if s.paid != nil && !kept {
		t.event(s.paid.Kind, s.paid.What, s.paid.Detail)
		t.paid = s.paid
	}
	s.used, s.paid = true, nil
	t.wall = newWallWatch(time.Now(), t.clock.Now())
	if t.check = check; check != nil {
		if err := t.w.Link(*check); err != nil {
			return nil, err
		}
	}
	if s.changed != "" && kept {
		t.mark("system changed", s.changed)
	}
	return t, nil
}

// goOn continues a trial of an earlier session.
func (t *longTrial) goOn(earlier record.Trial) error {
	r := t.r
	w, last, err := r.rec.Continue(earlier)
	if err != nil {
		return err
	}
	t.w = w
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
	text := fmt.Sprintf("goes on with %s after %s without a session", describe(t.cell), record.Span(t.clock.Now()-last))
	t.event("session", "continued", text)
	r.say.Note(fmt.Sprintf("%s; it began %s", text, earlier.Epoch.Local().Format("2006-01-02 15:04:05")))
	if back > 0 {
		t.mark("the wall clock was set back", fmt.Sprintf("by at least %s between two sessions; times go on from the last recorded one", record.Span(back)))
	}
	return nil
}

// Marks are events that become notes of the trial, whatever session it ends in.
const markEvent = "mark"

func (t *longTrial) mark(what, detail string) {
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

func (t *longTrial) event(kind, what, detail string) {
	if err := t.w.Event(record.Event{At: time.Now(), Kind: kind, What: what, Detail: detail}); err != nil {
		t.r.say.Note(fmt.Sprintf("cannot record event %q: %v", what, err))
	}
}

// load runs the scenario until it ends. end is why its context was ended: an
// exit condition, errDied, or the run's end; nil when it ended by itself.
func (t *longTrial) load(parent context.Context) (out loaded, end, err error) {
	r, s := t.r, t.s
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	t.mu.Lock()
	t.conditions, t.told = trialConditions(r.plan.Experiment.Exit), false
	t.mu.Unlock()
	var rec firstError
	before, _, err := r.bed.EmulatorStats(ctx)
	if err != nil {
		return out, nil, fmt.Errorf("link emulator: %w", err)
	}
	meter, memory := newMeter(s, nil), startFootprint(s)
	stop := r.bed.Observe(ctx, t.clock.epoch, r.observeEvery(t.cell), func(samples []record.Sample) {
		meter.add(samples)
		rec.keep(t.w.Samples(samples))
	})
	watch := t.watch(ctx, cancel)
	load, err := s.runner.Trial(ctx, t.cell, trialSeed(r.plan.Experiment.Seed, t.cell.Group(), t.block), scenario.Sink{
		Epoch:   t.clock.epoch,
		Block:   t.w.Block,
		Journal: journal{t.w, r.rec.Reader},
		Paid:    t.paid,
		Now:     t.clock.Now,
		State:   func(s scenario.State) { t.seen(s, cancel) },
	})
	if ctx.Err() != nil {
		end = context.Cause(ctx)
	}
	cancel(nil)
	<-watch
	stop()
	out = loaded{load: load, usage: meter.usage(), died: s.died(), tls: scenario.OverTLS(s.use), footprint: memory.details()}
	t.others = t.others.plus(meter.others())
	out.usage.OthersBusy = t.others.share()
	out.emulatorTrouble, out.emulatorDied = r.emulatorSince(parent, s, before)
	if err == nil {
		err = rec.get()
	}
	// A process whose end the scenario noticed before we did.
	if out.died != nil && end == nil && err != nil {
		end = errDied
	}
	return out, end, err
}

// watch judges exit conditions and looks after the system's processes while the
// trial says nothing new, until ctx ends.
func (t *longTrial) watch(ctx context.Context, cancel context.CancelCauseFunc) (done chan struct{}) {
	done = make(chan struct{})
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
			now := t.clock.Now()
			if by := t.wall.step(time.Now(), now); by != 0 {
				t.mark("the wall clock was set", fmt.Sprintf("by %s, %s after the trial began; its times do not follow", record.Span(by), record.Span(now)))
			}
			t.mu.Lock()
			s, told := t.state, t.told
			t.mu.Unlock()
			if !told { // what is stored already is not known here
				t.judge(nil, cancel)
				continue
			}
			s.At = now
			t.judge(&s, cancel)
		}
	}()
	return done
}

// seen takes what the scenario says of itself.
func (t *longTrial) seen(s scenario.State, cancel context.CancelCauseFunc) {
	t.mu.Lock()
	t.state, t.told = s, true
	t.mu.Unlock()
	t.r.say.State(s, t.cell)
	t.judge(&s, cancel)
}

// judge ends the trial when an exit condition is met; s is nil while the
// scenario has not said how far it is.
func (t *longTrial) judge(s *scenario.State, cancel context.CancelCauseFunc) {
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

// measured is the trial as it stands.
func (t *longTrial) measured(out loaded) (record.Trial, error) {
	counts := t.w.Summary().Counts()
	trial := record.Trial{
		ID: t.w.ID(), Cell: t.cell.ID, Block: t.block, Warmup: t.block < 0, State: record.Done, Epoch: t.clock.epoch,
		Seconds:  out.load.Seconds,
		Outcomes: counts.OutcomeMap(), Classes: counts.Classes,
		Details: out.details(t.s),
	}
	var err error
	if trial.Metrics, err = t.r.metrics(trial, t.cell, t.w); err != nil {
		return trial, err
	}
	trial.Invalid = append(longSpoiledBy(out, t.check, counts, trial.Metrics, t.cell.Collect != nil), out.load.Invalid...)
	trial.Invalid = validity.Reasons(t.cell, t.r.plan.Experiment.Limits, trial)
	t.mu.Lock()
	defer t.mu.Unlock()
	trial.Notes = append(slices.Clone(out.load.Notes), t.marks...)
	if t.r.notEmulated(t.cell) {
		trial.Notes = append(trial.Notes, record.NoteNotEmulated)
	}
	if out.emulatorTrouble != "" {
		trial.Notes = append(trial.Notes, "link: "+out.emulatorTrouble)
	}
	return trial, nil
}

// longSpoiledBy is spoiledBy for a trial that lasts so long that daemons die in it: that is
// marked, not held against it. asks: the trial is to poll, and does nothing else.
func longSpoiledBy(out loaded, check *record.LinkCheck, c record.Counts, metrics map[string]float64, asks bool) []string {
	var why []string
	if check != nil && !check.OK {
		why = append(why, record.ReasonLinkOff)
	}
	if out.emulatorDied {
		why = append(why, record.ReasonEmulatorDied)
	}
	// The operations of a session's last moment die with it, its jobs do not.
	if c.Ops == 0 && metrics["accepted"] == 0 && (!asks || metrics["polls"] == 0) {
		why = append(why, record.ReasonNoOperations)
	}
	return why
}

// finish ends the trial for good.
func (t *longTrial) finish(out loaded, stop *scenario.Stop) (record.Trial, error) {
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
	t.r.bytes += t.w.Summary().Counts().Bytes
	return trial, t.w.End(trial)
}

// pause ends this session of the trial, which stays as it is for the next one.
func (t *longTrial) pause(out loaded, cause error) error {
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

// suspend records the trial as it stands, to go on later.
func (t *longTrial) suspend(out loaded) error {
	trial, err := t.measured(out)
	if err != nil {
		return err
	}
	return t.w.Pause(trial)
}

// mend brings up again what has died, the link or the system on its data, and
// goes on with the trial.
func (t *longTrial) mend(ctx context.Context, out loaded, times int, link bool) error {
	r, s := t.r, t.s
	what := "a process ended"
	if out.died != nil {
		what = fmt.Sprintf("process %s ended: %s (see %s)", out.died.Name(), firstLine(out.died.Err()), out.died.LogPath())
	}
	again := func(ctx context.Context) error { return r.restart(ctx, s, what) }
	if link {
		what, again = errLink.Error(), r.mendLink
	}
	r.event("fault", "process died", fmt.Sprintf("%s, during %s, %s", what, t.cell.ID, record.BlockName(t.block)), 0)
	died := fmt.Errorf("%s: %s", s.use.Name, what)
	if times > revivals {
		return t.pause(out, fmt.Errorf("%w; it was brought up again %d times and died each time before another object was stored", died, revivals))
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
	kept := record.Trial{ID: t.w.ID(), Cell: t.cell.ID, Block: t.block, Warmup: t.block < 0, State: record.Running, Epoch: t.clock.epoch}
	t.w, _, err = r.rec.Continue(kept) // the clock goes on: it is this session's
	r.event("phase", "goes on", what+", and was brought up again", time.Since(begun))
	return err
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

// observeEvery is the interval at which the processes of a long trial are
// observed: as often as the system is polled, so that weeks stay a number of
// samples that can be kept and drawn.
func (r *run) observeEvery(cell experiment.Cell) time.Duration {
	every := observeEvery
	if cell.Upload != nil {
		every = max(every, cell.Upload.Poll.Std())
	}
	if cell.Collect != nil {
		every = max(every, cell.Collect.Every.Std())
	}
	return every
}

// describe names a cell for people.
func describe(c experiment.Cell) string {
	text := c.System
	for _, f := range c.Factors {
		if f.Path != "system" {
			text += ", " + f.Label + " " + f.Value
		}
	}
	return text
}

// firstError keeps the first failure to record: the trial must not pass for whole.
type firstError struct {
	mu  sync.Mutex
	err error
}

func (f *firstError) keep(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
	}
}

func (f *firstError) get() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}
