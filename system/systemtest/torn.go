package systemtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
)

// cutOff is one way in which a put ends in its middle: the source of an object,
// and when the call is cancelled by itself.
type cutOff struct {
	name   string
	source func(whole []byte, cancel func()) io.Reader
	after  time.Duration // 0: the source decides
}

// arrive is a pause in a source: what was read before has reached the server then,
// and is not lost in buffers on the way.
const arrive = 100 * time.Millisecond

// cutOffs are the ways of a put that would take so long. The last is for systems
// that read all of the source before they send.
func cutOffs(took time.Duration) []cutOff {
	half := func(whole []byte, then func()) io.Reader {
		return io.MultiReader(bytes.NewReader(whole[:len(whole)/2]), &once{do: func() { time.Sleep(arrive); then() }})
	}
	return []cutOff{
		{name: "broken", source: func(whole []byte, _ func()) io.Reader {
			return io.MultiReader(half(whole, func() {}), brokenReader{})
		}},
		{name: "cancelled", source: func(whole []byte, cancel func()) io.Reader {
			return io.MultiReader(half(whole, cancel), bytes.NewReader(whole[len(whole)/2:]))
		}},
		{name: "cancelled-late", source: func(whole []byte, _ func()) io.Reader { return bytes.NewReader(whole) }, after: took * 3 / 4},
	}
}

// torn is a ref of which something was stored, or overwritten, in part.
type torn struct {
	what        string
	ref         system.Ref
	before, new []byte                                // before nil: there was nothing
	again       func(data []byte) (system.Ref, error) // the ref may follow from the content, too
}

// testTorn cuts puts and updates off in their middle. What is there then by that
// ref is what was there before, or all that was sent, whose acceptance was not
// heard: half an object looks like one. A server that writes under the object's
// own name leaves half; a system with such a server says so in its identity
// (system.PutsTear), which runs record. Of it, what is there is the beginning of
// what was sent, and as long as it says, or what was there with such a beginning, or
// nothing. In any case other objects are
// as they were, and the same put goes through afterwards.
func testTorn(t *testing.T, s Suite, c system.Cluster) {
	const size = 8 * mib
	n, inPlace := storeOf(c), c.Identity()["puts"] == system.PutsTear
	from := time.Now()
	whole := put(t, n, "torn", Bytes("torn", size))
	ways := cutOffs(time.Since(from))
	var all []torn
	for _, way := range ways {
		all = append(all, tearNew(t, s, n, way, size)...)
		all = append(all, tearOld(t, n, way, size)...)
		all = append(all, tearUpdate(t, n, way, size/4)...)
	}
	// At once, and when the server has seen that the client is gone.
	for _, later := range []time.Duration{0, 5 * arrive} {
		time.Sleep(later)
		for _, o := range all {
			if err := o.look(t, n, inPlace); err != nil {
				t.Error(err)
			}
		}
	}
	wantObject(t, n, whole, Bytes("torn", size))
	for _, o := range all {
		if o.again == nil {
			continue
		}
		data := Bytes(o.what+" again", mib)
		ref, err := o.again(data)
		if err != nil {
			t.Errorf("%s, then whole: %v", o.what, err)
			continue
		}
		wantObject(t, n, ref, data)
	}
}

// tear stores whole and is cut off, or is not when it was quicker than thought.
func (way cutOff) tear(t *testing.T, what string, whole []byte, store func(ctx context.Context, r io.Reader) error) (stored bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(Context(t))
	defer cancel()
	if way.after > 0 {
		defer time.AfterFunc(way.after, cancel).Stop()
	}
	within(t, what, func() {
		stored = store(ctx, way.source(whole, cancel)) == nil
	})
	if stored && way.after == 0 {
		t.Errorf("%s: no error", what)
	}
	return stored
}

