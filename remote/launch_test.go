package remote

import (
	"context"
	"encoding/gob"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plimsoll-project/plimsoll/engine"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/scenario"
)

// fake is a place whose machine does what a test defines.
type fake struct {
	verbs    map[string]func(ctx context.Context, out io.Writer) error
	find     error
	undying  bool // Delete fails
	problems []engine.Problem
	deleted  int
}

func (f *fake) Check(context.Context, Spec) []engine.Problem { return f.problems }
func (f *fake) Create(context.Context, Spec) ([]Machine, error) {
	return nil, errors.New("no machines")
}
func (f *fake) Find(context.Context, string, Machine) ([]Machine, error) {
	return []Machine{{Name: "a"}}, f.find
}

func (f *fake) Exec(ctx context.Context, _ Machine, args []string, _ io.Reader, out io.Writer) error {
	return f.verbs[args[2]](ctx, out)
}

func (f *fake) Delete(context.Context, string) error {
	f.deleted++
	if f.undying {
		return errors.New("it does not answer")
	}
	return nil
}

// quiet records the notes of a launcher.
type quiet struct {
	mu    sync.Mutex
	notes []string
}

func (q *quiet) show(e engine.Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e.Kind == engine.EventNote {
		q.notes = append(q.notes, e.Text)
	}
}

const testRun = "rabcdefghij2"

// left returns a launcher for a directory whose run was left in a place.
func left(t *testing.T, f *fake, w Where) (*Launcher, *quiet) {
	t.Helper()
	said := &quiet{}
	l := &Launcher{Place: f, At: Where{On: "ssh:/hosts"}, say: said.show, where: w,
		cfg: engine.Config{Dir: t.TempDir(), Resume: true, Plan: &experiment.Plan{}}}
	write(t, filepath.Join(l.cfg.Dir, database), "old")
	must(t, l.keepWhere())
	l.where = l.At
	return l, said
}

// A run's remains elsewhere are removed only after its record was copied here.
func TestAttach(t *testing.T) {
	here, first := "ssh:/hosts", &Machine{Name: "a", Dir: "/d"}
	there := Where{On: here, Run: testRun, First: first}
	for _, c := range []struct {
		name     string
		where    Where
		find     error
		state    string
		fetched  bool // the copy succeeds
		retry    bool
		attached bool
		deleted  int
		fails    string
	}{
		{name: "alive", where: there, state: stateAlive, attached: true},
		{name: "alive, other options", where: Where{On: here, Pack: true, Run: testRun, First: first}, state: stateAlive,
			attached: true},
		{name: "alive, invalid trials again", where: there, state: stateAlive, retry: true, attached: true},
		{name: "over", where: there, state: stateOver, attached: true},
		{name: "over, invalid trials again", where: there, state: stateOver, retry: true,
			fetched: true, deleted: 1},
		{name: "died", where: there, state: stateDied, fetched: true, deleted: 1},
		{name: "died, out of reach", where: there, state: stateDied, fails: "could not be brought here"},
		{name: "never began", where: there, state: stateNever, deleted: 1},
		{name: "gone", where: there, find: ErrGone, deleted: 1},
		{name: "unreachable", where: there, find: errors.New("no route"), fails: "no route"},
		{name: "odd state", where: there, state: "?", fails: "the engine's state"},
		{name: "no machines", where: Where{On: here, Run: testRun}, deleted: 1},
		{name: "elsewhere", where: Where{On: "ssh:/other", Run: testRun, First: first},
			fails: "the run is on ssh:/other"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fake{find: c.find, verbs: map[string]func(context.Context, io.Writer) error{
				"state": func(_ context.Context, out io.Writer) error {
					_, err := io.WriteString(out, c.state)
					return err
				},
				"fetch": func(_ context.Context, out io.Writer) error {
					if !c.fetched {
						return errors.New("cut")
					}
					return writeRun(out, t.TempDir())
				},
			}}
			l, said := left(t, f, c.where)
			l.cfg.RetryInvalid = c.retry
			attached, err := l.attach(t.Context())
			if attached != c.attached || f.deleted != c.deleted || (err != nil) != (c.fails != "") ||
				err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("attached %t, deleted %d times, %v; %q", attached, f.deleted, err, said.notes)
			}
			w, err := ReadWhere(l.cfg.Dir)
			if err != nil || (w.Run == "") != (c.deleted > 0) {
				t.Errorf("%+v, %v", w, err)
			}
			if c.state == stateAlive && c.retry && len(said.notes) != 1 {
				t.Errorf("notes %q", said.notes)
			}
		})
	}
}

