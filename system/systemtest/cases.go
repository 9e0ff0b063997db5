package systemtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plimsoll-project/plimsoll/system"
)

const mib = 1 << 20

// soon is what "soon" is held to: generous, for machines under load, and far
// from what waiting for a time-out would take.
const soon = 20 * time.Second

func put(t *testing.T, n system.Store, name string, data []byte) system.Ref {
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

func wantObject(t *testing.T, n system.Store, ref system.Ref, want []byte) {
	t.Helper()
	var got bytes.Buffer
	if err := n.Get(Context(t), ref, &got); err != nil {
		t.Errorf("get %s: %v", ref, err)
	} else if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("get %s: %d bytes that differ from the %d put", ref, got.Len(), len(want))
	}
}

func testSizes(t *testing.T, s Suite, n system.Store) {
	for _, size := range []int64{0, 1, 55, 56, 1 << 10, 256<<10 - 1, 256 << 10, 256<<10 + 1, 5 * mib} {
		name := fmt.Sprintf("size-%d", size)
		if size < s.Truths.MinSize {
			if ref, err := n.Put(Context(t), name, size, Content(name, size)); err == nil {
				t.Errorf("%d bytes, which the system does not take, are stored as %s", size, ref)
			}
			continue
		}
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

func testRanges(t *testing.T, n system.Store) {
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

func testNames(t *testing.T, s Suite, n system.Store) {
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
	same := Bytes("same content", 300)
	one, two := put(t, n, "same-1", same), put(t, n, "same-2", same)
	if (one == two) != s.Truths.ContentAddressed {
		t.Errorf("the same content has refs %s and %s; the suite's truth: content addressed %v", one, two, s.Truths.ContentAddressed)
	}
	wantObject(t, n, one, same)
	wantObject(t, n, two, same)
}

var errReader = errors.New("the reader broke")

// storer is Put, or Seed in its form.
type storer func(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error)

func seed(n system.Store) storer {
	return func(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
		return system.Seed(ctx, n, name, size, r)
	}
}

func testBadReaders(t *testing.T, n system.Store) {
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
func testStreams(t *testing.T, s Suite, n system.Store) {
	size := s.size(48*mib, 16*mib)
	for _, how := range []struct {
		name  string
		store storer
	}{{"put", n.Put}, {"seed", seed(n)}} {
		peaks := peakRSS(n)
		r := Content("large-"+how.name, size)
		if !s.Truths.InProcess {
			r = holding(t, how.name, size, r)
		}
		ref, err := how.store(Context(t), "large-"+how.name, size, r)
		if err != nil {
			t.Fatalf("%s: %v", how.name, err)
		}
		for pid, peak := range peakRSS(n) {
			if s.Truths.HoldsObjects {
				break
			}
			if grew := peak - peaks[pid]; grew > size/2 {
				t.Errorf("%s of %d MiB grew process %d by %d MiB", how.name, size/mib, pid, grew/mib)
			}
		}
		want, err := digestOf(Content("large-"+how.name, size))
		if err != nil {
			t.Fatal(err)
		}
		pipe, w := io.Pipe()
		go func() { w.CloseWithError(n.Get(Context(t), ref, w)) }()
		got, err := digestOf(holding(t, "get", size, pipe))
		if err != nil {
			t.Fatalf("get: %v", err)
		}
		if got != want {
			t.Errorf("get: %d bytes that differ from those put", got.n)
		}
	}
}

// holding is r, an object of size bytes on its way, and looks after three
// quarters of it at what this process holds in memory: what a library allocates
// for a moment is its cost, but no buffered object.
func holding(t *testing.T, what string, size int64, r io.Reader) io.Reader {
	before := held()
	return io.MultiReader(io.LimitReader(r, size/4*3), &once{do: func() {
		if grew := held() - before; grew > size/4 {
			t.Errorf("%s of %d MiB holds %d MiB here after three quarters of it", what, size/mib, grew/mib)
		}
	}}, r)
}

// held is the memory in use, garbage left out: the least of a few looks, since
// what is on its way goes on being allocated after each collection.
func held() int64 {
	least := int64(math.MaxInt64)
	for range 3 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		least = min(least, int64(m.HeapAlloc))
	}
	return least
}

// peakRSS is VmHWM of each process of n, in bytes.
func peakRSS(n system.Getter) map[int]int64 {
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

func testCancel(t *testing.T, s Suite, n system.Store) {
	size := s.size(32*mib, 16*mib)
	ref, err := system.Seed(Context(t), n, "cancel", size, Content("cancel", size))
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

func testConcurrent(t *testing.T, s Suite, n system.Store) {
	g, ctx := errgroup.WithContext(Context(t))
	for i := range s.size(8, 4) {
		g.Go(func() error {
			for k := range s.size(5, 2) {
				name := fmt.Sprintf("concurrent-%d-%d", i, k)
				data := Bytes(name, 300<<10+i)
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

func testListDelete(t *testing.T, s Suite, n system.Store) {
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
				if o.Size != 1234 || o.Name != "listed" && !s.Truths.ContentAddressed {
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
	// Two objects with the same blocks at their start: systems have been seen to
	// delete those of both.
	twin := Bytes("twin", 2*mib)
	first, second := put(t, n, "twin-1", twin), put(t, n, "twin-2", append(twin[:mib:mib], "other"...))
	for _, ref := range []system.Ref{ref, first} {
		if err := d.Delete(Context(t), ref); err != nil {
			t.Fatal(err)
		}
		if err := n.Get(Context(t), ref, io.Discard); !errors.Is(err, system.ErrNotFound) {
			t.Errorf("get after delete: %v", err)
		}
	}
	if !s.Truths.DeleteTakesShared {
		wantObject(t, n, second, append(twin[:mib:mib], "other"...))
	}
}
