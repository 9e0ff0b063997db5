package systemtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plimsoll-project/plimsoll/system"
)

const mib = 1 << 20

// soon is what "soon" is held to: generous, for machines under load, and far
// from what waiting for a time-out would take.
const soon = 20 * time.Second

func put(t *testing.T, n system.Node, name string, data []byte) system.Ref {
	t.Helper()
	ref, err := n.Put(Context(t), name, int64(len(data)), bytes.NewReader(data))
	if err != nil {
		t.Fatalf("put %q (%d bytes): %v", name, len(data), err)
	}
	if ref == "" {
		t.Fatalf("put %q: empty ref", name)
	}
	return ref
}

func wantObject(t *testing.T, n system.Node, ref system.Ref, want []byte) {
	t.Helper()
	var got bytes.Buffer
	if err := n.Get(Context(t), ref, &got); err != nil {
		t.Errorf("get %s: %v", ref, err)
	} else if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("get %s: %d bytes that differ from the %d put", ref, got.Len(), len(want))
	}
}

func testSizes(t *testing.T, n system.Node) {
	for _, size := range []int64{0, 1, 55, 56, 1 << 10, 256<<10 - 1, 256 << 10, 256<<10 + 1, 5 * mib} {
		name := fmt.Sprintf("size-%d", size)
		data := Bytes(name, size)
		wantObject(t, n, put(t, n, name, data), data)
		seeded := Bytes("seed"+name, size)
		ref, err := system.Seed(Context(t), n, "seed"+name, size, bytes.NewReader(seeded))
		if err != nil {
			t.Fatalf("seed %d bytes: %v", size, err)
		}
		wantObject(t, n, ref, seeded)
	}
}

func testRanges(t *testing.T, n system.Node) {
	r, ok := n.(system.Ranger)
	if !ok {
		t.Skip("the system reads no ranges")
	}
	const size = 3*mib + 7 // several blocks of any system, the last one not full
	data := Bytes("ranges", size)
	wantRanges(t, r, put(t, n, "ranges", data), data)
}

func wantRanges(t *testing.T, r system.Ranger, ref system.Ref, data []byte) {
	t.Helper()
	size := int64(len(data))
	for _, c := range []struct {
		what   string
		off, n int64
		short  bool
	}{
		{"first byte", 0, 1, false},
		{"first", 0, 1000, false},
		{"middle", size/2 - 3, size / 4, false},
		{"last", size - 1000, 1000, false},
		{"last byte", size - 1, 1, false},
		{"all", 0, size, false},
		{"nothing", size / 2, 0, false},
		{"over the end", size - 10, 100, true},
		{"at the end", size, 1, true},
		{"behind the end", size + mib, 10, true},
	} {
		var got bytes.Buffer
		err := r.GetRange(Context(t), ref, c.off, c.n, &got)
		want := data[min(c.off, size):min(c.off+c.n, size)]
		if !bytes.Equal(got.Bytes(), want) {
			t.Errorf("range %s: %d bytes that differ from the %d expected (error: %v)", c.what, got.Len(), len(want), err)
		}
		if c.short != errors.Is(err, io.ErrUnexpectedEOF) || !c.short && err != nil {
			t.Errorf("range %s: error %v", c.what, err)
		}
	}
	if err := r.GetRange(Context(t), ref, -1, 10, io.Discard); err == nil {
		t.Error("a negative offset is no error")
	}
}

func testUnknown(t *testing.T, n system.Node) {
	from := time.Now()
	for _, ref := range []system.Ref{"no-such-object", "../../etc/passwd", ""} {
		err := n.Get(Context(t), ref, io.Discard)
		if !errors.Is(err, system.ErrNotFound) {
			t.Errorf("get of unknown ref %q: %v, want ErrNotFound", ref, err)
		}
	}
	if took := time.Since(from); took > soon {
		t.Errorf("unknown refs took %v to be told", took)
	}
}

func testNames(t *testing.T, n system.Node) {
	refs := map[system.Ref]string{}
	data := map[system.Ref][]byte{}
	for _, name := range []string{
		"", " ", ".", "..", ".hidden", "../../up", "a/b/c", "a//b", "a b", "a%20b", "a+b", "a?b#c&d=e", "ünï→☃", "x\x00y",
		"new\nline", `back\slash`, `"quoted"`, "-rf", "CON:|*<>", "\xff\xfe", "=41", "A", strings.Repeat("long", 100), strings.Repeat("long", 101),
	} {
		b := Bytes("name"+name, 100)
		ref := put(t, n, name, b)
		if other, taken := refs[ref]; taken {
			t.Errorf("names %q and %q share the ref %s", name, other, ref)
		}
		refs[ref], data[ref] = name, b
	}
	for ref, b := range data {
		wantObject(t, n, ref, b)
	}
}

var errReader = errors.New("the reader broke")

// storer is Put, or Seed in its form.
type storer func(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error)

func seed(n system.Node) storer {
	return func(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
		return system.Seed(ctx, n, name, size, r)
	}
}

