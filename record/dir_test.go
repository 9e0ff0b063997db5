package record

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// tmpfs mounts a small file system, or skips.
func tmpfs(t *testing.T, size string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting a small file system needs root")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("cannot mount a tmpfs here: %v", err)
	}
	t.Cleanup(func() { must(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}

func TestFullDisk(t *testing.T) {
	dir := filepath.Join(tmpfs(t, "4m"), "run")
	run := createIn(t, dir)
	writeTrial(t, run, 1) // some 60 kB
	w := begin(t, run, 2)
	var err error
	ops := newSynthetic(1, 1000)
	for i := 0; err == nil; i++ {
		if i > 10_000 {
			t.Fatal("the disk is never full")
		}
		if err = w.Ops(ops.take(BlockSize)); err == nil {
			err = run.Flush()
		}
	}
	for _, says := range []string{dir, "disk full", "B free"} {
		if !strings.Contains(err.Error(), says) {
			t.Errorf("%q does not say %q", err, says)
		}
	}
	if again := w.End(Trial{}); again == nil {
		t.Error("a trial that lost operations ended well")
	}
	if again := run.Event(Event{}); again == nil {
		t.Error("writing goes on after data was lost")
	}
	run.Close()

	// The disk is still full, and everything that had ended can be read.
	rd := open(t, dir)
	verify(t, rd, map[int]bool{1: true}, nil)
	rd.Close()

	// With space again it goes on.
	must(t, unix.Mount("", filepath.Dir(dir), "", unix.MS_REMOUNT, "size=64m"))
	run = resume(t, dir, nil)
	defer run.Close()
	writeTrial(t, run, 2)
	verify(t, run.Reader, map[int]bool{1: true, 2: true}, nil)
}

func TestReadOnlyMedia(t *testing.T) {
	mount := tmpfs(t, "32m")
	closed, killed := filepath.Join(mount, "closed"), filepath.Join(mount, "killed")
	for _, dir := range []string{closed, killed} {
		run := createIn(t, dir)
		writeTrial(t, run, 1)
		if dir == closed {
			must(t, run.Close())
			continue
		}
		// What a killed process leaves: the log beside the database.
		files := map[string][]byte{}
		for _, name := range []string{planFile, dbFile, dbFile + "-wal"} {
			b, err := os.ReadFile(filepath.Join(dir, name))
			must(t, err)
			files[name] = b
		}
		run.Close()
		for name, b := range files {
			must(t, os.WriteFile(filepath.Join(dir, name), b, 0o644))
		}
	}
	entries, err := os.ReadDir(closed)
	if err != nil || len(entries) != 2 {
		t.Errorf("a closed run holds more than its two files: %v %v", entries, err)
	}
	must(t, unix.Mount("", mount, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	verify(t, open(t, closed), map[int]bool{1: true}, nil)
	// Without its log it would be another run: better none than a wrong one.
	if rd, err := Open(killed); err == nil {
		verify(t, rd, map[int]bool{1: true}, nil)
		rd.Close()
		t.Error("read although the log cannot be applied")
	} else if !strings.Contains(err.Error(), "copy it to a writable place") {
		t.Errorf("%v", err)
	}
	if _, err := Resume(closed, nil, nil); err == nil {
		t.Error("a run on read-only media was resumed")
	}
}

func TestAnotherPlanIsRefused(t *testing.T) {
	r := create(t)
	dir, plan := r.Dir(), r.Plan()
	r.Close()
	if _, err := Resume(dir, []byte("another"), nil); err == nil || !strings.Contains(err.Error(), "another one") {
		t.Errorf("another plan: %v", err)
	}
	r, err := Resume(dir, plan, nil)
	must(t, err)
	r.Close()
	must(t, os.WriteFile(filepath.Join(dir, planFile), []byte("edited"), 0o644))
	for _, open := range []func() error{
		func() error { _, err := Open(dir); return err },
		func() error { _, err := Resume(dir, plan, nil); return err },
		func() error { _, err := Resume(dir, []byte("edited"), nil); return err },
	} {
		if err := open(); err == nil || !strings.Contains(err.Error(), "was changed since") {
			t.Errorf("edited %s: %v", planFile, err)
		}
	}
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	empty := t.TempDir()
	for dir, says := range map[string]string{
		filepath.Join(empty, "none"): "not a run directory",
		empty:                        "no such file",
	} {
		for _, open := range []func() error{
			func() error { _, err := Open(dir); return err },
			func() error { _, err := Resume(dir, nil, nil); return err },
		} {
			if err := open(); err == nil || !strings.Contains(err.Error(), says) ||
				!strings.Contains(err.Error(), dir) {
				t.Errorf("%v, want %q", err, says)
			}
		}
	}
	r := create(t)
	dir := r.Dir()
	r.Close()
	must(t, os.WriteFile(filepath.Join(dir, dbFile), bytes.Repeat([]byte("not a database "), 1000), 0o644))
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("no database: %v", err)
	}
}

func TestStrangeDirectoryNames(t *testing.T) {
	for _, name := range []string{"a b", "50%", "a?b=c", "x#y", "ö", "a&mode=memory", "%41"} {
		dir := filepath.Join(t.TempDir(), name)
		must(t, createIn(t, dir).Close())
		_, err := os.Stat(filepath.Join(dir, dbFile))
		must(t, err)
		open(t, dir)
	}
}

func TestCreateIsExclusive(t *testing.T) {
	dir := t.TempDir()
	var won atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if r, err := Create(dir, []byte("{}"), nil, nil); err == nil {
				won.Add(1)
				t.Cleanup(func() { r.Close() })
			}
		})
	}
	wg.Wait()
	if n := won.Load(); n != 1 {
		t.Errorf("%d writers created the same run", n)
	}
	open(t, dir)
}

