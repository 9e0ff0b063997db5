package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/upload"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/mem"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// slowLoad is a scenario whose one trial takes an object every so often, for as
// long as it is let: an upload without what makes uploads hard.
type slowLoad struct {
	upload.Scenario
	every   time.Duration
	objects int64
	bytes   int64                        // of each
	each    func(n int64) error          // called after the n-th of this session; its error ends the trial
	alter   func(s *scenario.State)      // of what is reported
	sees    func(site scenario.Site)     // what Prepare was given
	earlier func(jobs, events int)       // what a session found
	silent  func(now time.Duration) bool // after the first object: nothing is stored or said then
}

func (s *slowLoad) Prepare(_ context.Context, site scenario.Site, _ []experiment.Cell) (scenario.Runner, error) {
	if s.sees != nil {
		s.sees(site)
	}
	return s, nil
}

func (s *slowLoad) Measure(in scenario.Measured) map[string]float64 {
	return map[string]float64{"accepted": float64(in.Summary.Counts().Ops)}
}

func (s *slowLoad) Trial(ctx context.Context, _ experiment.Cell, _ uint64, sink scenario.Sink) (scenario.Load, error) {
	done := int64(0)
	earlier := sink.Recorded()
	for range earlier.Jobs {
		done++
	}
	if err := earlier.Err(); err != nil {
		return scenario.Load{}, err
	}
	if s.earlier != nil {
		events := 0
		for range earlier.Events {
			events++
		}
		s.earlier(int(done), events)
	}
	load := func() scenario.Load { return scenario.Load{Seconds: sink.Now().Seconds()} }
	for n := int64(1); done < s.objects; {
		began := sink.Now()
		select {
		case <-ctx.Done():
			var stop *scenario.Stop
			if errors.As(context.Cause(ctx), &stop) {
				return load(), nil
			}
			return load(), ctx.Err()
		case <-time.After(s.every):
		}
		if n > 1 && s.silent != nil && s.silent(sink.Now()) {
			continue
		}
		job := record.Job{Object: done, State: record.JobAccepted, Name: fmt.Sprint(done), Size: s.bytes, Began: began,
			Accepted: sink.Now(), Attempts: 1}
		op := record.Op{Kind: record.OpPut, Object: uint32(done), Length: s.bytes, Bytes: s.bytes,
			Start: max(1, began.Nanoseconds()), Intended: max(1, began.Nanoseconds()),
			LastByte: sink.Now().Nanoseconds()}
		if err := errors.Join(sink.Jobs(job),
			sink.Block(record.AppendBlock(nil, []record.Op{op}))); err != nil {
			return load(), err
		}
		done++
		state := scenario.State{At: sink.Now(), Objects: s.objects, Accepted: done, Bytes: done * s.bytes, Absolute: -1,
			Finished: done}
		if s.alter != nil {
			s.alter(&state)
		}
		sink.State(state)
		if s.each != nil {
			if err := s.each(n); err != nil {
				return load(), err
			}
		}
		n++
	}
	return load(), nil
}

const longExperiment = `
scenario: upload
systems: [{use: mem, mode: %s}]
data: {size: 1kB}
upload: {}
allow: [write, spend]
exit: {%s}
`

func longPlan(t *testing.T, mode, exit string, set ...string) *experiment.Plan {
	t.Helper()
	return mustPlan(t, fmt.Sprintf(longExperiment, mode, exit), append(set, "skip=machine,budget")...)
}

// renamed is an attached system that is upgraded between two sessions.
type renamed struct {
	*lasting
	version string
	runs    []string // of the deployments
}

func (r *renamed) Attach(_ context.Context, d system.Deployment) (system.Cluster, error) {
	r.runs = append(r.runs, d.Run)
	return r, nil
}
func (r *renamed) Nodes() []system.Node { return []system.Node{r} }
func (r *renamed) Identity() map[string]string {
	all := map[string]string{"version": r.version}
	if r.version > "1.0" { // Plimsoll knows more of it by then
		all["currency"] = "SC"
	}
	return all
}