// tearNew stores under a name that is free. Where the ref follows from the name,
// nothing is to be found by it.
func tearNew(t *testing.T, s Suite, n system.Store, way cutOff, size int64) []torn {
	t.Helper()
	name := "torn-new-" + way.name
	o := torn{what: "a new object, put " + way.name, new: Bytes(name, size)}
	o.again = func(data []byte) (system.Ref, error) {
		return n.Put(Context(t), name, int64(len(data)), bytes.NewReader(data))
	}
	known := false
	if namer, ok := n.(system.Namer); ok {
		o.ref, known = namer.Named(name), true
	} else if d, ok := n.(system.Deleter); ok && !s.Truths.ContentAddressed {
		o.ref, known = put(t, n, name, Bytes(name, 1000)), true
		if err := d.Delete(Context(t), o.ref); err != nil {
			t.Fatal(err)
		}
	}
	before := sizes(t, n)
	stored := way.tear(t, o.what, o.new, func(ctx context.Context, r io.Reader) error {
		_, err := n.Put(ctx, name, size, r)
		return err
	})
	for ref, has := range sizes(t, n) {
		if has < 0 { // a list without sizes: all may have arrived before the end
			var got bytes.Buffer
			if err := n.Get(Context(t), ref, &got); err == nil && bytes.Equal(got.Bytes(), o.new) {
				has = size
			}
		}
		if _, there := before[ref]; !there && !(known && ref == o.ref) && has != size {
			t.Errorf("%s: %s of %d bytes is listed after it", o.what, ref, has)
		}
	}
	if !known {
		return nil
	}
	if stored {
		o.again = nil // some systems refuse what is there
	}
	return []torn{o}
}

// sizes are those of all objects; nil: the system has no list.
func sizes(t *testing.T, n system.Store) map[system.Ref]int64 {
	t.Helper()
	if _, ok := n.(system.Lister); !ok {
		return nil
	}
	of := map[system.Ref]int64{}
	for _, o := range listing(t, n) {
		of[o.Ref] = o.Size
	}
	return of
}

// tearOld stores under a name that has an object. A system may refuse that.
func tearOld(t *testing.T, n system.Store, way cutOff, size int64) []torn {
	t.Helper()
	name := "torn-old-" + way.name
	o := torn{what: "an object, replacement " + way.name, before: Bytes(name, 3*mib), new: Bytes(name+" new", size)}
	o.ref = put(t, n, name, o.before)
	way.tear(t, o.what, o.new, func(ctx context.Context, r io.Reader) error {
		_, err := n.Put(ctx, name, size, r)
		return err
	})
	return []torn{o}
}

func tearUpdate(t *testing.T, n system.Store, way cutOff, size int64) []torn {
	t.Helper()
	u, ok := n.(system.Updater)
	if !ok {
		return nil
	}
	name := "torn-update-" + way.name
	o := torn{what: "an object, update " + way.name, before: Bytes(name, mib), new: Bytes(name+" new", size)}
	var err error
	if o.ref, err = u.PutMutable(Context(t), name, int64(len(o.before)), bytes.NewReader(o.before)); err != nil {
		t.Fatalf("put mutable %q: %v", name, err)
	}
	o.again = func(data []byte) (system.Ref, error) {
		return o.ref, u.Update(Context(t), o.ref, int64(len(data)), bytes.NewReader(data))
	}
	way.tear(t, o.what, o.new, func(ctx context.Context, r io.Reader) error { return u.Update(ctx, o.ref, size, r) })
	return []torn{o}
}

// overwritten reports whether there is what was there before with its beginning
// replaced: some servers do not make a file empty first.
func (o torn) overwritten(there []byte) bool {
	if len(there) != len(o.before) || len(there) > len(o.new) {
		return false
	}
	k := 0
	for k < len(there) && there[k] == o.new[k] {
		k++
	}
	return bytes.Equal(there[k:], o.before[k:])
}

// look says what is wrong with what is there. inPlace: a part of it may be.
func (o torn) look(t *testing.T, n system.Store, inPlace bool) error {
	var got bytes.Buffer
	err := n.Get(Context(t), o.ref, &got)
	there := got.Bytes()
	switch {
	case errors.Is(err, system.ErrNotFound) && (o.before == nil || inPlace):
		return nil
	case err != nil:
		return fmt.Errorf("%s: get: %w", o.what, err)
	case o.before != nil && bytes.Equal(there, o.before), bytes.Equal(there, o.new):
		return nil
	case inPlace && (bytes.HasPrefix(o.new, there) || o.overwritten(there)):
		if of := sizes(t, n); of != nil && of[o.ref] != int64(len(there)) {
			return fmt.Errorf("%s: %d bytes are there, and %d are listed", o.what, len(there), of[o.ref])
		}
		return nil
	}
	return fmt.Errorf("%s: %d bytes are there, which are neither the %d before nor the %d that were sent", o.what, len(there), len(o.before), len(o.new))
}
