package engine

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/testbed"
	"github.com/plimsoll-project/plimsoll/testbed/link"
	"github.com/plimsoll-project/plimsoll/validity"
)

// observeEvery is the interval at which processes are observed.
const observeEvery = time.Second

// execution is one trial while it runs: most within one session, in a bounded time;
// one that continues until its scenario or an exit condition ends it, see long.go.
type execution struct {
	r         *run
	s         *site
	cell      experiment.Cell
	block     int
	continues bool
	w         *record.TrialWriter
	clock     clock
	checks    []record.LinkCheck
	restarted bool // the system was, just before

	// Of a trial that continues.
	marks  []string  // notes that its sessions left
	others byMachine // over all sessions so far

	mu         sync.Mutex
	conditions []exitCondition // of this load
	state      scenario.State
	reported   bool // state was set in this load
}

// trial executes one cell once, or goes on with it. The error is of the run as a
// whole; a trial that could not be executed comes back as failed, with its reason.
func (r *run) trial(ctx context.Context, cell experiment.Cell, block int) (record.Trial, error) {
	t := &execution{r: r, s: r.sites[cell.System], cell: cell, block: block, continues: r.cfg.continues(cell)}
	if t.continues {
		return t.untilEnd(ctx)
	}
	return t.once(ctx)
}

// once executes a trial that does not continue.
func (t *execution) once(ctx context.Context) (record.Trial, error) {
	r := t.r
	limit := r.trialTime(t.cell)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	unready := t.ready(ctx)
	if gone, _ := lost(t.s.all()); gone != nil && unready != nil { // just now: there may be another machine
		unready = t.ready(ctx)
	}
	var unfit *scenario.UnfitError
	if errors.As(unready, &unfit) { // so are all trials to come
		return record.Trial{}, unready
	}
	if err := canceled(ctx); err != nil {
		return record.Trial{}, err
	}
	if err := t.begin(); err != nil {
		return record.Trial{}, err
	}
	trial := record.Trial{ID: t.w.ID(), Cell: t.cell.ID, Block: t.block, Warmup: t.block < 0, Epoch: t.clock.epoch}
	fail := func(err error) (record.Trial, error) {
		if ended := canceled(ctx); ended != nil {
			return record.Trial{}, ended // left as running: a resumed run does it again
		}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = fmt.Errorf("the trial took longer than its limit of %s: %w", limit, err)
		}
		r.bytes += t.w.Summary().Counts().Bytes
		trial.State, trial.Error = record.Failed, err.Error()
		return trial, t.w.Fail(err)
	}
	if unready != nil {
		return fail(unready)
	}
	out, _, err := t.load(ctx)
	var left *scenario.SkipError
	if errors.As(err, &left) {
		trial.State, trial.Error = record.Skipped, left.Why
		return trial, t.w.Skip(left.Why)
	}
	if err != nil && out.lost != nil {
		err = fmt.Errorf("a machine was lost (%w): %w", out.lost, err)
	}
	if err != nil {
		return fail(err)
	}
	done, err := t.measured(out)
	if err != nil {
		return fail(err)
	}
	return t.end(done)
}

