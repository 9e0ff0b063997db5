// Package engine runs a plan: it checks preconditions, brings up the testbed and the
// systems, executes trials in an interleaved, seeded order, observes and records everything
// meanwhile, and ends when the plan is done, an exit condition is met or the user stops it.
package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/experiment/suggest"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// Config is everything a run needs.
type Config struct {
	Plan     *experiment.Plan
	Systems  []system.System
	Scenario scenario.Scenario
	Dir      string   // the run directory
	Base     string   // directory for relative paths of the experiment; a resumed run uses the recorded one
	Resume   bool     // Dir contains an earlier part of this plan's run
	Version  string   // of Plimsoll, for the record
	Command  []string // how the user called us, for the record
	Progress Progress

	WaitQuiet    time.Duration // how long to wait for a quiet machine before the first trial
	StopInvalid  bool          // stop when no trial of the session's first block is valid
	RetryInvalid bool          // of a resumed run: execute invalid trials again

	// Clients is the number of processes among which the load of retrieve is divided; 0: one
	// or, in a resumed run, as many as before.
	Clients int

	Hosts    testbed.Hosts     // creates hosts; nil: namespaces of this machine
	Machines int               // number of machines of Hosts, including this one; 0: only this machine
	Where    map[string]string // recorded in the environment: where Machines are
	// BetweenTrials is called before each trial, and end after it: meanwhile, nothing of ours should use the
	// machine. May be nil.
	BetweenTrials func(ctx context.Context) (end func())
}

// Result says how a run ended.
type Result struct {
	Trials     int      // executed and measured, in this and earlier sessions
	Valid      int      // of them
	Failed     int      // could not be executed
	Skipped    int      // left out on purpose
	WrongBytes int64    // operations whose bytes were not the object's
	Failing    []string // systems with failures, and without any success, in valid trials
	// objects that finished load tests do not have: given up, or not stored as requested
	LostObjects int64
	Stopped     *scenario.Stop // the exit condition that was met, if any
	Paused      int            // trials that a resumed run will continue
	Interrupt   bool           // the user stopped it
	Invalid     string         // why it stopped after the first block, if it did
	Complete    bool           // it was complete before it was resumed: nothing was executed
}

// cleanupTime limits the cleanup after a run. Before it, removing what was stored in an
// attached system may take removeTime: there may be many objects, and a user who does not
// want to wait can interrupt again.
const (
	cleanupTime = 60 * time.Second
	removeTime  = 10 * time.Minute
)

// Run executes a plan. Whatever the error, the run directory is complete and readable; a
// cancelled context ends the run cleanly with Result.Interrupt.
func Run(ctx context.Context, cfg Config) (res Result, err error) {
	r := &run{cfg: cfg, plan: cfg.Plan, begun: time.Now(), say: cfg.Progress, others: recentOthers{}}
	defer func() {
		ctx := context.WithoutCancel(ctx)
		r.clear(ctx)
		cleanup, cancel := context.WithTimeout(ctx, cleanupTime)
		defer cancel()
		err = errors.Join(err, r.close(cleanup))
	}()
	// Events outside of the trials that make continuing pointless end the run at once.
	working, end := context.WithCancelCause(ctx)
	defer end(nil)
	r.end = end
	if err := r.open(working); err != nil {
		r.neverBegan = (ctx.Err() == nil || r.bed == nil) && !cfg.Resume
		err = res.ended(ctx, working, err)
		return res, err
	}
	if r.complete() {
		res = r.result()
		res.Complete, res.Stopped = true, r.earlierStop()
		r.over = true
		return res, nil
	}
	stopped, err := r.blocks(working)
	res = r.result()
	res.Stopped = stopped
	err = res.ended(ctx, working, err)
	// Nothing will continue the run, so the data of its deployments is no longer needed.
	r.over = err == nil && res.Invalid == "" && !res.Interrupt && (stopped != nil || r.complete())
	return res, err
}

// ended returns the error of a session whose work returned err: none if the user stopped it, and
// the cause if we ended the work.
func (res *Result) ended(ctx, working context.Context, err error) error {
	switch res.Interrupt = ctx.Err() != nil; {
	case res.Interrupt && errors.Is(err, context.Canceled):
		return nil
	case !res.Interrupt && err != nil && working.Err() != nil:
		return context.Cause(working)
	}
	return err
}

