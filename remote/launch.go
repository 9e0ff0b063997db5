package remote

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/plimsoll-project/plimsoll/engine"
	"github.com/plimsoll-project/plimsoll/internal/atomicfile"
	"github.com/plimsoll-project/plimsoll/internal/timing"
	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/testbed"
	"github.com/plimsoll-project/plimsoll/testbed/agent"
)

// Where describes where a run is. It is stored in the run directory, for resume.
type Where struct {
	On    string   `json:"on"`              // as given to --on
	Image string   `json:"image,omitempty"` // of pods; empty: the image of this version
	Pack  bool     `json:"pack,omitempty"`  // a node may have several pods
	Run   string   `json:"run,omitempty"`   // ID of the run in the place; empty: nothing is left there
	First *Machine `json:"first,omitempty"` // the one with the engine; nil: none was started
	Over  bool     `json:"over"`            // nothing of the plan is left to execute
}

// The ID of a run must be checked because it is part of paths that are removed.
var runID = regexp.MustCompile(`^[a-z][a-z0-9]{11}$`)

// ReadWhere reads where the run in a directory is; nil: on this machine.
func ReadWhere(dir string) (*Where, error) {
	b, err := os.ReadFile(filepath.Join(dir, whereIs))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var w Where
	if err == nil {
		err = json.Unmarshal(b, &w)
	}
	if err == nil && w.Run != "" && !runID.MatchString(w.Run) {
		err = fmt.Errorf("run %q: want a letter and 11 letters and digits", w.Run)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, whereIs), err)
	}
	return &w, nil
}

// Launcher runs plans in a place.
type Launcher struct {
	Place Place
	At    Where         // the place: On, Image and Pack
	Sync  time.Duration // interval at which the run directory is copied here; 0: only when the run is over

	cfg      engine.Config
	say      engine.Progress
	where    Where
	machines []Machine
	fetching sync.Mutex // keeps an older copy from replacing a newer one
}

// Time limits of operations, and the pause between attempts.
const (
	createTime = 15 * time.Minute
	fetchTime  = 30 * time.Minute
	deleteTime = 5 * time.Minute
	// An interrupted run removes what it stored elsewhere, and cleans up.
	interruptTime = 15 * time.Minute
	// lookTime limits a query to the place or to the engine's machine.
	lookTime = 2 * time.Minute
	// reconnectTime is how long the launcher tries to reconnect before it leaves the run to itself.
	reconnectTime = 10 * time.Minute
	// tryAgain is the pause between two attempts.
	tryAgain = 2 * time.Second
)

// Run runs a plan in the place, as [engine.Run] does on this machine. The run directory contains
// all that could be copied here.
func (l *Launcher) Run(ctx context.Context, cfg engine.Config) (res engine.Result, err error) {
	if cfg.Dir, err = filepath.Abs(cfg.Dir); err != nil {
		return res, err
	}
	release, err := lock(cfg.Dir)
	if err != nil {
		return res, err
	}
	defer release()
	l.cfg, l.say, l.where = cfg, cfg.Progress, l.At
	attached := false
	if cfg.Resume {
		if attached, err = l.attach(ctx); err != nil {
			return res, err
		}
	}
	if l.where.Over && !cfg.RetryInvalid {
		res.Complete = true
		return res, nil
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
		err = fmt.Errorf("the run is over, and its directory could not be brought here: %w", err)
		return last.Result, ui.WithHint(err, "it waits there for a day: plimsoll resume "+cfg.Dir)
	}
	switch {
	case last.Kind == kindDied:
		err = fmt.Errorf("the engine on %s has ended unexpectedly; its log ends: %s", l.machines[0].Name, last.Text)
		err = ui.WithHint(err, "continue from its records: plimsoll resume "+cfg.Dir)
	case last.Code != ui.CodeOK:
		err = ui.Exit(last.Code, ui.WithHint(errors.New(l.here(last.Text)), l.here(last.Hint)))
	}
	r := last.Result
	l.where.Over = err == nil && !r.Interrupt && r.Invalid == "" && r.Failed == 0 && last.Kind == kindOver
	return r, errors.Join(err, l.clear(ctx))
}

// lock creates a run directory and keeps other launchers from it.
func lock(dir string) (release func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, lockName)
	unlock, err := testbed.LockFile(path)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, ui.WithHint(fmt.Errorf("the run in %s is followed by another launcher", dir),
			"it continues there; end that one first")
	}
	if err != nil {
		return nil, err
	}
	return func() {
		if entries, err := os.ReadDir(dir); err == nil && len(entries) == 1 { // nothing was started
			_ = os.Remove(path)
			_ = os.Remove(dir)
		}
		unlock()
	}, nil
}