// What clear cannot remove ends by itself.
func TestClear(t *testing.T) {
	f := &fake{undying: true}
	l, said := left(t, f, Where{On: "ssh:/hosts", Run: testRun, Over: true})
	l.where.Run, l.where.Over = testRun, true
	must(t, l.clear(t.Context()))
	if w, err := ReadWhere(l.cfg.Dir); err != nil || w.Run != "" || !w.Over || len(said.notes) != 1 {
		t.Errorf("%+v, %v, %q", w, err, said.notes)
	}
	res, err := l.Run(t.Context(), engine.Config{Dir: l.cfg.Dir, Resume: true, Plan: l.cfg.Plan, Progress: l.say})
	if err != nil || !res.Complete {
		t.Errorf("%+v, %v", res, err)
	}
}

// A run is refused because of the place's blocking problems before anything is created; other
// problems are noted.
func TestRefused(t *testing.T) {
	f := &fake{problems: []engine.Problem{{What: "few nodes", Hint: "--pack"}}}
	said, dir := &quiet{}, filepath.Join(t.TempDir(), "run")
	cfg := engine.Config{Dir: dir, Plan: &experiment.Plan{}, Progress: said.show}
	l := &Launcher{Place: f}
	if _, err := l.Run(t.Context(), cfg); err == nil || err.Error() != "no machines" ||
		!slices.Equal(said.notes, []string{"few nodes; --pack"}) {
		t.Errorf("%v, %q", err, said.notes)
	}
	f.problems = append(f.problems, engine.Problem{Name: "rights", What: "none", Blocking: true})
	var refused *scenario.PreconditionError
	if _, err := l.Run(t.Context(), cfg); !errors.As(err, &refused) || len(refused.Problems) != 1 || f.deleted != 1 {
		t.Errorf("%v, deleted %d times", err, f.deleted)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the directory of a run that was refused is left")
	}
}

// A run directory has one launcher.
func TestOneLauncher(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	release, err := lock(dir)
	must(t, err)
	l := &Launcher{Place: &fake{}}
	_, err = l.Run(t.Context(), engine.Config{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "another launcher") {
		t.Error(err)
	}
	release()
	if _, err := os.Stat(dir); err == nil {
		t.Error("a directory in which nothing began is left")
	}
}

// Broken connections do not end a run, neither after a long time nor during its interruption.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken, connections := errors.New("broken"), 0
		var interrupts atomic.Int32
		f := &fake{verbs: map[string]func(context.Context, io.Writer) error{
			"follow": func(ctx context.Context, out io.Writer) error {
				say := gob.NewEncoder(out)
				if err := say.Encode(event{Event: engine.Event{Kind: engine.EventNote, Text: "it has begun"}}); err != nil {
					return err
				}
				connections++
				if connections < 4 {
					time.Sleep(time.Hour)
					return broken
				}
				for interrupts.Load() < 3 {
					time.Sleep(time.Second)
				}
				return say.Encode(event{Event: engine.Event{Kind: kindOver}})
			},
			"interrupt": func(context.Context, io.Writer) error {
				if interrupts.Add(1) < 3 {
					return broken
				}
				return nil
			},
		}}
		l, said := left(t, f, Where{})
		l.machines = []Machine{{Name: "a", Dir: "/d"}}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Hour+time.Minute)
		defer cancel()
		last, err := l.follow(ctx)
		if err != nil || last.Kind != kindOver || interrupts.Load() != 3 || len(said.notes) != 2 {
			t.Errorf("%+v, %v, %d interrupts, %q", last, err, interrupts.Load(), said.notes)
		}
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
