package systemtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/prometheus/procfs"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
)

const mib = 1 << 20

// soon is the time limit for "soon": generous for busy machines, and far below the duration of
// time-outs.
const soon = 20 * time.Second

// Context returns a context that ends with the test, or after two minutes.
func Context(t *testing.T) context.Context { return kit{t}.limited(2 * time.Minute) }

// Content returns size bytes that depend on seed and repeat no block.
func Content(seed string, size int64) io.Reader {
	return io.LimitReader(rand.NewChaCha8(sha256.Sum256([]byte(seed))), size)
}

// Bytes returns Content as a slice.
func Bytes(seed string, size int64) []byte {
	b := make([]byte, size)
	if _, err := io.ReadFull(Content(seed, size), b); err != nil {
		panic(err) // a generator never ends
	}
	return b
}

// Must fails the test at once if err is not nil.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// AtEnd calls end at the end of the test, with a limit of half a minute.
func AtEnd(t *testing.T, what string, end func(context.Context) error) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := end(ctx); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	})
}

// kit is a test with helpers for the cases of all kinds of systems.
type kit struct{ *testing.T }

// Errorf fails the test and reports the path through the suite that led here.
func (k kit) Errorf(format string, args ...any) {
	k.T.Errorf("%s: %s", path(), fmt.Sprintf(format, args...))
}

// Fatalf ends the test and reports the path through the suite that led here.
func (k kit) Fatalf(format string, args ...any) {
	k.T.Fatalf("%s: %s", path(), fmt.Sprintf(format, args...))
}

// path returns the positions in cases that led to Errorf or Fatalf, the last one first.
func path() string {
	callers := make([]uintptr, 20)
	frames := runtime.CallersFrames(callers[:runtime.Callers(3, callers)])
	var places []string
	for f, more := frames.Next(); more && !strings.Contains(f.Function, "systemtest.Run"); f, more = frames.Next() {
		if !strings.Contains(f.Function, "systemtest.kit.") {
			places = append(places, fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line))
		}
	}
	return strings.Join(places, " < ")
}

// ctx returns a context with the usual time limit of a call.
func (k kit) ctx() context.Context { return Context(k.T) }

// limited returns a context that ends with the test, or after limit.
func (k kit) limited(limit time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(k.Context(), limit)
	k.Cleanup(cancel)
	return ctx
}

// ended returns a cancelled context.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// must is Must with a description.
func (k kit) must(what string, err error) {
	if err != nil {
		k.Fatalf("%s: %v", what, err)
	}
}

// fails checks that err is an error, and one of want if any are given.
func (k kit) fails(what string, err error, want ...error) {
	if err == nil || len(want) > 0 && !slices.ContainsFunc(want, func(w error) bool { return errors.Is(err, w) }) {
		k.Errorf("%s: error %v, want one of %v", what, err, want)
	}
}

// soon returns a function that fails the test if it is called much later: defer k.soon("to
// stop")().
func (k kit) soon(what string) (ended func()) {
	from := time.Now()
	return func() {
		if took := time.Since(from); took > soon {
			k.Errorf("%s took %v", what, took)
		}
	}
}

// failsSoon is fails with a time limit.
func (k kit) failsSoon(what string, do func() error, want ...error) {
	defer k.soon(what)()
	k.fails(what, do(), want...)
}

// errorOf returns the error of a call whose value does not matter.
func errorOf[V any](_ V, err error) error { return err }