// An interrupted trial is reported as it stands, and goes on as the same one:
// nothing is done twice, time goes on, and what happened to the system in
// between is a mark on it.
func TestInterruptedTrialGoesOn(t *testing.T) {
	t.Parallel()
	sys := &renamed{lasting: newLasting(t), version: "1.0"}
	ctx, cancel := context.WithCancel(t.Context())
	var sites []scenario.Site
	var found []int
	load := &slowLoad{
		every: 10 * time.Millisecond, objects: 20, bytes: 10,
		each: func(n int64) error {
			if n == 5 {
				cancel()
			}
			return nil
		},
		sees:    func(s scenario.Site) { sites = append(sites, s) },
		earlier: func(jobs, _ int) { found = append(found, jobs) },
	}
	cfg := configOf(t, longPlan(t, "attach", "max_runtime: 1h"), sys, load)
	cfg.Base = "/somewhere"
	res, err := Run(ctx, cfg)
	if err != nil || !res.Interrupt || res.Paused != 1 || res.Trials != 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	trials := readRun(t, cfg.Dir).trials
	if len(trials) != 1 || trials[0].State != record.Running || trials[0].Metrics["accepted"] < 5 ||
		trials[0].Seconds <= 0 {
		t.Fatalf("interrupted: %+v", trials)
	}
	first := trials[0]

	sys.version = "1.1"
	load.each = func(n int64) error {
		if n == 4 {
			return errors.New("the data set has changed")
		}
		return nil
	}
	cfg.Resume, cfg.Base = true, ""
	if res, err = Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "the data set has changed") ||
		res.Paused != 1 || res.Failed != 0 {
		t.Fatalf("failed: %+v, %v", res, err)
	}
	load.each = nil
	if res, err = Run(t.Context(), cfg); err != nil || res.Trials != 1 || res.Valid != 1 ||
		res.Stopped != nil {
		t.Fatalf("resumed: %+v, %v", res, err)
	}
	run := readRun(t, cfg.Dir)
	last := run.trials[0]
	if len(run.trials) != 1 || last.ID != first.ID || !last.Epoch.Equal(first.Epoch) || last.State != record.Done ||
		last.Outcomes["ok"] != 20 || last.Metrics["accepted"] != 20 || last.Seconds <= first.Seconds {
		t.Errorf("got %+v, it began as %+v", run.trials, first)
	}
	if !slices.Contains(last.Notes, record.NoteEnded+"all 20 objects are stored") ||
		!slices.Contains(last.Notes, `system changed: version: "1.1", was "1.0"`) {
		t.Errorf("notes: %q", last.Notes)
	}
	sessions := 0
	for _, e := range run.events {
		if e.Kind == "session" && e.What == "continued" && e.Trial == last.ID {
			sessions++
		}
	}
	if sessions != 2 || len(found) != 3 || found[0] != 0 || found[1] < 5 || found[2] < found[1]+4 {
		t.Errorf("%d sessions went on, which found %v jobs", sessions, found)
	}
	for _, name := range sys.runs {
		if name != sites[0].Run || len(sys.runs) < 3 {
			t.Errorf("deployments were told the runs %q, of %q", sys.runs, sites[0].Run)
		}
	}
	for _, s := range sites[1:] {
		if s.Run != sites[0].Run || s.Seed != sites[0].Seed || s.Run == "" || s.Base != "/somewhere" {
			t.Errorf("a later session has %q, %d, %q; the first had %q, %d", s.Run, s.Seed, s.Base, sites[0].Run,
				sites[0].Seed)
		}
	}
	if res, err = Run(t.Context(), cfg); err != nil || !res.Complete {
		t.Errorf("complete: %+v, %v", res, err)
	}
}

// A system that was started here and cannot be revived has lost its data: its
// trial begins anew, and that is said.
func TestTrialOfALostDeploymentBeginsAnew(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	load := &slowLoad{every: 10 * time.Millisecond, objects: 8, bytes: 10, each: func(n int64) error {
		if n == 3 {
			cancel()
		}
		return nil
	}}
	cfg := configOf(t, longPlan(t, "start", ""), mem.System{}, load)
	if res, err := Run(ctx, cfg); err != nil || res.Paused != 1 {
		t.Fatalf("%+v, %v", res, err)
	}
	load.each, load.earlier = nil, func(jobs, _ int) {
		if jobs != 0 {
			t.Errorf("it begins with %d jobs", jobs)
		}
	}
	cfg.Resume = true
	if res, err := Run(t.Context(), cfg); err != nil || res.Trials != 1 {
		t.Fatalf("%+v, %v", res, err)
	}
	run := readRun(t, cfg.Dir)
	if len(run.trials) != 1 || run.trials[0].Outcomes["ok"] != 8 {
		t.Errorf("got %+v", run.trials)
	}
	if !slices.ContainsFunc(run.events, func(e record.Event) bool {
		return e.What == "trial begins anew" && strings.Contains(e.Detail, "mem")
	}) {
		t.Errorf("nothing says that it began anew: %+v", run.events)
	}
}

