package remote

import (
	"context"
	"crypto/rand"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/engine"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/atomicfile"
	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/testbed"
	"github.com/plimsoll-project/plimsoll/testbed/agent"
)

// Where is where a run is, kept beside its record for resume.
type Where struct {
	On   string `json:"on"`            // as --on takes it
	Run  string `json:"run,omitempty"` // ID of what is there; empty: nothing is left
	Over bool   `json:"over"`          // nothing of the plan is left to execute
}

// ReadWhere is where the run in a directory is; nil: here.
func ReadWhere(dir string) (*Where, error) {
	b, err := os.ReadFile(filepath.Join(dir, whereIs))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var w Where
	if err == nil {
		err = json.Unmarshal(b, &w)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, whereIs), err)
	}
	return &w, nil
}

// Launcher runs plans in a place.
type Launcher struct {
	Place Place
	On    string        // the place, as --on takes it
	Sync  time.Duration // how often the run directory is brought here; 0: when the run is over

	cfg      engine.Config
	say      engine.Progress
	where    Where
	machines []Machine
	again    bool       // the run recorded nothing here, and begins anew
	fetching sync.Mutex // an older copy may not come after a newer one
}

// What may take how long.
const (
	createTime = 15 * time.Minute
	fetchTime  = 30 * time.Minute
	deleteTime = 5 * time.Minute
	// A run that was interrupted removes what it stored elsewhere, and cleans up.
	interruptTime = 15 * time.Minute
	// After so long without a connection the run is left to itself.
	reconnectTime = 10 * time.Minute
)

// Run runs a plan in the place as [engine.Run] does here. The run directory is as complete as
// what could be brought here.
func (l *Launcher) Run(ctx context.Context, cfg engine.Config) (res engine.Result, err error) {
	if cfg.Dir, err = filepath.Abs(cfg.Dir); err != nil {
		return res, err
	}
	l.cfg, l.say, l.where = cfg, cfg.Progress, Where{On: l.On}
	attached := false
	if cfg.Resume {
		if attached, err = l.attach(ctx); err != nil {
			return res, err
		}
	}
	if !attached {
		if err := l.launch(ctx); err != nil {
			if res.Interrupt = ctx.Err() != nil; res.Interrupt {
				err = nil
			}
			return res, errors.Join(err, l.clear(ctx))
		}
	}
	last, err := l.follow(ctx)
	if err != nil {
		return res, err
	}
	l.say.Phase("bringing the run directory here")
	if err := l.fetch(context.WithoutCancel(ctx)); err != nil {
		return last.Result, ui.WithHint(fmt.Errorf("the run is over, and its directory could not be brought here: %w", err),
			"it waits there for a day: plimsoll resume "+cfg.Dir)
	}
	err = last.Failure.err(filepath.Join(l.machines[0].Dir, runDir), l.cfg.Dir)
	if last.Kind == died {
		err = ui.WithHint(fmt.Errorf("the engine on %s has ended without a word: %s", l.machines[0].Name, last.Text),
			"go on with what it recorded: plimsoll resume "+cfg.Dir)
	}
	r := last.Result
	l.where.Over = err == nil && !r.Interrupt && r.Invalid == nil && r.Failed == 0 && last.Kind == over
	return r, errors.Join(err, l.clear(ctx))
}

// launch makes the machines, and starts the engine on the first of them.
func (l *Launcher) launch(ctx context.Context) error {
	if err := engine.Placeable(l.cfg.Plan); err != nil {
		return err
	}
	need := engine.MachinesFor(l.cfg.Plan)
	if err := l.check(ctx, need); err != nil {
		return err
	}
	plan, err := l.cfg.Plan.Marshal()
	if err != nil {
		return err
	}
	if err := l.makeDir(plan); err != nil {
		return err
	}
	authority, err := agent.NewAuthority()
	if err != nil {
		return err
	}
	theirs, err := authority.Issue(true)
	if err != nil {
		return err
	}
	o := order{
		Plan: plan, Base: l.cfg.Base, Command: l.cfg.Command, Resume: l.cfg.Resume, WaitQuiet: l.cfg.WaitQuiet, Clients: l.cfg.Clients,
		StopInvalid: l.cfg.StopInvalid, RetryInvalid: l.cfg.RetryInvalid,
	}
	if o.Credentials, err = authority.Issue(false); err != nil {
		return err
	}
	binary, err := os.Executable()
	if err != nil {
		return err
	}
	l.where.Run = "r" + strings.ToLower(rand.Text()[:11])
	if err := l.keepWhere(); err != nil { // first, lest we die between the two
		return err
	}
	l.say.Phase(fmt.Sprintf("making %d machines ready", need))
	making, cancel := context.WithTimeout(ctx, createTime)
	defer cancel()
	l.machines, err = l.Place.Create(making, Spec{Run: l.where.Run, Machines: need, Credentials: theirs, Binary: binary})
	if err != nil {
		return err
	}
	o.Machines = l.machines
	return l.start(making, o)
}

