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

// trial executes one cell once. The error is of the run as a whole; a trial
// that could not be executed comes back as failed, with its reason.
func (r *run) trial(ctx context.Context, cell experiment.Cell, block int) (record.Trial, error) {
	// The scenario of this session has not seen yet how long it takes.
	if why, again := r.skipped[cell.ID]; again {
		w, err := r.rec.Begin(cell.ID, block, block < 0, time.Now())
		if err != nil {
			return record.Trial{}, err
		}
		return skipped(w, cell, block, why)
	}
	s := r.sites[cell.System]
	limit := r.trialTime(cell)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	// Health and link first: the trial's clock begins when it is ready to be loaded.
	var restarted bool
	var check *record.LinkCheck
	unready := r.mendLink(ctx)
	if unready == nil {
		restarted, unready = r.healthy(ctx, s)
	}
	if unready == nil {
		unready = getReady(ctx, s, cell)
	}
	var unfit *scenario.UnfitError
	if errors.As(unready, &unfit) { // so are all trials to come
		return record.Trial{}, unready
	}
	if unready == nil {
		check, unready = r.prepareLink(ctx, s, cell, block)
	}
	if err := canceled(ctx); err != nil {
		return record.Trial{}, err
	}
	epoch := time.Now()
	w, err := r.rec.Begin(cell.ID, block, block < 0, epoch)
	if err != nil {
		return record.Trial{}, err
	}
	fail := func(err error) (record.Trial, error) {
		if ended := canceled(ctx); ended != nil {
			return record.Trial{}, ended // left as running: a resumed run does it again
		}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = fmt.Errorf("the trial took longer than its limit of %s: %w", limit, err)
		}
		r.bytes += w.Summary().Counts().Bytes
		t := record.Trial{Cell: cell.ID, Block: block, Warmup: block < 0, State: record.Failed, Error: err.Error()}
		return t, w.Fail(err)
	}
	if unready != nil {
		return fail(unready)
	}
	if check != nil {
		if err := w.Link(*check); err != nil {
			return fail(err)
		}
	}

	out, err := r.load(ctx, s, cell, block, w, epoch, check)
	var skip *scenario.SkipError
	if errors.As(err, &skip) {
		return skipped(w, cell, block, skip.Why)
	}
	if err != nil {
		return fail(err)
	}
	for _, l := range out.load.Links {
		if err := w.Link(l); err != nil {
			return fail(err)
		}
	}
	counts := w.Summary().Counts()
	t := record.Trial{
		ID: w.ID(), Cell: cell.ID, Block: block, Warmup: block < 0, State: record.Done, Seconds: out.load.Seconds,
		Outcomes: counts.OutcomeMap(), Classes: counts.Classes,
		Notes: out.load.Notes, Details: out.details(s), Invalid: append(spoiledBy(out, check, counts), out.load.Invalid...),
	}
	if t.Metrics, err = r.metrics(t, cell, w); err != nil {
		return fail(err)
	}
	t.Notes = append(t.Notes, out.notes...)
	if r.notEmulated(cell) {
		t.Notes = append(t.Notes, record.NoteNotEmulated)
	}
	if out.emulatorTrouble != "" {
		t.Notes = append(t.Notes, "link: "+out.emulatorTrouble)
	}
	if restarted {
		// Its caches are cold, the other cells' are not.
		t.Invalid = append(t.Invalid, record.ReasonDaemonRestarted)
		t.Notes = append(t.Notes, "the system was restarted before this trial")
	}
	t.Invalid = validity.Reasons(cell, r.plan.Experiment.Limits, t)
	r.bytes += counts.Bytes
	return t, w.End(t)
}

// metrics computes a trial's metrics from what it has recorded, as a report does later.
func (r *run) metrics(t record.Trial, cell experiment.Cell, w *record.TrialWriter) (map[string]float64, error) {
	if err := r.rec.Flush(); err != nil {
		return nil, err
	}
	return scenario.Recompute(r.cfg.Scenario, r.rec.Reader, t, cell, w.Summary())
}

// getReady lets the scenario do what it does once for a cell.
func getReady(ctx context.Context, s *site, cell experiment.Cell) error {
	readier, ok := s.runner.(scenario.Readier)
	if !ok {
		return nil
	}
	return readier.Ready(ctx, cell)
}