// Conditions end a trial that runs; the run says which, and so does its trial.
func TestConditionsEndARunningTrial(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, exit string
		alter      func(s *scenario.State)
		silent     func(time.Duration) bool
		want       string
		most       int64 // objects
	}{
		{name: "bytes", exit: "max_bytes: 60B", want: "max_bytes", most: 8},
		{name: "runtime", exit: "max_runtime: 1s", want: "max_runtime", most: 150},
		{name: "errors", exit: "max_errors: 50%", alter: func(s *scenario.State) { s.Failures = s.Finished },
			want: "max_errors", most: 22},
		{name: "full", exit: "storage_full: true", alter: func(s *scenario.State) {
			if s.Accepted == 5 {
				s.Full = "no room"
			}
		}, want: "storage_full", most: 7},
		{name: "full, told not to mind", exit: "storage_full: false, max_bytes: 300B",
			alter: func(s *scenario.State) { s.Full = "no room" }, want: "max_bytes", most: 32},
		{name: "floor, though nothing is said", exit: "floor: {bytes: 1B, window: 1s}",
			silent: func(at time.Duration) bool { return at > 100*time.Millisecond }, want: "floor", most: 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := configOf(t, longPlan(t, "attach", c.exit), newLasting(t), &slowLoad{every: 10 * time.Millisecond,
				objects: 100_000, bytes: 10, alter: c.alter, silent: c.silent})
			res, err := Run(t.Context(), cfg)
			if err != nil || res.Stopped == nil || res.Stopped.Condition != c.want || res.Trials != 1 ||
				res.Valid != 1 {
				t.Fatalf("%+v, %v, %v", res, res.Stopped, err)
			}
			run := readRun(t, cfg.Dir)
			if n := run.trials[0].Outcomes["ok"]; n < 1 || n > c.most {
				t.Errorf("%d objects were stored, at most %d are expected", n, c.most)
			}
			if !strings.Contains(run.meta["stopped"], c.want) ||
				!slices.ContainsFunc(run.trials[0].Notes, func(n string) bool {
					return strings.HasPrefix(n, record.NoteEnded+c.want+": ")
				}) {
				t.Errorf("recorded: %q, notes %q", run.meta["stopped"], run.trials[0].Notes)
			}
			cfg.Resume = true
			again, err := Run(t.Context(), cfg)
			if err != nil || !again.Complete || again.Stopped == nil || again.Stopped.Condition != c.want {
				t.Errorf("resumed: %+v, %v, %v", again, again.Stopped, err)
			}
		})
	}
}

// inVirtualTime runs a test of a run whose one system is attached.
func inVirtualTime(t *testing.T, exit string, load *slowLoad, test func(t *testing.T, r *run)) {
	t.Helper()
	bed, err := testbed.New(t.Context(), testbed.Options{Dir: t.TempDir(), Plain: true})
	must(t, err)
	defer bed.Close(context.WithoutCancel(t.Context()))
	plan := longPlan(t, "attach", exit, "upload.poll=6h")
	canonical, err := plan.Marshal()
	must(t, err)
	synctest.Test(t, func(t *testing.T) {
		dir, l := filepath.Join(t.TempDir(), "run"), newLasting(t)
		rec, err := record.Create(dir, canonical, nil, nil)
		must(t, err)
		t.Cleanup(func() { rec.Close() })
		test(t, &run{others: recentOthers{},
			cfg: Config{Plan: plan, Scenario: load, Dir: dir}, plan: plan, say: silent, begun: time.Now(),
			rec: rec, bed: bed, done: map[trialKey]record.Trial{}, interrupted: map[trialKey]record.Trial{},
			sites: map[string]*site{"mem": {use: plan.Experiment.Systems[0], sys: l, cluster: l, runner: load}},
		})
	})
}