// check refuses a place that cannot give so many machines.
func (l *Launcher) check(ctx context.Context, machines int) error {
	var missing engine.PreconditionError
	for _, p := range l.Place.Check(ctx, machines) {
		if p.Severity == testbed.Fatal {
			missing.Problems = append(missing.Problems, engine.Problem{Name: p.Name, What: p.What, Hint: p.Hint, Blocking: true})
		} else {
			l.say.Note(p.What)
		}
	}
	if len(missing.Problems) > 0 {
		return &missing
	}
	return ctx.Err()
}

// makeDir makes the run directory with its plan, so that resume knows that from the beginning.
func (l *Launcher) makeDir(plan []byte) error {
	if l.cfg.Resume {
		return nil
	}
	if err := os.MkdirAll(l.cfg.Dir, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(l.cfg.Dir)
	if err != nil {
		return err
	}
	if len(entries) > 0 && !l.again {
		return ui.Exit(ui.CodePreconditions, ui.WithHint(fmt.Errorf("run directory %s is not empty", l.cfg.Dir),
			"choose another directory with --out"))
	}
	return os.WriteFile(filepath.Join(l.cfg.Dir, planFile), plan, 0o644)
}

// start hands the order, and the directory of a run that is resumed, to the first machine.
func (l *Launcher) start(ctx context.Context, o order) error {
	r, w := io.Pipe()
	go func() {
		err := gob.NewEncoder(w).Encode(o)
		if err == nil && o.Resume {
			err = writeRun(w, l.cfg.Dir)
		}
		w.CloseWithError(err)
	}()
	defer r.Close()
	return l.node(ctx, "start", r, io.Discard)
}

// node runs a part of ServeNode on the first machine.
func (l *Launcher) node(ctx context.Context, verb string, in io.Reader, out io.Writer) error {
	var said strings.Builder
	m := l.machines[0]
	err := l.Place.Exec(ctx, m, []string{"node", "run", verb, "--dir", m.Dir}, in, out, &said)
	if text := strings.TrimSpace(said.String()); err != nil && text != "" {
		err = fmt.Errorf("%w: %s", err, text)
	}
	return err
}

// attach finds the run where it was left, and reports whether there is an engine to follow.
// The directory of one whose engine has died is brought here, for fresh machines.
func (l *Launcher) attach(ctx context.Context) (attached bool, err error) {
	w, err := ReadWhere(l.cfg.Dir)
	if err != nil || w == nil || w.Run == "" {
		return false, err
	}
	l.where.Run = w.Run
	l.machines, err = l.Place.Find(ctx, w.Run)
	if errors.Is(err, ErrGone) {
		l.say.Note("nothing is left of the run where it was; going on with what was brought here last")
		return false, l.recorded()
	}
	if err != nil {
		return false, err
	}
	var alive bool
	err = l.events(ctx, 0, func(e event) bool {
		alive = e.Kind != died
		return false
	})
	if alive || err != nil {
		return alive, err
	}
	if err := l.fetch(ctx); err != nil {
		l.say.Note(fmt.Sprintf("what the run recorded last could not be brought here: %v", err))
	}
	return false, errors.Join(l.clear(ctx), l.recorded())
}

// recorded makes a run that never recorded anything here a new one.
func (l *Launcher) recorded() error {
	if _, err := os.Stat(filepath.Join(l.cfg.Dir, database)); errors.Is(err, os.ErrNotExist) {
		l.cfg.Resume, l.again = false, true
	}
	return nil
}

// follow shows what happens until the run is over, brings its directory here now and then, and
// interrupts it when ctx ends. It outlives connections that break.
func (l *Launcher) follow(ctx context.Context) (last event, err error) {
	following, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		if err := l.node(following, "interrupt", nil, io.Discard); err != nil {
			l.say.Note(fmt.Sprintf("the engine could not be interrupted: %v", err))
		}
		time.AfterFunc(interruptTime, cancel)
	})()
	go l.sync(following)
	seen, alive := 0, time.Now()
	for {
		err := l.events(following, seen, func(e event) bool {
			last, alive = e, time.Now()
			if e.Kind != loading && e.Kind != stating {
				seen++
			}
			l.show(e)
			return e.Kind != over && e.Kind != died
		})
		if last.Kind == over || last.Kind == died {
			return last, nil
		}
		if following.Err() != nil || time.Since(alive) > reconnectTime {
			return last, ui.WithHint(fmt.Errorf("the run can no longer be followed: %w", err),
				"it goes on where it is; to follow it again: plimsoll resume "+l.cfg.Dir)
		}
		select {
		case <-following.Done():
		case <-time.After(2 * time.Second):
		}
	}
}

