package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/testbed"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// observeEvery is the interval at which processes are sampled.
const observeEvery = time.Second

// loaded is the outcome of the load of one trial.
type loaded struct {
	load  scenario.Load
	usage scenario.Usage
	died  testbed.Process
	lost  error // why a machine can no longer be reached
	notes []string

	throttled bool // a CPU limit throttled a machine

	footprint []record.Detail // memory of the system's processes

	emulatorTrouble string // how the link deviated during the load; empty: it did not
	emulatorDied    bool
}

// load runs the scenario's load while observing all processes. end is why it was cut off
// (an exit condition, errDied, errLink or the end of parent); nil if it ended by itself.
func (t *execution) load(parent context.Context) (out loaded, end, err error) {
	r, s := t.r, t.s
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	before, _, err := r.bed.EmulatorStats(ctx)
	if err != nil {
		return out, nil, fmt.Errorf("link emulator: %w", err)
	}
	trace := testbed.TrackProcesses(s.hosts...)
	meter, footprint := newMeter(s, trace), measureFootprint(s)
	if s.network != nil {
		s.network.tol = float64(t.cell.Link.Tolerance)
	}
	stop := r.bed.Observe(t.epoch, t.observeEvery(), t.recorded(meter.add))
	unwatch := t.watch(cancel)
	load, err := s.runner.Trial(ctx, t.cell, trialSeed(r.plan.Experiment.Seed, t.cell.Group(), t.block),
		t.sink(meter, cancel))
	if ctx.Err() != nil {
		end = context.Cause(ctx)
	}
	cancel(nil)
	unwatch()
	stop() // takes a last sample, so that differences cover the whole trial
	_ = t.w.Link(load.Links...)
	out = loaded{load: load, usage: meter.usage(), footprint: footprint()}
	t.afterLoad(parent, &out, meter, trace, before)
	if err == nil {
		err = r.rec.Err() // a trial that was not recorded must not count as complete
	}
	// The scenario noticed the end of a process before we did.
	if out.died != nil && end == nil && err != nil {
		end = errDied
	}
	return out, end, err
}

// recorded passes samples to the meter and to the record, which keeps its first error.
func (t *execution) recorded(take func([]record.Sample)) func([]record.Sample) {
	return func(samples []record.Sample) {
		take(samples)
		_ = t.w.Samples(samples)
	}
}

// sink is where the scenario reports its load; cancel ends it if an exit condition is met.
func (t *execution) sink(meter *meter, cancel context.CancelCauseFunc) scenario.Sink {
	r := t.r
	// The beginning and the end of what a scenario measures are polled exactly then.
	look := func(take func([]record.Sample)) func() {
		return func() { t.recorded(take)(r.bed.Poll(t.epoch)) }
	}
	var verified *record.LinkCheck // the last, like the record has it
	if n := len(t.checks); n > 0 {
		verified = &t.checks[n-1]
	}
	return scenario.Sink{
		Epoch: t.epoch, Now: func() time.Duration { return time.Since(t.epoch) }, Number: t.block, Link: verified,
		Block: t.w.Block, Marks: t.w.Marks, Event: t.w.Event, Jobs: t.w.Jobs, Poll: t.w.Poll,
		Recorded: func() scenario.Measured { return scenario.Recorded(r.rec.Reader, t.w.ID()) },
		Begin:    look(meter.begin), End: look(meter.end),
		Progress: func(ops, bytes int64) { r.say(Event{Kind: EventLoad, Ops: ops, Bytes: bytes}) },
		State: func(s scenario.State) {
			t.mu.Lock()
			t.state, t.reported = s, true
			t.mu.Unlock()
			r.say(Event{Kind: EventState, State: s, Cell: t.cell.ID})
			t.judge(cancel)
		},
	}
}

// afterLoad adds to a load what others used meanwhile, and what died, was lost or deviated since before.
func (t *execution) afterLoad(ctx context.Context, out *loaded, meter *meter, trace func() []testbed.Process,
	before link.Stats) {
	r, s := t.r, t.s
	note := func(format string, args ...any) { out.notes = append(out.notes, fmt.Sprintf(format, args...)) }
	for _, machine := range meter.machines {
		first, last := meter.edges(testbed.OfMachine(testbed.OthersSample, machine))
		t.others.add(first, last)
		r.others.add(t.epoch, first, last)
	}
	share, busiest := t.others.worst(s.machines())
	if busiest == nil {
		share, busiest = r.others.window().worst(s.machines())
	}
	out.usage.OthersBusy = share
	if s.network == nil {
		out.died = s.died()
	} else {
		dead := deaths(trace())
		out.died = deadPeer(s, t.cell, dead)
		if n := len(dead); n > 0 { // the scenario knows when, and what the nodes lost
			note("%d of the processes of %s died by themselves, the first: %s", n, t.cell.System, dead[0].Name())
		}
		if undone := s.network.undo(ctx); undone != nil {
			r.event("note", "links not brought back", undone.Error(), 0)
		}
	}
	if gone, why := lostHost(s.all()); gone != nil {
		out.lost = why
		note("the machine of %s was lost: %v", gone.Name(), why)
	}
	machines, throttled := meter.notes()
	out.notes, out.throttled = append(out.notes, machines...), throttled
	if busiest != nil && busiest.Name() != "" {
		note("of the machines, others used most of %s", busiest.Name())
	}
	out.emulatorTrouble, out.emulatorDied = r.emulatorSince(ctx, s, before)
	during := fmt.Sprintf("during %s, %s", t.cell.ID, record.BlockName(t.block))
	if out.emulatorDied {
		r.event("fault", "link emulator died", during, 0)
	}
	if out.died != nil {
		r.event("fault", "process died", fmt.Sprintf("%s, %s: %v", out.died.Name(), during, out.died.Err()), 0)
	}
}