// A load test of a day, in virtual time: its operations, its sessions and its
// end are where they should be, and what is kept of it stays small.
func TestDay(t *testing.T) {
	slow(t)
	exit := "max_runtime: 24h, floor: {bytes: 1kB, window: 1h}"
	load := &slowLoad{every: 10 * time.Minute, objects: 1 << 30, bytes: 10_000}
	inVirtualTime(t, exit, load, func(t *testing.T, r *run) {
		begun := time.Now()
		trial, err := r.trial(t.Context(), r.plan.Cells[0], 0)
		must(t, err)
		if r.stoppedBy == nil || r.stoppedBy.Condition != "max_runtime" {
			t.Errorf("ended by %v", r.stoppedBy)
		}
		if took := time.Since(begun); took < 24*time.Hour || took > 25*time.Hour {
			t.Errorf("it took %v", took)
		}
		if n, want := trial.Outcomes["ok"], int64(24*6); n < want-1 || n > want+1 {
			t.Errorf("%d objects, want %d", n, want)
		}
		samples := 0
		for _, err := range r.rec.Samples(trial.ID) {
			must(t, err)
			samples++
		}
		if samples == 0 || samples > 4*(4+2) { // plimsoll, the box, the others
			t.Errorf("%d samples of processes", samples)
		}
	})
}

// The time for which a system was down is no lack of progress: the floor is
// judged anew once it is up again, and as strictly. What was spent before the
// trial is known to it.
func TestFloorAfterADeath(t *testing.T) {
	t.Parallel()
	stalls := time.Duration(1 << 60) // nothing is stored from then on
	load := &slowLoad{
		every: time.Minute, objects: 1 << 30, bytes: 1,
		silent: func(at time.Duration) bool { return at > stalls },
	}
	inVirtualTime(t, "floor: {bytes: 55B, window: 1h}", load, func(t *testing.T, r *run) {
		trial := &execution{r: r, s: r.sites["mem"], cell: r.plan.Cells[0], continues: true,
			others: byMachine{}}
		unready, err := trial.open(t.Context())
		must(t, errors.Join(unready, err))
		during := func(d time.Duration) error {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			defer time.AfterFunc(d, func() { cancel(errDied) }).Stop()
			_, end, _ := trial.load(ctx)
			return end
		}
		if end := during(100 * time.Minute); !errors.Is(end, errDied) {
			t.Fatalf("ended by %v", end)
		}
		time.Sleep(25 * time.Minute)
		if end := during(3 * time.Hour); !errors.Is(end, errDied) {
			t.Errorf("after 25 minutes of downtime it was ended by %v", end)
		}
		stalls = time.Since(trial.epoch) + 30*time.Minute
		var stop *scenario.Stop
		if end := during(3 * time.Hour); !errors.As(end, &stop) || stop.Condition != "floor" {
			t.Errorf("nothing was stored, and it was ended by %v", end)
		}
	})
}

// A trial that goes on has the time that has passed since its epoch, and never
// less than it has recorded, whatever became of the wall clock.
func TestClockOfAContinuedTrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			name       string
			passed     time.Duration // by the wall clock, since the epoch
			last, want time.Duration
		}{
			{"a pause of an hour", 3 * time.Hour, 2 * time.Hour, 3 * time.Hour},
			{"the clock was set back", 30 * time.Minute, 2 * time.Hour, 2 * time.Hour},
			{"before the epoch", -time.Hour, 5 * time.Second, 5 * time.Second},
			{"25 days", 25 * 24 * time.Hour, 24 * time.Hour, 25 * 24 * time.Hour},
		} {
			now := time.Now()
			epoch := continued(now.Add(-c.passed).UTC().Round(0), now, c.last)
			if got := time.Since(epoch); got != c.want {
				t.Errorf("%s: %v, want %v", c.name, got, c.want)
			}
			time.Sleep(time.Minute)
			if got := time.Since(epoch); got != c.want+time.Minute {
				t.Errorf("%s: a minute later it is %v", c.name, got)
			}
		}
	})
}