func testBadReaders(t *testing.T, n system.Node) {
	testBadReadersOf(t, n.Put)
	testBadReadersOf(t, seed(n))
	// The server is none the worse for it.
	wantObject(t, n, put(t, n, "after-bad", []byte("fine")), []byte("fine"))
}

func testBadReadersOf(t *testing.T, store storer) {
	t.Helper()
	const size = mib
	for name, r := range map[string]io.Reader{
		"short":  Content("short", size-1),
		"long":   Content("long", size+1),
		"broken": io.MultiReader(Content("broken", size/2), brokenReader{}),
		"empty":  strings.NewReader(""),
	} {
		from := time.Now()
		ref, err := store(Context(t), "bad-"+name, size, r)
		if err == nil {
			t.Errorf("a %s reader is stored as %s", name, ref)
		}
		if name == "broken" && !errors.Is(err, errReader) {
			t.Errorf("the reader's error is lost: %v", err)
		}
		if took := time.Since(from); took > soon {
			t.Errorf("a %s reader took %v to be refused", name, took)
		}
	}
	if _, err := store(Context(t), "bad-more", 0, strings.NewReader("x")); err == nil {
		t.Error("a reader with more than 0 bytes is stored")
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errReader }

// testStreams puts an object much larger than what may be held in memory.
func testStreams(t *testing.T, n system.Node) {
	const size = 48 * mib
	for _, how := range []struct {
		name  string
		store storer
	}{{"put", n.Put}, {"seed", seed(n)}} {
		before, peaks := allocated(), peakRSS(n)
		ref, err := how.store(Context(t), "large-"+how.name, size, Content("large-"+how.name, size))
		if err != nil {
			t.Fatalf("%s: %v", how.name, err)
		}
		if grew := allocated() - before; grew > size/4 {
			t.Errorf("%s of %d MiB allocated %d MiB here", how.name, size/mib, grew/mib)
		}
		for pid, peak := range peakRSS(n) {
			if grew := peak - peaks[pid]; grew > size/2 {
				t.Errorf("%s of %d MiB grew process %d by %d MiB", how.name, size/mib, pid, grew/mib)
			}
		}
		before = allocated()
		want, err := digestOf(Content("large-"+how.name, size))
		if err != nil {
			t.Fatal(err)
		}
		r, w := io.Pipe()
		go func() { w.CloseWithError(n.Get(Context(t), ref, w)) }()
		got, err := digestOf(r)
		if err != nil {
			t.Fatalf("get: %v", err)
		}
		if got != want {
			t.Errorf("get: %d bytes that differ from those put", got.n)
		}
		if grew := allocated() - before; grew > size/4 {
			t.Errorf("get of %d MiB allocated %d MiB here", size/mib, grew/mib)
		}
	}
}

func allocated() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.TotalAlloc)
}

// peakRSS is VmHWM of each process of n, in bytes.
func peakRSS(n system.Node) map[int]int64 {
	peaks := map[int]int64{}
	for _, p := range n.Processes() {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			if f := strings.Fields(line); len(f) == 3 && f[0] == "VmHWM:" {
				kb, _ := strconv.ParseInt(f[1], 10, 64)
				peaks[p.PID()] = kb << 10
			}
		}
	}
	return peaks
}

func testCancel(t *testing.T, n system.Node) {
	ref, err := system.Seed(Context(t), n, "cancel", 32*mib, Content("cancel", 32*mib))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(Context(t))
	w := &cancelAfter{left: mib, cancel: cancel}
	from := time.Now()
	if err := n.Get(ctx, ref, w); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled get: %v", err)
	}
	ctx, cancel = context.WithCancel(Context(t))
	// Endless for who stops when told to; who reads on does not fill the memory.
	endless := io.MultiReader(io.TeeReader(Content("endless", 256*mib), &cancelAfter{left: 4 * mib, cancel: cancel}), brokenReader{})
	if _, err := n.Put(ctx, "endless", 1<<32, endless); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled put: %v", err)
	}
	ctx, cancel = context.WithCancel(Context(t))
	cancel()
	if _, err := n.Put(ctx, "never", 5, strings.NewReader("never")); !errors.Is(err, context.Canceled) {
		t.Errorf("put with a context that ended before: %v", err)
	}
	if took := time.Since(from); took > soon {
		t.Errorf("cancelled calls took %v to return", took)
	}
}

// cancelAfter is a writer which cancels after some bytes.
type cancelAfter struct {
	left   int64
	cancel func()
}

func (c *cancelAfter) Write(p []byte) (int, error) {
	if c.left -= int64(len(p)); c.left < 0 {
		c.cancel()
	}
	return len(p), nil
}