// launch creates the machines and starts the engine on the first of them.
func (l *Launcher) launch(ctx context.Context) error {
	if r, err := record.Open(l.cfg.Dir); err == nil {
		l.cfg.Clients = engine.ClientsOf(l.cfg.Clients, r)
		r.Close()
	}
	if err := l.check(ctx); err != nil {
		return err
	}
	need := needs(l.cfg.Plan, l.cfg.Clients)
	plan, err := l.cfg.Plan.Marshal()
	if err != nil {
		return err
	}
	if err := l.makeDir(plan); err != nil {
		return err
	}
	ours, theirs, err := agent.NewCredentials()
	if err != nil {
		return err
	}
	o := order{Config: l.cfg, Plan: plan, Credentials: ours}
	o.Config.Plan, o.Config.Systems, o.Config.Scenario = nil, nil, nil
	if !exists(l.cfg.Dir, database) { // the run recorded nothing: it begins anew
		o.Config.Resume = false
	}
	if need.Binary, err = os.Executable(); err != nil {
		return err
	}
	need.Run, need.Credentials = "r"+strings.ToLower(rand.Text()[:11]), theirs
	l.where = l.At
	l.where.Run = need.Run
	if err := l.keepWhere(); err != nil { // before Create, in case this process dies in between
		return err
	}
	l.say.Phase(fmt.Sprintf("making %d machines ready", need.Machines))
	making, cancel := context.WithTimeout(ctx, createTime)
	defer cancel()
	if l.machines, err = l.Place.Create(making, need); err != nil {
		return err
	}
	o.Machines, l.where.First = l.machines, &l.machines[0]
	if err := l.keepWhere(); err != nil {
		return err
	}
	return l.start(making, o)
}

// check returns an error for a plan that cannot run in the place.
func (l *Launcher) check(ctx context.Context) error {
	looking, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	problems := Check(looking, l.Place, l.cfg)
	if blocking := engine.Blocking(problems); len(blocking) > 0 {
		return &scenario.PreconditionError{Problems: blocking}
	}
	for _, p := range problems {
		l.say.Note(strings.TrimSuffix(p.What+"; "+p.Hint, "; "))
	}
	return ctx.Err()
}

// makeDir creates the run directory with its plan, so that resume finds it from the beginning.
func (l *Launcher) makeDir(plan []byte) error {
	if l.cfg.Resume && exists(l.cfg.Dir, planFile) {
		return nil
	}
	entries, err := os.ReadDir(l.cfg.Dir)
	if err != nil {
		return err
	}
	if len(entries) > 1 && !l.cfg.Resume { // besides our lock
		return ui.Exit(ui.CodePreconditions, ui.WithHint(fmt.Errorf("run directory %s is not empty", l.cfg.Dir),
			"choose another directory with --out"))
	}
	return os.WriteFile(filepath.Join(l.cfg.Dir, planFile), plan, 0o644)
}

// start sends the order and, for a resumed run, its directory to the first machine.
func (l *Launcher) start(ctx context.Context, o order) error {
	r, w := io.Pipe()
	go func() {
		err := gob.NewEncoder(w).Encode(o)
		if err == nil && o.Config.Resume {
			err = writeRun(w, l.cfg.Dir)
		}
		w.CloseWithError(err)
	}()
	defer r.Close()
	return l.node(ctx, "start", r, io.Discard, "--", fmt.Sprintf("--emulate=%t", o.Machines[0].Number > 0))
}

// node runs a part of ServeNode on the first machine.
func (l *Launcher) node(ctx context.Context, verb string, in io.Reader, out io.Writer, flags ...string) error {
	m := l.machines[0]
	return l.Place.Exec(ctx, m, append([]string{"node", "run", verb, "--dir", m.Dir}, flags...), in, out)
}

// output returns the output of a part of ServeNode on the first machine; reading ends with its
// error.
func (l *Launcher) output(ctx context.Context, verb string) io.ReadCloser {
	r, w := io.Pipe()
	go func() { w.CloseWithError(l.node(ctx, verb, nil, w)) }()
	return r
}

// attach finds the run where it was left, and reports whether there is an engine to follow. If the
// engine has died, attach copies the run directory here, to continue on fresh machines.
func (l *Launcher) attach(ctx context.Context) (attached bool, err error) {
	w, err := ReadWhere(l.cfg.Dir)
	if err != nil || w == nil {
		return false, err
	}
	if l.where.Over = w.Over; w.Run == "" {
		return false, nil
	}
	again := "plimsoll resume " + l.cfg.Dir
	if w.On != l.At.On {
		return false, ui.WithHint(fmt.Errorf("the run is on %s", w.On), again+" without --on first; if that place is "+
			"lost for good, remove "+filepath.Join(l.cfg.Dir, whereIs))
	}
	l.where = *w
	l.where.Image, l.where.Pack = l.At.Image, l.At.Pack
	if w.First == nil {
		return false, l.clear(ctx)
	}
	looking, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	var said strings.Builder
	if l.machines, err = l.Place.Find(looking, w.Run, *w.First); err == nil {
		err = l.node(looking, "state", nil, &said)
	}
	switch state := said.String(); {
	case errors.Is(err, ErrGone), err == nil && state == stateNever:
		l.say.Note("nothing is left of the run on its machines; continuing from the last copy")
	case err != nil:
		return false, err
	case state == stateAlive && l.cfg.RetryInvalid:
		l.say.Note("the run continues, and its invalid trials are not run again yet: when it is over, " + again +
			" --retry-invalid")
		return true, nil
	case state == stateAlive, state == stateOver && !l.cfg.RetryInvalid:
		return true, nil
	case state != stateOver && state != stateDied:
		return false, fmt.Errorf("the engine's state on %s is %q", l.machines[0].Name, state)
	default:
		if err := l.fetch(ctx); err != nil {
			return false, ui.WithHint(fmt.Errorf("what the run recorded last could not be brought here: %w", err),
				"it stays there: try again, or remove "+filepath.Join(l.cfg.Dir, whereIs)+" to give it up")
		}
	}
	return false, l.clear(ctx)
}