// skipped records a trial that is left out on purpose.
func skipped(w *record.TrialWriter, cell experiment.Cell, block int, why string) (record.Trial, error) {
	t := record.Trial{ID: w.ID(), Cell: cell.ID, Block: block, Warmup: block < 0, State: record.Skipped, Error: why}
	return t, w.Skip(why)
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
	died  *testbed.Process
	notes []string
	tls   bool

	footprint []record.Detail // memory of the system's processes

	emulatorTrouble string // why the link was not itself during the load; empty: it was
	emulatorDied    bool
}

// details are the facts about it that are recorded as details.
func (l loaded) details(s *site) []record.Detail {
	return append(scenario.Details(l.load, l.usage, hostNamesOf(s.hosts), l.tls), l.footprint...)
}

// load runs the scenario's load with all processes under observation.
func (r *run) load(ctx context.Context, s *site, cell experiment.Cell, block int, w *record.TrialWriter, epoch time.Time,
	check *record.LinkCheck,
) (loaded, error) {
	var mu sync.Mutex
	var recErr error // the first failure to record; the trial must not pass for whole
	keep := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if recErr == nil {
			recErr = err
		}
	}
	before, _, err := r.bed.EmulatorStats(ctx)
	if err != nil {
		return loaded{}, fmt.Errorf("link emulator: %w", err)
	}
	trace := s.trace(r.bed)
	defer trace.Stop()
	meter, memory := newMeter(s, trace), startFootprint(s)
	observed := func(samples []record.Sample) { keep(w.Samples(samples)) }
	window := window{r.bed, epoch, meter, observed}
	if s.network != nil {
		s.network.tol = float64(cell.Link.Tolerance)
	}
	stop := r.bed.Observe(ctx, epoch, observeEvery, func(samples []record.Sample) {
		meter.add(samples)
		observed(samples)
	})
	load, err := s.runner.Trial(ctx, cell, trialSeed(r.plan.Experiment.Seed, cell.Group(), block), scenario.Sink{
		Epoch: epoch,
		Link:  check,
		Block: w.Block,
		Progress: func(ops, bytes int64) {
			r.say.Load(ops, bytes, time.Since(epoch))
		},
		Number: block, Marks: w.Marks, Event: w.Event, Begin: window.begin, End: window.end,
	})
	stop() // takes a last sample, so that deltas cover the whole trial
	out := loaded{load: load, usage: meter.usage(), tls: scenario.OverTLS(s.use), footprint: memory.details()}
	if s.network == nil {
		out.died = s.died()
	} else {
		dead := deaths(trace.Processes())
		out.notes, out.died = deathNotes(cell, dead), deadPeer(s, cell, dead)
		if undone := s.network.undo(ctx); undone != nil {
			r.event("note", "links not brought back", undone.Error(), 0)
		}
	}
	out.emulatorTrouble, out.emulatorDied = r.emulatorSince(ctx, s, before)
	if out.emulatorDied {
		r.event("fault", "link emulator died", fmt.Sprintf("during %s, %s", cell.ID, record.BlockName(block)), 0)
	}
	if out.died != nil {
		r.event("fault", "process died", fmt.Sprintf("%s, during %s, %s: %v", out.died.Name(), cell.ID, record.BlockName(block), out.died.Err()), 0)
	}
	if err == nil {
		mu.Lock()
		err = recErr
		mu.Unlock()
	}
	return out, err
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
	return 4*estimate + limits.Deadline.Std() + limits.Start.Std() + healthPatience + 2*time.Minute + nodesTime(cell, limits)
}

// emulatorSince tells why the link did not do what it should since the earlier
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
	return after.Since(before).Trouble(r.bed.Want(s.hosts[0], to).LatenessLimit()), false
}

// spoiledBy names what happened during a trial that speaks against it, apart from what
// the generator says of itself; package validity adds what limits decide.
func spoiledBy(out loaded, check *record.LinkCheck, c record.Counts) []string {
	var why []string
	off := func(l record.LinkCheck) bool { return !l.OK }
	if check != nil && off(*check) || slices.ContainsFunc(out.load.Links, off) {
		why = append(why, record.ReasonLinkOff)
	}
	if out.died != nil {
		why = append(why, record.ReasonDaemonDied)
	}
	if out.emulatorDied {
		why = append(why, record.ReasonEmulatorDied)
	}
	if out.emulatorTrouble != "" {
		why = append(why, record.ReasonEmulatorLate)
	}
	if c.Ops == 0 {
		why = append(why, record.ReasonNoOperations)
	}
	return why
}
