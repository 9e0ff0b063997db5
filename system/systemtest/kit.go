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
	"testing"
	"testing/iotest"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
)

const mib = 1 << 20

// soon is what "soon" is held to: generous, for machines under load, and far
// from what waiting for a time-out would take.
const soon = 20 * time.Second

// Context ends with the test, or after two minutes.
func Context(t *testing.T) context.Context { return kit{t}.limited(2 * time.Minute) }

// Content is size bytes that differ by seed and repeat no block.
func Content(seed string, size int64) io.Reader {
	return io.LimitReader(rand.NewChaCha8(sha256.Sum256([]byte(seed))), size)
}

// Bytes is Content in memory.
func Bytes(seed string, size int64) []byte {
	b := make([]byte, size)
	if _, err := io.ReadFull(Content(seed, size), b); err != nil {
		panic(err) // a generator has no end
	}
	return b
}

// Must ends the test at an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// AtEnd ends something when the test is over, within half a minute.
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

// kit is a test with what cases of all contracts do.
type kit struct{ *testing.T }

// Errorf fails the test, and says by which way through the suite it came to that.
func (k kit) Errorf(format string, args ...any) {
	k.T.Errorf("%s: %s", path(), fmt.Sprintf(format, args...))
}

// Fatalf ends the test, and says by which way through the suite it came to that.
func (k kit) Fatalf(format string, args ...any) {
	k.T.Fatalf("%s: %s", path(), fmt.Sprintf(format, args...))
}

// path are the places in cases that led to Errorf or Fatalf, the last one first.
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

// ctx is the usual limit of a call.
func (k kit) ctx() context.Context { return Context(k.T) }

// limited ends with the test, or after a time.
func (k kit) limited(limit time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(k.Context(), limit)
	k.Cleanup(cancel)
	return ctx
}

// ended is a context that is cancelled already.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// must ends the test at an error.
func (k kit) must(what string, err error) {
	if err != nil {
		k.Fatalf("%s: %v", what, err)
	}
}

// fails expects an error: one of want, if any are named.
func (k kit) fails(what string, err error, want ...error) {
	if err == nil || len(want) > 0 && !slices.ContainsFunc(want, func(w error) bool { return errors.Is(err, w) }) {
		k.Errorf("%s: error %v, want one of %v", what, err, want)
	}
}

// soon fails the test when what it returns is called much later: defer k.soon("to stop")().
func (k kit) soon(what string) (ended func()) {
	from := time.Now()
	return func() {
		if took := time.Since(from); took > soon {
			k.Errorf("%s took %v", what, took)
		}
	}
}

// failsSoon is fails within a moment.
func (k kit) failsSoon(what string, do func() error, want ...error) {
	defer k.soon(what)()
	k.fails(what, do(), want...)
}

// errorOf is the error of a call whose value does not matter.
func errorOf[V any](_ V, err error) error { return err }

// await asks whether something is so, again and again, until it is or the limit has passed.
func await(limit, every time.Duration, so func() bool) bool {
	for end := time.Now().Add(limit); !so(); time.Sleep(every) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// put is what [system.Store.Put], [system.Seed] and Publish have in common.
type put func(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error)

// object is one that was stored.
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

// wantContent compares what read writes.
func (k kit) wantContent(what string, data []byte, read func(io.Writer) error) {
	var got bytes.Buffer
	if err := read(&got); err != nil {
		k.Errorf("%s: %v", what, err)
	} else if !bytes.Equal(got.Bytes(), data) {
		k.Errorf("%s: %d bytes that differ from the %d stored", what, got.Len(), len(data))
	}
}

// minus are the words that others do not have.
func minus(words []string, others ...[]string) []string {
	all := slices.Concat(others...)
	return slices.DeleteFunc(slices.Clone(words), func(word string) bool { return slices.Contains(all, word) })
}

// wantAbilities holds what a system says before it is started to what its nodes
// are; without are words that these options take away.
func (k kit) wantAbilities(s system.System, c system.Cluster, without []string) {
	protocol := []string{"https", "h2", "car"} // words that no type says
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
		other := slices.Contains(is, "spread") || slices.Contains(is, "follow") // no store, which has the rest
		if less := minus(can, is, protocol, without); !other && len(less) > 0 {
			k.Errorf("Info.Can has %q, which node %d cannot", less, i)
		}
	}
}

var errReader = errors.New("the reader broke")

// badReaders gives a store what is not what it is said to be.
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

// hook does something when it is read, and is empty, or when more bytes than after have been written to it.
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

// badRefs are refs that nothing can have.
var badRefs = []system.Ref{
	"", "/", "../../etc/passwd", "..", "%2e%2e%2fetc%2fpasswd", "a\x00b", "new\nline", "?x=y", "http://127.0.0.1:1/",
}