// measured returns the trial as it is now, with the metrics computed from its records, in the
// same way as a report does later.
func (t *execution) measured(out loaded) (record.Trial, error) {
	r := t.r
	counts := t.w.Summary().Counts()
	hosts := hostNames(t.cell.System, r.plan.CellsOf(t.cell.System))
	trial := record.Trial{
		ID: t.w.ID(), Cell: t.cell.ID, Block: t.block, Warmup: t.block < 0, State: record.Done, Epoch: t.epoch,
		Seconds: out.load.Seconds, Outcomes: counts.OutcomeMap(), Classes: counts.Classes,
		Details: append(scenario.Details(out.load, out.usage, hosts, scenario.OverTLS(t.s.use)), out.footprint...),
	}
	err := r.rec.Flush()
	if err == nil {
		trial.Metrics, err = scenario.Recompute(r.cfg.Scenario, r.rec.Reader, trial, t.cell, t.w.Summary())
	}
	if err != nil {
		return trial, err
	}
	trial.Notes = slices.Concat(out.load.Notes, out.notes, t.marks)
	// A machine of a mesh has one host for the nodes of all systems.
	if t.s.network != nil && r.bed.Mode().Mesh && len(r.sites) > 1 {
		trial.Notes = append(trial.Notes, "traffic: what other systems' nodes on the same machines exchange is "+
			"counted, too")
	}
	if r.notEmulated(t.cell) {
		trial.Notes = append(trial.Notes, record.NoteNotEmulated)
	}
	if out.emulatorTrouble != "" {
		trial.Notes = append(trial.Notes, "link: "+out.emulatorTrouble)
	}
	trial.Invalid = append(t.invalidBecause(out, counts, trial.Metrics), out.load.Invalid...)
	if t.restarted && !t.continues { // its caches are cold, unlike those of other cells
		trial.Invalid = append(trial.Invalid, record.ReasonDaemonRestarted)
		trial.Notes = append(trial.Notes, "the system was restarted before this trial")
	}
	trial.Invalid = analysis.InvalidReasons(t.cell, r.plan.Experiment.Limits, trial)
	return trial, nil
}

// invalidBecause returns the reasons why a trial is invalid, except those reported by the load
// generator; package analysis adds those that depend on limits. A trial that continues lasts
// so long that daemons die and links are late in it: that is only marked.
func (t *execution) invalidBecause(out loaded, c record.Counts, metrics map[string]float64) (why []string) {
	add := func(is bool, reason string) {
		if is {
			why = append(why, reason)
		}
	}
	off := func(l record.LinkCheck) bool { return !l.OK }
	add(slices.ContainsFunc(slices.Concat(t.checks, out.load.Links), off), record.ReasonLinkOff)
	add(out.died != nil && !t.continues, record.ReasonDaemonDied)
	add(out.lost != nil, record.ReasonMachineLost)
	add(out.throttled, record.ReasonThrottled)
	add(out.emulatorDied, record.ReasonEmulatorDied)
	add(out.emulatorTrouble != "" && !t.continues, record.ReasonEmulatorLate)
	// A killed session loses its last operations, but not its jobs.
	add(c.Ops == 0 && metrics["accepted"] == 0 && (t.cell.Collect == nil || metrics["polls"] == 0),
		record.ReasonNoOperations)
	return why
}

// emulatorSince returns how the link deviated since the earlier statistics (empty: it did
// not), and whether its emulator has died.
func (r *run) emulatorSince(ctx context.Context, s *site, before link.Stats) (trouble string, died bool) {
	after, running, err := r.bed.EmulatorStats(ctx)
	if err != nil {
		return "", ctx.Err() == nil
	}
	if s.attached() {
		return "", false
	}
	to := r.client
	if s.network != nil { // all links between nodes have the same delay
		to = s.hosts[len(s.hosts)-1]
	}
	if running {
		trouble = after.Since(before).Trouble(r.bed.Want(s.hosts[0], to).LatenessLimit())
	}
	if trouble == "" {
		trouble = r.bed.MeshMoved(ctx)
	}
	return trouble, false
}

// observeEvery returns the interval at which the processes of a trial are sampled. A trial
// that continues is sampled as often as the system is polled, so that weeks yield a
// manageable number of samples.
func (t *execution) observeEvery() time.Duration {
	switch {
	case t.cell.Upload != nil:
		return max(observeEvery, t.cell.Upload.Poll.Std())
	case t.cell.Collect != nil:
		return max(observeEvery, t.cell.Collect.Every.Std())
	}
	return observeEvery
}
