package engine

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/timing"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// execution is one running trial. Most trials end in this session within a limited time, and
// fail on an error. A trial that continues, such as a load test of weeks, runs until its
// scenario or an exit condition ends it, in this session or in a later one.
type execution struct {
	r         *run
	s         *site
	cell      experiment.Cell
	block     int
	continues bool
	w         *record.TrialWriter
	epoch     time.Time // with a monotonic reading, so setting the wall clock has no effect
	checks    []record.LinkCheck
	restarted bool // the system was restarted just before

	// Only for a trial that continues.
	marks  []string  // notes of its sessions
	others byMachine // over all sessions so far
	deaths int       // of the system or the link since the last object was stored
	stored int64

	mu         sync.Mutex
	conditions *exits // of this load
	state      scenario.State
	reported   bool // state was set in this load
}

// revivals is how often in a row a system is revived if it dies again before another object is
// stored.
const revivals = 3

// errDied and errLink end the load if a process of the system, or the link emulator, has died.
var (
	errDied = errors.New("a process of the system has ended")
	errLink = errors.New("the link emulator has died")
)

// trial executes one cell once, or continues it. An error ends the run; a trial that could not
// be executed is returned as failed, with its reason.
func (r *run) trial(ctx context.Context, cell experiment.Cell, block int) (record.Trial, error) {
	t := &execution{r: r, s: r.sites[cell.System], cell: cell, block: block, continues: r.cfg.continues(),
		others: byMachine{}}
	if !t.continues {
		limit := r.trialTime(cell)
		limited, cancel := context.WithTimeoutCause(ctx, limit,
			fmt.Errorf("the trial took longer than its limit of %s", limit))
		defer cancel()
		ctx = limited
	}
	unready, err := t.open(ctx)
	switch {
	case err != nil:
		return record.Trial{}, err
	case unready != nil:
		return t.fail(ctx, loaded{}, unready)
	}
	for {
		out, end, err := t.load(ctx)
		var stop *scenario.Stop
		switch {
		case errors.As(end, &stop) && (err == nil || errors.Is(err, context.Canceled)):
			return t.finish(ctx, out, stop)
		case err == nil && (end == nil || !t.continues): // it ended by itself
			return t.finish(ctx, out, nil)
		case !t.continues:
			return t.fail(ctx, out, err)
		case errors.Is(end, errLink):
			err = t.repair(ctx, out, fault{"the link was down", errLink.Error(), t.repairLink})
		case errors.Is(end, errDied):
			err = t.repair(ctx, out, t.processFault(out.died))
		default:
			return record.Trial{}, t.pause(out, errors.Join(canceled(ctx), err))
		}
		if err != nil {
			return record.Trial{}, err
		}
	}
}

// open makes the system ready and begins or continues the trial. If the system is not ready, a
// trial that does not continue is begun nevertheless, and recorded as failed.
func (t *execution) open(ctx context.Context) (unready, err error) {
	r, s := t.r, t.s
	earlier, interrupted := r.interrupted[trialKey{t.cell.ID, t.block}]
	ready, cancel := context.WithTimeout(ctx, r.readyTime(s))
	defer cancel()
	if t.continues && !interrupted && s.used && !s.attached() {
		r.event("phase", "fresh deployment", s.use.Name+": each trial begins with one", 0)
		unready = r.redeploy(ready, s, false)
	}
	if unready == nil {
		unready = t.ready(ready)
	}
	if gone, _ := lostHost(s.all()); gone != nil && unready != nil { // a machine was just lost: there may be another
		unready = t.ready(ready)
	}
	switch {
	case canceled(ctx) != nil:
		return nil, canceled(ctx)
	case errors.As(unready, new(*scenario.PreconditionError)), t.continues && unready != nil:
		return nil, unready // the next trials would fail likewise
	case interrupted:
		err = t.continueTrial(earlier)
	default:
		t.epoch = time.Now()
		t.w, err = r.rec.Begin(t.cell.ID, t.block, t.block < 0, t.epoch)
	}
	if err == nil {
		err = t.w.Link(t.checks...)
	}
	if t.continues && err == nil {
		s.used = true
		if s.changed != "" && interrupted {
			t.mark("system changed", s.changed)
		}
	}
	return unready, err
}

// ready makes the link and the system ready before the trial's clock starts.
func (t *execution) ready(ctx context.Context) (err error) {
	if err = t.r.repairLink(ctx); err == nil {
		t.restarted, err = t.r.healthy(ctx, t.s)
	}
	if readier, ok := t.s.runner.(scenario.Readier); ok && err == nil {
		err = readier.Ready(ctx, t.cell)
	}
	if err == nil {
		t.checks, err = t.r.prepareLink(ctx, t.s, t.cell, t.block)
	}
	return err
}