func TestReadingWhileWriting(t *testing.T) {
	t.Parallel()
	r := create(t)
	rd := open(t, r.Dir())
	w := begin(t, r, 1)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var written int
	wg.Go(func() {
		ops := newSynthetic(11, 20_000)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			err := w.Ops(ops.take(500))
			written += 500
			w.Samples([]Sample{{Process: "load", PID: i}})
			if i%20 == 0 {
				err = errors.Join(err, r.Flush())
			}
			if i%100 == 0 {
				err = errors.Join(err, r.Meta("progress", fmt.Sprint(i)))
			}
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	seen := 0
	for end := time.Now().Add(400 * time.Millisecond); time.Now().Before(end); {
		want, n := newSynthetic(11, 20_000), 0
		for op, err := range rd.Ops(w.ID()) {
			must(t, err)
			if op != want.next() {
				t.Fatalf("operation %d is not what was written", n)
			}
			n++
		}
		if n < seen {
			t.Fatalf("%d operations after %d", n, seen)
		}
		seen = n
		trialsOf(t, rd)
		collect(t, rd.Windows(w.ID()))
		_, err := rd.Summary(w.ID())
		must(t, err)
		w.Summary().Quantile(TTFB, 0.5)
		rd.Meta()
	}
	close(stop)
	wg.Wait()
	if seen == 0 {
		t.Error("nothing was seen while it was written")
	}
	must(t, w.End(Trial{}))
	if s, err := rd.Summary(w.ID()); err != nil || s.Counts().Ops != int64(written) {
		t.Errorf("%v; %d operations, written %d", err, s.Counts().Ops, written)
	}
}

func TestImpossibleOperationsAreRefused(t *testing.T) {
	r := create(t)
	w := begin(t, r, 1)
	good := Op{Outcome: OK, Length: 10, Bytes: 10, Start: 5, Intended: 5, FirstByte: 6, LastByte: 7}
	for says, change := range map[string]func(*Op){
		"before it started":    func(o *Op) { o.LastByte = 4 },
		"first byte":           func(o *Op) { o.FirstByte = 8 },
		"negative":             func(o *Op) { o.Bytes, o.Outcome = -1, Error },
		"as many as asked for": func(o *Op) { o.Bytes = 9 },
		"unknown outcome":      func(o *Op) { o.Outcome = numOutcomes },
		"unknown kind":         func(o *Op) { o.Kind = numOpKinds },
		"10 years":             func(o *Op) { o.LastByte = 1 << 60 },
	} {
		bad := good
		change(&bad)
		if err := w.Ops([]Op{good, bad}); err == nil || !strings.Contains(err.Error(), says) ||
			!strings.Contains(err.Error(), "c001") {
			t.Errorf("%v, want %q", err, says)
		}
		if err := w.Block(AppendBlock(nil, []Op{good, bad})); err == nil {
			t.Errorf("%s: accepted in a block", says)
		}
	}
	if err := w.Block([]byte("rubbish and more")); !errors.Is(err, ErrCorrupt) {
		t.Errorf("rubbish: %v", err)
	}
	// Nothing of what was refused was kept, and the trial goes on.
	must(t, w.Ops([]Op{good}))
	must(t, w.End(Trial{}))
	if ops := collect(t, r.Ops(w.ID())); len(ops) != 1 || ops[0] != good {
		t.Errorf("%+v", ops)
	}
}

func TestTrialsInterruptedAreExecutedAgain(t *testing.T) {
	r := create(t)
	dir := r.Dir()
	filled := func(block int) *TrialWriter {
		t.Helper()
		w := begin(t, r, block)
		must(t, w.Ops(newSynthetic(1, 1000).take(5000)))
		w.Samples([]Sample{{Process: "x"}})
		w.Link(LinkCheck{From: "a"})
		w.Event(Event{What: "e"})
		return w
	}
	must(t, filled(1).End(Trial{Metrics: map[string]float64{"m": 1}}))
	must(t, filled(2).End(Trial{State: Failed, Error: "no server"}))
	interrupted := filled(3)
	must(t, r.Close())
	r = resume(t, dir, nil)
	defer r.Close()
	trials := trialsOf(t, r.Reader)
	var states []TrialState
	for _, tr := range trials {
		states = append(states, tr.State)
	}
	if fmt.Sprint(states) != "[done failed pending]" || trials[1].Error != "no server" {
		t.Fatalf("%v %q", states, trials[1].Error)
	}
	for _, table := range ofTrial {
		var n int
		if err := r.db.QueryRowContext(context.Background(), `SELECT count(*) FROM `+table+` WHERE trial = ?`,
			interrupted.ID()).Scan(&n); err != nil || n != 0 {
			t.Errorf("%s still has %d rows of it: %v", table, n, err)
		}
	}
	w := begin(t, r, 3)
	if w.ID() != interrupted.ID() {
		t.Errorf("it is trial %d now, was %d", w.ID(), interrupted.ID())
	}
	must(t, w.End(Trial{}))
	if warm, err := r.Begin("c001", 3, true, time.Now()); err != nil || warm.ID() == w.ID() {
		t.Errorf("another trial has the same ID: %v", err)
	}
}

// A page that is served while a run ends, and while it is resumed, goes on.
func TestAReaderOutlivesTheWriter(t *testing.T) {
	r := create(t)
	dir := r.Dir()
	rd := open(t, dir)
	sees := func(n int) {
		t.Helper()
		if trials := trialsOf(t, rd); len(trials) != n {
			t.Fatalf("%d trials, want %d", len(trials), n)
		}
	}
	for n := range 3 {
		writeTrial(t, r, n)
		sees(n + 1)
		must(t, r.Close())
		if info, err := os.Stat(filepath.Join(dir, dbFile+"-wal")); err == nil && info.Size() > 0 {
			t.Errorf("the log holds %d bytes after the run was closed", info.Size())
		}
		sees(n + 1)
		r = resume(t, dir, nil)
		sees(n + 1)
	}
	r.Close()
}

// What is recorded in a file that was removed is lost: it is noticed within
// seconds, and the run takes no more.
func TestRemovedDuringTheRun(t *testing.T) {
	for name, remove := range map[string]func(dir string) error{
		"directory": os.RemoveAll,
		"run.db":    func(dir string) error { return os.Remove(filepath.Join(dir, "run.db")) },
		"replaced": func(dir string) error {
			db := filepath.Join(dir, "run.db")
			return errors.Join(os.Rename(db, db+".old"), os.WriteFile(db, nil, 0o644))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := create(t)
			must(t, errors.Join(run.Event(Event{}), remove(run.Dir())))
			select {
			case <-run.Broken():
			case <-time.After(30 * time.Second):
				t.Fatal("not noticed")
			}
			var gone *WriteError
			if err := run.Event(Event{}); !errors.As(err, &gone) || !gone.Gone || gone.Full || run.Err() != err {
				t.Errorf("after it was removed: %v", err)
			}
		})
	}
}