// ready makes the link and the system ready, so that the trial's clock begins when it
// can be loaded.
func (t *execution) ready(ctx context.Context) (err error) {
	if err = t.r.mendLink(ctx); err == nil {
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

// begin starts the trial's clock and its record.
func (t *execution) begin() (err error) {
	t.clock = clock{time.Now()}
	if t.w, err = t.r.rec.Begin(t.cell.ID, t.block, t.block < 0, t.clock.epoch); err != nil {
		return err
	}
	return t.recordLinks()
}

func (t *execution) recordLinks() error {
	for _, check := range t.checks {
		if err := t.w.Link(check); err != nil {
			return err
		}
	}
	return nil
}

// link is the last of the checks, as it is of those that the record has; nil: none was made.
func (t *execution) link() *record.LinkCheck {
	if len(t.checks) == 0 {
		return nil
	}
	return &t.checks[len(t.checks)-1]
}

// end ends the trial for good.
func (t *execution) end(trial record.Trial) (record.Trial, error) {
	t.r.bytes += t.w.Summary().Counts().Bytes
	return trial, t.w.End(trial)
}

// canceled is the user's wish to stop; a trial's own deadline is none.
func canceled(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return context.Canceled
	}
	return nil
}

// loaded is what came of the load of one trial.
type loaded struct {
	load  scenario.Load
	usage scenario.Usage
	died  testbed.Process
	lost  error // why a machine is out of reach for good
	notes []string
	tls   bool

	throttled bool // a CPU limit held back a machine

	footprint []record.Detail // memory of the system's processes

	emulatorTrouble string // why the link was not itself during the load; empty: it was
	emulatorDied    bool
}

// load runs the scenario's load with all processes under observation. end is why it
// was cut off: an exit condition, errDied, errLink or the end of parent; nil when it
// ended by itself.
func (t *execution) load(parent context.Context) (out loaded, end, err error) {
	r, s := t.r, t.s
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	before, _, err := r.bed.EmulatorStats(ctx)
	if err != nil {
		return out, nil, fmt.Errorf("link emulator: %w", err)
	}
	trace := s.trace()
	meter, memory := newMeter(s, trace), startFootprint(s)
	var once sync.Once
	var unrecorded error // the first failure to record: the trial must not pass for whole
	keep := func(err error) {
		if err != nil {
			once.Do(func() { unrecorded = err })
		}
	}
	observed := func(samples []record.Sample) { keep(t.w.Samples(samples)) }
	window := window{r.bed, t.clock.epoch, meter, observed}
	if s.network != nil {
		s.network.tol = float64(t.cell.Link.Tolerance)
	}
	stop := r.bed.Observe(parent, t.clock.epoch, t.observeEvery(), func(samples []record.Sample) {
		meter.add(samples)
		observed(samples)
	})
	watched := t.watch(ctx, cancel)
	load, err := s.runner.Trial(ctx, t.cell, trialSeed(r.plan.Experiment.Seed, t.cell.Group(), t.block), scenario.Sink{
		Epoch: t.clock.epoch, Now: t.clock.Now, Number: t.block, Link: t.link(),
		Block: t.w.Block, Marks: t.w.Marks, Event: t.w.Event, Journal: journal{t.w, r.rec.Reader},
		Begin: window.begin, End: window.end,
		Progress: func(ops, bytes int64) { r.say.Load(ops, bytes, t.clock.Now()) },
		State:    func(s scenario.State) { t.seen(s, cancel) },
	})
	if ctx.Err() != nil {
		end = context.Cause(ctx)
	}
	cancel(nil)
	<-watched
	stop() // takes a last sample, so that deltas cover the whole trial
	for _, l := range load.Links {
		keep(t.w.Link(l))
	}
	out = loaded{load: load, usage: meter.usage(), tls: scenario.OverTLS(s.use), footprint: memory.details()}
	for edges := range slices.Chunk(meter.others(), 2) {
		t.others.add(edges[0], edges[1])
		r.others.add(t.clock.epoch, edges...)
	}
	busiest := t.busyOthers(&out.usage)
	if s.network == nil {
		out.died = s.died()
	} else {
		dead := deaths(trace())
		out.notes, out.died = deathNotes(t.cell, dead), deadPeer(s, t.cell, dead)
		if undone := s.network.undo(parent); undone != nil {
			r.event("note", "links not brought back", undone.Error(), 0)
		}
	}
	var gone testbed.Host
	if gone, out.lost = lost(s.all()); gone != nil {
		out.notes = append(out.notes, fmt.Sprintf("the machine of %s was lost: %v", gone.Name(), out.lost))
	}
	machines, throttled := meter.notes()
	out.notes, out.throttled = append(out.notes, machines...), throttled
	if busiest != nil && busiest.Name() != "" {
		out.notes = append(out.notes, "of the machines, others used most of "+busiest.Name())
	}
	out.emulatorTrouble, out.emulatorDied = r.emulatorSince(parent, s, before)
	during := fmt.Sprintf("during %s, %s", t.cell.ID, record.BlockName(t.block))
	if out.emulatorDied {
		r.event("fault", "link emulator died", during, 0)
	}
	if out.died != nil {
		r.event("fault", "process died", fmt.Sprintf("%s, %s: %v", out.died.Name(), during, out.died.Err()), 0)
	}
	if err == nil {
		once.Do(func() {}) // what fails to be recorded from now on is none of this trial
		err = unrecorded
	}
	// A process whose end the scenario noticed before we did.
	if out.died != nil && end == nil && err != nil {
		end = errDied
	}
	return out, end, err
}

// busyOthers sets what others used of the machine of which they used most, which it
// returns; nil: none is known.
func (t *execution) busyOthers(u *scenario.Usage) (m testbed.Machine) {
	machines := t.s.machines()
	if u.OthersBusy, m = t.others.worst(machines); m == nil {
		u.OthersBusy, m = t.r.others.window().worst(machines)
	}
	return m
}

// measured is the trial as it is now, with the metrics that follow from what it has
// recorded, as a report computes them later.
func (t *execution) measured(out loaded) (record.Trial, error) {
	r := t.r
	counts := t.w.Summary().Counts()
	trial := record.Trial{
		ID: t.w.ID(), Cell: t.cell.ID, Block: t.block, Warmup: t.block < 0, State: record.Done, Epoch: t.clock.epoch,
		Seconds: out.load.Seconds, Outcomes: counts.OutcomeMap(), Classes: counts.Classes,
		Details: append(scenario.Details(out.load, out.usage, hostNamesOf(t.s.hosts), out.tls), out.footprint...),
	}
	err := r.rec.Flush()
	if err == nil {
		trial.Metrics, err = scenario.Recompute(r.cfg.Scenario, r.rec.Reader, trial, t.cell, t.w.Summary())
	}
	if err != nil {
		return trial, err
	}
	t.mu.Lock()
	trial.Notes = slices.Concat(out.load.Notes, out.notes, t.marks)
	t.mu.Unlock()
	if r.sharesTraffic(t.s) {
		trial.Notes = append(trial.Notes, "traffic: what other systems' nodes on the same machines exchange is "+
			"counted, too")
	}
	if r.notEmulated(t.cell) {
		trial.Notes = append(trial.Notes, record.NoteNotEmulated)
	}
	if out.emulatorTrouble != "" {
		trial.Notes = append(trial.Notes, "link: "+out.emulatorTrouble)
	}
	trial.Invalid = append(t.spoiledBy(out, counts, trial.Metrics), out.load.Invalid...)
	if t.restarted && !t.continues { // its caches are cold, the other cells' are not
		trial.Invalid = append(trial.Invalid, record.ReasonDaemonRestarted)
		trial.Notes = append(trial.Notes, "the system was restarted before this trial")
	}
	trial.Invalid = validity.Reasons(t.cell, r.plan.Experiment.Limits, trial)
	return trial, nil
}

// spoiledBy names what happened during a trial that speaks against it, apart from what
// the generator says of itself; package validity adds what limits decide. A trial that
// continues lasts so long that daemons die and links are late in it: that is marked.
func (t *execution) spoiledBy(out loaded, c record.Counts, metrics map[string]float64) []string {
	var why []string
	off := func(l record.LinkCheck) bool { return !l.OK }
	if slices.ContainsFunc(t.checks, off) || slices.ContainsFunc(out.load.Links, off) {
		why = append(why, record.ReasonLinkOff)
	}
	if out.died != nil && !t.continues {
		why = append(why, record.ReasonDaemonDied)
	}
	if out.lost != nil {
		why = append(why, record.ReasonMachineLost)
	}
	if out.throttled {
		why = append(why, record.ReasonThrottled)
	}
	if out.emulatorDied {
		why = append(why, record.ReasonEmulatorDied)
	}
	if out.emulatorTrouble != "" && !t.continues {
		why = append(why, record.ReasonEmulatorLate)
	}
	// The operations of a session's last moment die with it, its jobs do not.
	if c.Ops == 0 && metrics["accepted"] == 0 && (t.cell.Collect == nil || metrics["polls"] == 0) {
		why = append(why, record.ReasonNoOperations)
	}
	return why
}

// trialSeed gives every trial random choices of its own (which ranges are
// fetched, when arrivals come): the same for all systems of a group in a block,
// which makes them a fair pair, and the same again when a resumed run repeats it.
func trialSeed(seed uint64, group string, block int) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d/%s/%d", seed, group, block)
	return h.Sum64()
}