// events hears what happens, but for so many events that were heard before, until each wants
// no more.
func (l *Launcher) events(ctx context.Context, seen int, each func(event) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, w := io.Pipe()
	defer r.Close()
	go func() { w.CloseWithError(l.node(ctx, "follow", nil, w)) }()
	for hear := gob.NewDecoder(r); ; {
		var e event
		if err := hear.Decode(&e); err != nil {
			return err
		}
		if seen > 0 && e.Kind != loading && e.Kind != stating {
			seen--
			continue
		}
		if !each(e) {
			return nil
		}
	}
}

// show passes an event to who shows the run.
func (l *Launcher) show(e event) {
	text := strings.ReplaceAll(e.Text, filepath.Join(l.machines[0].Dir, runDir), l.cfg.Dir)
	var cell experiment.Cell
	for _, c := range l.cfg.Plan.Cells {
		if c.ID == e.Cell {
			cell = c
		}
	}
	switch e.Kind {
	case started:
		l.say.Start()
	case phase:
		l.say.Phase(text)
	case note:
		l.say.Note(text)
	case begun:
		l.say.Begin(e.N, e.Total, cell, e.Block, e.Block < 0)
	case loading:
		l.say.Load(e.Ops, e.Bytes, e.Elapsed)
	case stating:
		l.say.State(e.State, cell)
	case ended:
		l.say.End(e.Trial, cell)
	}
}

// sync brings the run directory here every so often.
func (l *Launcher) sync(ctx context.Context) {
	if l.Sync <= 0 {
		return
	}
	tick := time.NewTicker(l.Sync)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := l.fetch(ctx); err != nil && ctx.Err() == nil {
				l.say.Note(fmt.Sprintf("the run directory was not brought here: %v", err))
			}
		}
	}
}

func (l *Launcher) fetch(ctx context.Context) error {
	l.fetching.Lock()
	defer l.fetching.Unlock()
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	r, w := io.Pipe()
	go func() { w.CloseWithError(l.node(ctx, "fetch", nil, w)) }()
	defer r.Close()
	return readRun(r, l.cfg.Dir)
}

// clear removes the run from the place.
func (l *Launcher) clear(ctx context.Context) error {
	if l.where.Run == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteTime)
	defer cancel()
	l.say.Phase("removing what the run left there")
	if err := l.Place.Delete(ctx, l.where.Run); err != nil {
		l.say.Note(fmt.Sprintf("not all that the run left there could be removed: %v; what is still alive ends by itself", err))
	}
	l.where.Run = ""
	if _, err := os.Stat(filepath.Join(l.cfg.Dir, database)); err != nil { // it never began
		for _, name := range []string{whereIs, planFile, "."} {
			_ = os.Remove(filepath.Join(l.cfg.Dir, name)) // the directory, unless something else is there
		}
		return nil
	}
	return l.keepWhere()
}

func (l *Launcher) keepWhere() error {
	return atomicfile.Write(filepath.Join(l.cfg.Dir, whereIs), func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(l.where)
	})
}