func testConcurrent(t *testing.T, n system.Node) {
	g, ctx := errgroup.WithContext(Context(t))
	for i := range 8 {
		g.Go(func() error {
			for k := range 5 {
				name := fmt.Sprintf("concurrent-%d-%d", i, k)
				data := Bytes(name, int64(300<<10+i))
				ref, err := n.Put(ctx, name, int64(len(data)), bytes.NewReader(data))
				if err != nil {
					return err
				}
				var got bytes.Buffer
				if err := n.Get(ctx, ref, &got); err != nil {
					return err
				}
				if !bytes.Equal(got.Bytes(), data) {
					return fmt.Errorf("%s: got other bytes", name)
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}

func testListDelete(t *testing.T, n system.Node) {
	data := Bytes("listed", 1234)
	ref := put(t, n, "listed", data)
	if l, ok := n.(system.Lister); ok {
		all, err := l.List(Context(t))
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, o := range all {
			if o.Ref == ref {
				found++
				if o.Size != 1234 || o.Name != "listed" {
					t.Errorf("listed as %+v", o)
				}
			}
		}
		if found != 1 {
			t.Errorf("listed %d times", found)
		}
	}
	d, ok := n.(system.Deleter)
	if !ok {
		return
	}
	if err := d.Delete(Context(t), ref); err != nil {
		t.Fatal(err)
	}
	if err := n.Get(Context(t), ref, io.Discard); !errors.Is(err, system.ErrNotFound) {
		t.Errorf("get after delete: %v", err)
	}
}

func testHealth(t *testing.T, n system.Node) {
	h, ok := n.(system.Healther)
	if !ok {
		t.Skip("the system has no health probe")
	}
	if err := h.Health(Context(t)); err != nil {
		t.Errorf("health of a healthy node: %v", err)
	}
	// A node which accepts and answers nothing is not healthy.
	for _, p := range n.Processes() {
		signalGroup(t, p.PID(), syscall.SIGSTOP)
		waitStopped(t, p.PID())
		defer signalGroup(t, p.PID(), syscall.SIGCONT)
	}
	ctx, cancel := context.WithTimeout(Context(t), time.Second)
	defer cancel()
	if err := h.Health(ctx); err == nil {
		t.Error("health of a stopped node: no error")
	}
}

// waitStopped waits until every thread of a process group is stopped, which
// takes a moment after the signal.
func waitStopped(t *testing.T, group int) {
	t.Helper()
	for end := time.Now().Add(soon); ; time.Sleep(time.Millisecond) {
		stats, err := filepath.Glob("/proc/[0-9]*/task/*/stat")
		running := err != nil
		for _, path := range stats {
			b, _ := os.ReadFile(path) // gone: not running
			_, rest, _ := strings.Cut(string(b), ") ")
			f := strings.Fields(rest) // state, parent, process group
			running = running || len(f) > 2 && f[2] == strconv.Itoa(group) && f[0] != "T"
		}
		if !running {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("process group %d does not stop", group)
		}
	}
}

func signalGroup(t *testing.T, pid int, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(-pid, s); err != nil {
		t.Errorf("%v to process group %d: %v", s, pid, err)
	}
}

func testStop(t *testing.T, c system.Cluster) {
	n := c.Nodes()[0]
	for range 2 {
		if err := c.Stop(Context(t)); err != nil {
			t.Errorf("stop: %v", err)
		}
	}
	for _, p := range n.Processes() {
		if err := syscall.Kill(-p.PID(), 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process group %d is there after stop: %v", p.PID(), err)
		}
	}
	wantGone(t, n)
}

// wantGone checks that a node whose server is gone says so, soon.
func wantGone(t *testing.T, n system.Node) {
	t.Helper()
	from := time.Now()
	if h, ok := n.(system.Healther); ok {
		if err := h.Health(Context(t)); err == nil {
			t.Error("healthy without a server")
		}
	}
	if err := n.Get(Context(t), "anything", io.Discard); err == nil {
		t.Error("get without a server: no error")
	}
	if took := time.Since(from); took > soon {
		t.Errorf("took %v to notice that the server is gone", took)
	}
}

func testKilled(t *testing.T, s Suite) {
	c := start(t, s, nil)
	n := c.Nodes()[0]
	for _, p := range n.Processes() {
		signalGroup(t, p.PID(), syscall.SIGKILL)
		select {
		case <-p.Done():
		case <-time.After(soon):
			t.Fatal("kill -9 goes unnoticed")
		}
	}
	wantGone(t, n)
}

func testPortInUse(t *testing.T, s Suite) {
	has := false
	for _, o := range s.System.Info().Options {
		has = has || o.Name == "port"
	}
	if !has {
		t.Skip("the system has no option port")
	}
	hosts := Hosts(t, 2)
	port, err := hosts[0].FreePort(Context(t))
	if err != nil {
		t.Fatal(err)
	}
	l, err := hosts[0].Listen(Context(t), "tcp", system.JoinPort(hosts[0], port))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = tryStart(t, s, system.Options{"port": strconv.Itoa(port)}, hosts)
	if err == nil || !strings.Contains(err.Error(), "port in use") || !strings.Contains(err.Error(), strconv.Itoa(port)) {
		t.Errorf("start on a port in use: %v", err)
	}
}