// await polls until so returns true or the limit has passed.
func await(limit, every time.Duration, so func() bool) bool {
	for end := time.Now().Add(limit); !so(); time.Sleep(every) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// put is the common signature of [system.Store.Put], [system.Seed] and Publish.
type put func(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error)

// object is a stored object.
type object struct {
	ref  system.Ref
	data []byte
}

func (k kit) store(by put, name string, data []byte) object {
	ref, err := by(k.ctx(), name, int64(len(data)), bytes.NewReader(data))
	if err != nil || ref == "" {
		k.Fatalf("store %q (%d bytes): ref %q, error %v", name, len(data), ref, err)
	}
	return object{ref, data}
}

// wantContent checks that read writes data.
func (k kit) wantContent(what string, data []byte, read func(io.Writer) error) {
	var got bytes.Buffer
	if err := read(&got); err != nil {
		k.Errorf("%s: %v", what, err)
	} else if !bytes.Equal(got.Bytes(), data) {
		k.Errorf("%s: %d bytes that differ from the %d stored", what, got.Len(), len(data))
	}
}

// minus returns the words that are not in others.
func minus(words []string, others ...[]string) []string {
	all := slices.Concat(others...)
	return slices.DeleteFunc(slices.Clone(words), func(word string) bool { return slices.Contains(all, word) })
}

// wantAbilities checks that the abilities a system declares before it is started are those of its
// nodes; without are words that nodes lack with these options.
func (k kit) wantAbilities(s system.System, c system.Cluster, without []string) {
	protocol := []string{"https", "h2", "car", "cost"} // words that do not follow from the type
	can := s.Info().Can
	if wrong := minus(without, can); len(wrong) > 0 {
		k.Errorf("these options take %q away, which Info.Can does not have", wrong)
	}
	for i, n := range c.Nodes() {
		is := system.Abilities(n)
		if c.Identity()["connections"] == "fresh" {
			if slices.Contains(is, "fresh") {
				k.Errorf("node %d: Identity says that connections are always fresh, and it has Redial", i)
			}
			is = append(is, "fresh")
		}
		if more := minus(is, minus(can, without)); len(more) > 0 {
			k.Errorf("node %d can %q, which Info.Can does not have, or these options take away", i, more)
		}
		other := slices.Contains(is, "spread") || slices.Contains(is, "follow") // not a store, which has the other words
		if less := minus(can, is, protocol, without); !other && len(less) > 0 {
			k.Errorf("Info.Can has %q, which node %d cannot", less, i)
		}
	}
}

var errReader = errors.New("the reader broke")

// badReaders stores from readers that do not match the given size, or fail.
func (k kit) badReaders(by put) {
	const size = mib
	for _, c := range []struct {
		name string
		size int64
		r    io.Reader
		want []error
	}{
		{"short", size, Content("short", size-1), nil},
		{"long", size, Content("long", size+1), nil},
		{"broken", size, io.MultiReader(Content("broken", size/2), iotest.ErrReader(errReader)), []error{errReader}},
		{"empty", size, bytes.NewReader(nil), nil},
		{"more than nothing", 0, Content("x", 1), nil},
	} {
		k.failsSoon("a reader that is "+c.name, func() error {
			return errorOf(by(k.ctx(), "bad-"+c.name, c.size, c.r))
		}, c.want...)
	}
}

// hook calls do when it is read (it is empty), or when more than after bytes have been written to
// it.
type hook struct {
	do    func()
	after int
}

func (h *hook) Read([]byte) (int, error) {
	h.do()
	return 0, io.EOF
}

func (h *hook) Write(p []byte) (int, error) {
	if h.after -= len(p); h.after < 0 {
		h.do()
	}
	return len(p), nil
}

// badRefs are impossible refs.
var badRefs = []system.Ref{
	"", "/", "../../etc/passwd", "..", "%2e%2e%2fetc%2fpasswd", "a\x00b", "new\nline", "?x=y", "http://127.0.0.1:1/",
}

// processes returns the processes of all nodes without duplicates.
func processes(nodes ...system.Node) []testbed.Process {
	var all []testbed.Process
	for _, n := range nodes {
		for _, p := range n.Processes() {
			if !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
	}
	return all
}

// wantEnded checks that nothing is left of stopped or killed processes.
func (k kit) wantEnded(all []testbed.Process) {
	for _, p := range all {
		if err := syscall.Kill(-p.ID().PID, 0); !errors.Is(err, syscall.ESRCH) {
			k.Errorf("process group %d is there after its end: %v", p.ID().PID, err)
		}
	}
}

// stopTwice checks that a cluster can be stopped twice, and that nothing of it is left.
func (k kit) stopTwice(c system.Cluster) {
	all := processes(c.Nodes()...)
	for range 2 {
		k.must("stop", c.Stop(k.ctx()))
	}
	k.wantEnded(all)
}

// kill kills all processes of nodes and waits until the testbed notices.
func (k kit) kill(nodes ...system.Node) {
	all := processes(nodes...)
	k.signal(syscall.SIGKILL, all)
	for _, p := range all {
		if !await(soon, time.Millisecond, func() bool { return testbed.Ended(p) }) {
			k.Errorf("kill -9 goes unnoticed")
		}
	}
}

// freeze stops the processes of nodes until the returned function is called.
func (k kit) freeze(nodes ...system.Node) (thaw func()) {
	all := processes(nodes...)
	thaw = func() { k.signal(syscall.SIGCONT, all) }
	k.signal(syscall.SIGSTOP, all)
	if !await(soon, time.Millisecond, func() bool { return !slices.ContainsFunc(all, runs) }) {
		thaw()
		k.Fatalf("processes do not stop")
	}
	return thaw
}

// runs reports whether a thread of p's family is not stopped yet.
func runs(p testbed.Process) bool {
	for _, member := range family(p) {
		threads, _ := procfs.AllThreads(member.PID)
		for _, thread := range threads {
			if s, err := thread.Stat(); err == nil && s.State != "T" && s.State != "Z" {
				return true
			}
		}
	}
	return false
}

// signal signals the process groups of processes' families.
func (k kit) signal(s syscall.Signal, all []testbed.Process) {
	for _, p := range all {
		groups := map[int]bool{p.ID().PID: true}
		for _, member := range family(p) {
			groups[member.PGRP] = true
		}
		for group := range groups {
			if err := syscall.Kill(-group, s); err != nil && (group == p.ID().PID || !errors.Is(err, syscall.ESRCH)) {
				k.Errorf("%v to process group %d: %v", s, group, err)
			}
		}
	}
}

// family returns the process group of p and all its descendants: some servers give each connection
// a process in its own session.
func family(p testbed.Process) (all []procfs.ProcStat) {
	procs, _ := procfs.AllProcs()
	stats := map[int]procfs.ProcStat{}
	for _, proc := range procs {
		if s, err := proc.Stat(); err == nil { // otherwise it has ended
			stats[s.PID] = s
		}
	}
	for _, s := range stats {
		for up := s; up.PID > 1; up = stats[up.PPID] {
			if up.PGRP == p.ID().PID {
				all = append(all, s)
				break
			}
		}
	}
	return all
}