// run is one session of a run.
type run struct {
	cfg   Config
	plan  *experiment.Plan
	say   Progress
	begun time.Time
	end   context.CancelCauseFunc // ends the session at once

	rec     *record.Run
	bed     *testbed.Testbed
	client  testbed.Host
	outside testbed.Host // the client of attached systems, on this machine's own network
	// hosts of additional load generators on other machines
	generators []testbed.Host
	sites      map[string]*site // by system name
	link       linkState
	scratch    string
	cache      string // where chains are kept for all runs; empty: the plan has none

	earlier float64                   // wall clock of earlier sessions, seconds
	done    map[trialKey]record.Trial // executed, or skipped
	others  recentOthers
	bytes   int64 // body bytes of all trials
	failed  int
	invalid string // why it stops after the session's first block

	// For trials that continue over several sessions.
	interrupted map[trialKey]record.Trial    // to be continued
	startedOver []string                     // why other interrupted trials start over
	identities  map[string]map[string]string // of the systems, in the previous session, then in this one
	lastSeen    time.Time                    // last known time of the previous session
	stoppedBy   *scenario.Stop               // the exit condition that ended the trial, if any
	paused      int
	over        bool // no session will follow
	neverBegan  bool // the run could not begin: nothing was executed
}

type trialKey struct {
	cell  string
	block int // warm-up blocks are negative
}

// open brings up everything that trials need. What can be checked without starting
// anything comes first, because those failures are the cheapest.
func (r *run) open(ctx context.Context) (err error) {
	if err := r.openRecord(ctx); err != nil || r.complete() {
		return err
	}
	if problems := Blocking(Preconditions(ctx, r.cfg)); len(problems) > 0 {
		return &scenario.PreconditionError{Problems: problems}
	}
	r.say(Event{Kind: EventStart})
	if err := r.awaitQuiet(ctx); err != nil {
		return err
	}
	opt := testbedOptions(r.cfg)
	opt.Log = r.say.Note
	if r.bed, err = testbed.New(ctx, opt); err != nil {
		return err
	}
	if mode := r.bed.Mode(); mode.Emulator == "none" && shapes(r.plan) {
		r.say.Note(mode.Why)
		r.event("note", "links are not emulated", mode.Why, 0)
	}
	if r.scratch, err = r.bed.Scratch("run"); err != nil {
		return err
	}
	if r.plan.Experiment.Sync != nil {
		if r.cache, err = testbed.CacheDir("chains"); err != nil {
			return err
		}
	}
	if err := r.addClients(ctx); err != nil {
		return err
	}
	if err := r.deployAll(ctx); err != nil {
		return err
	}
	return r.recordEnvironment()
}

// addClients adds the hosts that systems are loaded from.
func (r *run) addClients(ctx context.Context) (err error) {
	if r.client, err = r.bed.AddHost(ctx, "client"); err != nil {
		return err
	}
	for _, name := range GeneratorHosts(r.clients()) {
		if r.cfg.Machines == 0 {
			break
		}
		h, err := r.bed.AddHost(ctx, name)
		if err != nil {
			return err
		}
		r.generators = append(r.generators, h)
	}
	if attaches(r.plan) {
		r.outside, err = r.bed.Outside(ctx, "client-outside")
	}
	return err
}

func (r *run) openRecord(ctx context.Context) error {
	plan, err := r.plan.Marshal()
	if err != nil {
		return err
	}
	if r.cfg.Resume {
		r.rec, err = record.Resume(r.cfg.Dir, plan, r.canContinue)
	} else {
		r.rec, err = record.Create(r.cfg.Dir, plan, map[string]string{
			"plimsoll": r.cfg.Version, "command": suggest.Command(r.cfg.Command...),
			"scenario": r.cfg.Scenario.Name(), baseKey: r.cfg.Base,
		}, r.cfg.Scenario.Metrics())
	}
	if err != nil {
		return err
	}
	go func() {
		select {
		case <-r.rec.Broken():
			r.end(r.rec.Err())
		case <-ctx.Done():
		}
	}()
	if err := r.readEarlier(); err != nil {
		return err
	}
	if !r.complete() {
		r.event("phase", map[bool]string{false: runBegins, true: runResumed}[r.cfg.Resume], "", 0)
		for _, why := range r.startedOver {
			r.event("note", "trial begins anew", why, 0)
			r.say.Note(why)
		}
	}
	return nil
}