// follow shows events until the run is over, copies the run directory here regularly, and
// interrupts the run when ctx ends. It reconnects after connections break.
func (l *Launcher) follow(ctx context.Context) (last event, err error) {
	following, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		time.AfterFunc(interruptTime, cancel)
		l.interrupt(following)
	})()
	go l.sync(following)
	seen, heard := 0, time.Now()
	for {
		some, err := l.events(following, seen, func(e event) bool {
			last = e
			if !e.often() {
				seen++
			}
			e.Text = l.here(e.Text)
			if l.say(e.Event); e.Kind == kindLost {
				go l.renew(following)
			}
			return e.Kind != kindOver && e.Kind != kindDied
		})
		if last.Kind == kindOver || last.Kind == kindDied {
			return last, nil
		}
		if some { // count from the end of the connection: a trial may have no events for hours
			heard = time.Now()
		}
		if following.Err() != nil || time.Since(heard) > reconnectTime {
			return last, ui.WithHint(fmt.Errorf("the run can no longer be followed: %w", err),
				"it continues on its machines; to follow it again: plimsoll resume "+l.cfg.Dir)
		}
		timing.Pause(following, tryAgain)
	}
}

// renew sends the engine the machines that replace lost ones, if the place creates any.
func (l *Launcher) renew(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, returnTime)
	defer cancel()
	for known := l.machines; ctx.Err() == nil; timing.Pause(ctx, tryAgain) {
		all, err := l.Place.Find(ctx, l.where.Run, l.machines[0])
		if err != nil || len(all) < len(known) || slices.Equal(all, known) {
			continue
		}
		var b bytes.Buffer
		if gob.NewEncoder(&b).Encode(all) == nil && l.node(ctx, "machines", &b, io.Discard) == nil {
			known = all
		}
	}
}

// interrupt interrupts the engine as soon as it can be reached.
func (l *Launcher) interrupt(ctx context.Context) {
	for first := true; ctx.Err() == nil; first = false {
		one, cancel := context.WithTimeout(ctx, lookTime)
		err := l.node(one, "interrupt", nil, io.Discard)
		cancel()
		if err == nil {
			return
		}
		if first && ctx.Err() == nil {
			l.say.Note(fmt.Sprintf("the engine could not be interrupted; trying again: %v", err))
		}
		timing.Pause(ctx, tryAgain)
	}
}

// events passes events to each, without the first ones that were seen before, until each returns
// false. It reports whether there were any.
func (l *Launcher) events(ctx context.Context, seen int, each func(event) bool) (some bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := l.output(ctx, "follow")
	defer r.Close()
	for hear := gob.NewDecoder(r); ; some = true {
		var e event
		if err := hear.Decode(&e); err != nil {
			return some, err
		}
		if seen > 0 && !e.often() {
			seen--
			continue
		}
		if !each(e) {
			return true, nil
		}
	}
}

// here replaces the path of the run directory in a text of the engine with the local one.
func (l *Launcher) here(text string) string {
	return strings.ReplaceAll(text, filepath.Join(l.machines[0].Dir, RunDir), l.cfg.Dir)
}

// sync copies the run directory here at regular intervals.
func (l *Launcher) sync(ctx context.Context) {
	for l.Sync > 0 && timing.Pause(ctx, l.Sync) {
		if err := l.fetch(ctx); err != nil && ctx.Err() == nil {
			l.say.Note(fmt.Sprintf("the run directory was not brought here: %v", err))
		}
	}
}

func (l *Launcher) fetch(ctx context.Context) error {
	l.fetching.Lock()
	defer l.fetching.Unlock()
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	r := l.output(ctx, "fetch")
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
	err := l.Place.Delete(ctx, l.where.Run)
	if err != nil {
		l.say.Note(fmt.Sprintf("not all that the run left there could be removed: %v; what is still alive ends by "+
			"itself, and removes its files", err))
	}
	l.where.Run, l.where.First = "", nil
	if !exists(l.cfg.Dir, database) { // the run never began
		for _, name := range []string{whereIs, planFile} {
			_ = os.Remove(filepath.Join(l.cfg.Dir, name))
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