// continueTrial continues a trial of an earlier session.
func (t *execution) continueTrial(earlier record.Trial) (err error) {
	r := t.r
	var last time.Duration
	if t.w, last, err = r.rec.Continue(earlier); err != nil {
		return err
	}
	if t.others, err = recordedOthers(r.rec.Samples(earlier.ID)); err != nil {
		return err
	}
	for e, err := range r.rec.EventsOf(earlier.ID) {
		if err != nil {
			return err
		}
		if e.Kind == markEvent {
			t.marks = append(t.marks, e.What+": "+e.Detail)
		}
	}
	t.epoch = continued(earlier.Epoch, time.Now(), last)
	// Only now is it known how long a killed session lasted.
	if seen := earlier.Epoch.Add(last); seen.After(r.lastSeen) && !r.lastSeen.IsZero() && seen.Before(r.begun) {
		r.earlier += seen.Sub(r.lastSeen).Seconds()
		r.lastSeen = seen
	}
	text := fmt.Sprintf("goes on with %s after %s without a session", Describe(t.cell),
		words.Duration(time.Since(t.epoch)-last))
	t.event("session", "continued", text)
	r.say.Note(fmt.Sprintf("%s; it began %s", text, earlier.Epoch.Local().Format(time.DateTime)))
	return nil
}

// markEvent is the kind of events that become notes of the trial, in whatever session it ends.
const markEvent = "mark"

func (t *execution) mark(what, detail string) {
	t.event(markEvent, what, detail)
	t.marks = append(t.marks, what+": "+detail)
	t.r.say.Note(t.s.use.Name + ": " + what + ": " + detail)
}

func (t *execution) event(kind, what, detail string) {
	if err := t.w.Event(record.Event{At: time.Now(), Kind: kind, What: what, Detail: detail}); err != nil {
		t.r.say.Note(fmt.Sprintf("cannot record event %q: %v", what, err))
	}
}

// judgeEvery is how often exit conditions are checked without news from the scenario, so that
// a standstill is noticed.
const judgeEvery = time.Second

// watch checks exit conditions, the system and its link regularly until stop is called. Trials
// that do not continue are judged after their end.
func (t *execution) watch(cancel context.CancelCauseFunc) (stop func()) {
	if !t.continues {
		return func() {}
	}
	t.mu.Lock()
	t.conditions, t.reported = &exits{Exit: t.r.plan.Experiment.Exit}, false
	t.mu.Unlock()
	return timing.Every(judgeEvery, func() {
		switch {
		case t.s.died() != nil:
			cancel(errDied)
		case t.r.bed.EmulatorErr() != nil:
			cancel(errLink)
		default:
			t.judge(cancel)
		}
	})
}

// judge ends the trial if an exit condition is met.
func (t *execution) judge(cancel context.CancelCauseFunc) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.r.soFar(record.Trial{})
	if t.reported { // otherwise it is not known yet what is stored already
		s := t.state
		s.At = time.Since(t.epoch)
		p.State, p.Bytes, p.TrialFinished, p.TrialFailures = &s, p.Bytes+s.Bytes, s.Finished, s.Failures
	}
	if stop := t.conditions.reached(p); stop != nil {
		cancel(stop) // only the first one counts
	}
}

// finish completes the trial, which ended by itself or by an exit condition.
func (t *execution) finish(ctx context.Context, out loaded, stop *scenario.Stop) (record.Trial, error) {
	trial, err := t.measured(out)
	switch {
	case err != nil && !t.continues:
		return t.fail(ctx, out, err)
	case err != nil:
		return record.Trial{}, err
	case t.continues:
		ended := natural(t.state)
		if stop != nil {
			ended = stop.Condition + ": " + stop.Why
		}
		if ended != "" {
			trial.Notes = append(trial.Notes, record.NoteEnded+ended)
			t.event("phase", "trial ended", ended)
		}
		t.r.stoppedBy = stop
	}
	t.r.bytes += t.w.Summary().Counts().Bytes
	return trial, t.w.End(trial)
}