// trialTime is the deadline of one trial with all that surrounds it.
func (r *run) trialTime(cell experiment.Cell) time.Duration {
	limits := r.plan.Experiment.Limits
	if limits.Trial > 0 {
		return limits.Trial.Std()
	}
	estimate := time.Duration(cell.Estimate.Seconds * float64(time.Second))
	return 4*estimate + limits.Deadline.Std() + limits.Start.Std() + healthPatience + 2*time.Minute +
		nodesTime(cell, limits)
}

// emulatorSince says why the link did not do what it should since the earlier
// statistics (empty: it did), and whether its emulator has died.
func (r *run) emulatorSince(ctx context.Context, s *site, before link.Stats) (trouble string, died bool) {
	after, running, err := r.bed.EmulatorStats(ctx)
	if err != nil {
		return "", ctx.Err() == nil
	}
	if !running || s.attached() {
		return "", false
	}
	to := r.client
	if s.network != nil { // of all its links, which are as long as one another
		to = s.hosts[len(s.hosts)-1]
	}
	if trouble = after.Since(before).Trouble(r.bed.Want(s.hosts[0], to).LatenessLimit()); trouble == "" {
		trouble = r.bed.MeshMoved(ctx)
	}
	return trouble, false
}

// observeEvery is the interval at which the processes of a trial are observed. One that
// continues is observed as often as the system is polled, so that weeks stay a number
// of samples that can be kept and drawn.
func (t *execution) observeEvery() time.Duration {
	switch {
	case t.cell.Upload != nil:
		return max(observeEvery, t.cell.Upload.Poll.Std())
	case t.cell.Collect != nil:
		return max(observeEvery, t.cell.Collect.Every.Std())
	}
	return observeEvery
}
