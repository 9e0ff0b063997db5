package systemtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
)

const mib = 1 << 20

// soon is what "soon" is held to: generous, for machines under load, and far
// from what waiting for a time-out would take.
const soon = 20 * time.Second

// Context ends with the test, or after two minutes.
func Context(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// ended is a context that is cancelled already.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

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

// must ends the test at an error.
func must(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// fails expects an error: one of want, if any are named.
func fails(t *testing.T, what string, err error, want ...error) {
	t.Helper()
	if err == nil || len(want) > 0 && !slices.ContainsFunc(want, func(w error) bool { return errors.Is(err, w) }) {
		t.Errorf("%s: error %v, want one of %v", what, err, want)
	}
}

// within fails the test when something takes long.
func within(t *testing.T, what string, do func()) {
	t.Helper()
	from := time.Now()
	do()
	if took := time.Since(from); took > soon {
		t.Errorf("%s took %v", what, took)
	}
}

// failsSoon is fails within a moment.
func failsSoon(t *testing.T, what string, do func() error, want ...error) {
	t.Helper()
	within(t, what, func() { fails(t, what, do(), want...) })
}

// store is what [system.Store.Put], [system.Seed] and Publish have in common.
type store func(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error)

func (s store) bytes(t *testing.T, name string, data []byte) system.Ref {
	t.Helper()
	ref, err := s(Context(t), name, int64(len(data)), bytes.NewReader(data))
	if err != nil || ref == "" {
		t.Fatalf("store %q (%d bytes): ref %q, error %v", name, len(data), ref, err)
	}
	return ref
}

// wantContent compares what read writes.
func wantContent(t *testing.T, what string, data []byte, read func(io.Writer) error) {
	t.Helper()
	var got bytes.Buffer
	if err := read(&got); err != nil {
		t.Errorf("%s: %v", what, err)
	} else if !bytes.Equal(got.Bytes(), data) {
		t.Errorf("%s: %d bytes that differ from the %d stored", what, got.Len(), len(data))
	}
}

// wantAbilities holds what a system says before it is started to what its nodes
// are; without are words that these options take away.
func wantAbilities(t *testing.T, s system.System, c system.Cluster, without []string) {
	t.Helper()
	protocol := []string{"https", "h2", "car"} // words that no type says
	can := s.Info().Can
	for _, word := range without {
		if !slices.Contains(can, word) {
			t.Errorf("these options take %q away, which Info.Can does not have", word)
		}
	}
	for i, n := range c.Nodes() {
		is := system.Abilities(n)
		if c.Identity()["connections"] == "fresh" {
			if slices.Contains(is, "fresh") {
				t.Errorf("node %d: Identity says that connections are always fresh, and it has Redial", i)
			}
			is = append(is, "fresh")
		}
		for _, word := range is {
			if !slices.Contains(can, word) || slices.Contains(without, word) {
				t.Errorf("node %d can %q, which Info.Can does not have, or these options take away", i, word)
			}
		}
		_, member := n.(system.Member)
		_, follower := n.(system.Follower)
		for _, word := range can {
			if !member && !follower && !slices.Contains(is, word) && !slices.Contains(protocol, word) &&
				!slices.Contains(without, word) {
				t.Errorf("Info.Can has %q, which node %d cannot", word, i)
			}
		}
	}
}

var errReader = errors.New("the reader broke")

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errReader }

// badReaders gives a store what is not what it is said to be.
func badReaders(t *testing.T, s store) {
	t.Helper()
	const size = mib
	for _, c := range []struct {
		name string
		size int64
		r    io.Reader
		want []error
	}{
		{"short", size, Content("short", size-1), nil},
		{"long", size, Content("long", size+1), nil},
		{"broken", size, io.MultiReader(Content("broken", size/2), brokenReader{}), []error{errReader}},
		{"empty", size, bytes.NewReader(nil), nil},
		{"more than nothing", 0, Content("x", 1), nil},
	} {
		failsSoon(t, "a reader that is "+c.name, func() error {
			_, err := s(Context(t), "bad-"+c.name, c.size, c.r)
			return err
		}, c.want...)
	}
}

// once does something when it is first read (it is empty) or written to.
type once struct {
	do   func()
	done bool
}

func (o *once) Read([]byte) (int, error) {
	o.trigger()
	return 0, io.EOF
}

func (o *once) Write(p []byte) (int, error) {
	o.trigger()
	return len(p), nil
}

func (o *once) trigger() {
	if !o.done {
		o.done = true
		o.do()
	}
}

// badRefs are refs that nothing can have.
var badRefs = []system.Ref{
	"", "/", "../../etc/passwd", "..", "%2e%2e%2fetc%2fpasswd", "a\x00b", "new\nline", "?x=y", "http://127.0.0.1:1/",
}