// fail ends a trial that could not be executed, or that was left out on purpose.
func (t *execution) fail(ctx context.Context, out loaded, err error) (record.Trial, error) {
	if ended := canceled(ctx); ended != nil {
		return record.Trial{}, ended // it stays running: a resumed run repeats it
	}
	trial := record.Trial{ID: t.w.ID(), Cell: t.cell.ID, Block: t.block, Warmup: t.block < 0, Epoch: t.epoch}
	if left, is := errors.AsType[*scenario.SkipError](err); is {
		trial.State, trial.Error = record.Skipped, left.Why
		return trial, t.w.End(trial)
	}
	if out.lost != nil {
		err = fmt.Errorf("a machine was lost (%w): %w", out.lost, err)
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	t.r.bytes += t.w.Summary().Counts().Bytes
	trial.State, trial.Error = record.Failed, err.Error()
	return trial, t.w.End(trial)
}

// pause ends this session of the trial, which the next one continues.
func (t *execution) pause(out loaded, cause error) error {
	interrupted := cause == nil || errors.Is(cause, context.Canceled)
	why := "interrupted"
	if !interrupted {
		why = cause.Error()
	}
	t.event("session", "paused", why)
	trial, err := t.measured(out)
	if trial.State = record.Running; err == nil {
		err = t.w.End(trial)
	}
	if err != nil {
		return errors.Join(cause, err)
	}
	t.r.paused++
	if interrupted {
		return context.Canceled
	}
	return cause
}

// fault is the end of a process of the system, or of the link emulator.
type fault struct {
	mark    string                      // of the trial
	what    string                      // in words
	restart func(context.Context) error // nil: the system cannot be restarted on its data
}

// processFault is the end of a process; nil: it is not known of which.
func (t *execution) processFault(died testbed.Process) fault {
	f := fault{mark: "daemon died", what: "a process ended"}
	if died != nil {
		why, _, _ := strings.Cut(fmt.Sprint(died.Err()), "\n") // without the log lines that it may quote
		why, _, _ = strings.Cut(why, "; see ")
		f.what = fmt.Sprintf("process %s ended: %s (see %s)", died.Name(), why, died.LogPath())
	}
	if t.s.revivable {
		f.restart = func(ctx context.Context) error { return t.r.restart(ctx, t.s, f.what) }
	}
	return f
}

// repair restarts what has died: the link, or the system on its data.
func (t *execution) repair(ctx context.Context, out loaded, f fault) error {
	r, name := t.r, t.s.use.Name
	if t.deaths++; t.state.Accepted > t.stored {
		t.deaths, t.stored = 1, t.state.Accepted
	}
	switch {
	case t.deaths > revivals:
		return t.pause(out, fmt.Errorf("%s was interrupted again after each of %d restarts, before another object was "+
			"stored; the last time: %s", name, revivals, f.what))
	case f.restart == nil:
		return t.pause(out, fmt.Errorf("%s cannot be restarted with its data after this: %s", name, f.what))
	}
	t.mark(f.mark, fmt.Sprintf("%s, so it was restarted", f.what))
	begun := time.Now()
	up, cancel := context.WithTimeout(ctx, r.readyTime(t.s))
	defer cancel()
	if err := f.restart(up); err != nil {
		if ended := canceled(ctx); ended != nil {
			return t.pause(out, ended)
		}
		return t.pause(out, fmt.Errorf("%s could not be restarted after this: %s; the reason: %w", name, f.what, err))
	}
	r.event("phase", "goes on", fmt.Sprintf("restarted after this: %s", f.what), time.Since(begun))
	return r.rec.Flush() // the scenario reads its own records
}

// repairLink restores the link of the trial.
func (t *execution) repairLink(ctx context.Context) error {
	if err := t.r.repairLink(ctx); err != nil || !t.r.hasLink(t.s, t.cell) {
		return err
	}
	return t.r.shapeLink(ctx, t.s, t.cell)
}

// canceled returns an error if the user stopped the run; the deadline of a trial does not count.
func canceled(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return context.Canceled
	}
	return nil
}

// readyTime limits the preparation of a trial: a restart with all data, waiting for a server to
// recover, a check of the link.
func (r *run) readyTime(s *site) time.Duration {
	return r.plan.Experiment.Limits.Start.Std() + startMargin + r.prepareTime(s) + healthPatience + 2*time.Minute
}

// trialTime returns the time limit of one trial, including its preparation.
func (r *run) trialTime(cell experiment.Cell) time.Duration {
	limits := r.plan.Experiment.Limits
	if limits.Trial > 0 {
		return limits.Trial.Std()
	}
	estimate := time.Duration(cell.Estimate.Seconds * float64(time.Second))
	return r.readyTime(r.sites[cell.System]) + 4*estimate + limits.Deadline.Std() + nodesTime(cell, limits)
}

// nodesTime returns how long a trial with nodes may take beyond one deadline. It is generous,
// because each operation has its own deadline: leechers may join later, nodes are killed and
// restarted, stores are removed on slow disks, and chains are validated locally.
func nodesTime(cell experiment.Cell, limits experiment.Limits) time.Duration {
	atPace := func(bytes float64) time.Duration { return time.Duration(bytes / 10e6 * float64(time.Second)) }
	switch {
	case cell.Disseminate != nil:
		return 10*(limits.Deadline.Std()+limits.Start.Std()) +
			atPace(float64(cell.Disseminate.Nodes)*float64(cell.Data.Size))
	case cell.Sync != nil:
		return time.Duration(2*nodesOf(cell))*limits.Start.Std() + atPace(storeBytes(cell)) + chainTime(cell, limits)
	}
	return 0
}

// chainTime returns how long generating the chain of a cell, or validating it locally, may take.
func chainTime(c experiment.Cell, limits experiment.Limits) time.Duration {
	return time.Duration(4*c.Estimate.Operation*float64(time.Second)) + limits.Start.Std()
}

// Describe names a cell in words.
func Describe(c experiment.Cell) string {
	text := c.System
	for _, f := range c.Factors {
		if f.Path != "system" {
			text += ", " + f.Label + " " + f.Value
		}
	}
	return text
}

// trialSeed returns the seed of a trial's random choices (which ranges are fetched, when
// requests arrive). It is the same for all systems of a group in a block, so that they form a
// fair pair, and when a resumed run repeats the trial.
func trialSeed(seed uint64, group string, block int) uint64 {
	return seedOf("%d/%s/%d", seed, group, block)
}

// seedOf derives a seed from a formatted text.
func seedOf(format string, args ...any) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, format, args...)
	return h.Sum64()
}