// close ends everything, whatever happened before, within the deadline of ctx.
func (r *run) close(ctx context.Context) error {
	var errs []error
	for _, s := range r.sites {
		errs = append(errs, r.stopSite(ctx, s))
	}
	if r.bed != nil {
		errs = append(errs, r.bed.Close(ctx))
	}
	if r.over {
		errs = append(errs, os.RemoveAll(filepath.Join(r.cfg.Dir, "nodes")))
	}
	if r.rec != nil {
		if r.bed != nil {
			r.event("phase", "run ends", "", time.Since(r.begun))
		}
		if r.neverBegan {
			// Only the logs of started processes stay, if there are any.
			_ = os.Remove(filepath.Join(r.cfg.Dir, record.LogsDir))
			errs = append(errs, os.RemoveAll(filepath.Join(r.cfg.Dir, "nodes")), r.rec.Discard())
		} else {
			errs = append(errs, r.rec.Close())
		}
	}
	return errors.Join(errs...)
}

func (r *run) result() Result {
	res := Result{Paused: r.paused, Failed: r.failed, Invalid: r.invalid}
	trials := slices.Collect(maps.Values(r.done))
	analysis.Judge(r.plan, trials)
	succeeded, failed := map[string]int64{}, map[string]int64{}
	for _, t := range trials {
		if t.Warmup {
			continue
		}
		if t.State == record.Skipped {
			res.Skipped++
			continue
		}
		res.Trials++
		if t.Valid() {
			res.Valid++
			cell, _ := r.cellAndUse(t.Cell)
			succeeded[cell.System] += t.Outcomes[record.OK.String()]
			failed[cell.System] += record.SumOutcomes(t.Outcomes, record.Outcome.ServerFailure)
		}
		res.WrongBytes += t.Outcomes[record.WrongBytes.String()]
		res.LostObjects += r.lostObjects(t)
	}
	for _, u := range r.plan.Experiment.Systems {
		if failed[u.Name] > 0 && succeeded[u.Name] == 0 {
			res.Failing = append(res.Failing, u.Name)
		}
	}
	return res
}

// lostObjects returns how many objects a finished load test has not stored, not seen durable
// although it should have, or not read back.
func (r *run) lostObjects(t record.Trial) int64 {
	cell, _ := r.cellAndUse(t.Cell)
	objects, known := t.Metrics["objects"]
	if !known || cell.Upload == nil {
		return 0
	}
	lost := objects - t.Metrics["accepted"] + t.Metrics["verify_failed"]
	if cell.Upload.Until == "durable" {
		lost += t.Metrics["not_durable"]
	}
	return int64(max(0, lost))
}

// attaches reports whether any system of the plan runs elsewhere.
func attaches(p *experiment.Plan) bool {
	return slices.ContainsFunc(p.Experiment.Systems, experiment.SystemUse.Attached)
}

// shapes reports whether any cell has a shaped link.
func shapes(p *experiment.Plan) bool {
	return slices.ContainsFunc(p.Cells, func(c experiment.Cell) bool { return c.Link.Shaped() })
}

// clients returns the number of load generator processes.
func (r *run) clients() int {
	return ClientsOf(r.cfg.Clients, r.rec.Reader)
}

// ClientsOf returns the number of load generator processes of a run: want or, if that is 0, the
// recorded number.
func ClientsOf(want int, recorded *record.Reader) int {
	if want == 0 {
		want, _ = strconv.Atoi(recorded.Meta()[metaClients])
	}
	return max(1, want)
}

func (r *run) event(kind, what, detail string, took time.Duration) {
	if r.rec == nil || r.rec.Err() != nil { // the run ends with that error
		return
	}
	if err := r.rec.Event(record.Event{At: time.Now(), Kind: kind, What: what, Detail: detail,
		Took: took}); err != nil {
		r.say.Note(fmt.Sprintf("cannot record event %q: %v", what, err))
	}
}

// Progress is called with the events of a run, from several goroutines.
type Progress func(Event)

// Event is something to show to the user while a run is executed.
type Event struct {
	Kind       string
	Text       string // of a phase or note
	Cell       string // ID
	N, Total   int    // of the trial that begins, from 1
	Block      int
	Ops, Bytes int64
	State      scenario.State
	Trial      record.Trial
}

// Kinds of events.
const (
	EventStart = "start" // once, when the preconditions hold
	EventPhase = "phase" // a step that takes time, such as "starting nginx"
	EventNote  = "note"  // something to know
	EventBegin = "begin" // of a trial
	EventLoad  = "load"  // during a trial
	EventState = "state" // during a long trial
	EventEnd   = "end"   // of a trial
)

// Phase starts a step that takes time.
func (p Progress) Phase(what string) { p(Event{Kind: EventPhase, Text: what}) }

// Note informs the user.
func (p Progress) Note(text string) { p(Event{Kind: EventNote, Text: text}) }
