package systemtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
)

// cutOff is one way in which a put ends in its middle: the source of an object,
// and when the call is cancelled by itself (0: the source decides).
type cutOff struct {
	name   string
	source func(whole []byte, cancel func()) io.Reader
	after  time.Duration
}

// arrive is a pause in a source: what was read before has reached the server then,
// and is not lost in buffers on the way.
const arrive = 100 * time.Millisecond

// cutOffs are the ways of a put that would take so long. The last is for systems
// that read all of the source before they send.
func cutOffs(took time.Duration) []cutOff {
	half := func(whole []byte, then func(), rest io.Reader) io.Reader {
		pause := &once{do: func() { time.Sleep(arrive); then() }}
		return io.MultiReader(bytes.NewReader(whole[:len(whole)/2]), pause, rest)
	}
	return []cutOff{
		{"broken", func(whole []byte, _ func()) io.Reader { return half(whole, func() {}, brokenReader{}) }, 0},
		{"cancelled", func(whole []byte, cancel func()) io.Reader {
			return half(whole, cancel, bytes.NewReader(whole[len(whole)/2:]))
		}, 0},
		{"cancelled-late", func(whole []byte, _ func()) io.Reader { return bytes.NewReader(whole) }, took * 3 / 4},
	}
}

// torn is an object that was stored, or overwritten, in part.
type torn struct {
	what        string
	ref         system.Ref                             // empty: not known
	before, new []byte                                 // before nil: there was nothing
	write       func(context.Context, io.Reader) error // stores new
	again       func(data []byte) system.Ref           // nil: not to be asked
}

// torn cuts puts and updates off in their middle. What is there then by that
// ref is what was there before, or all that was sent, whose acceptance was not
// heard: half an object looks like one. A server that writes under the object's
// own name leaves half; a system with such a server says so in its identity
// (system.PutsTear), which runs record. Of it, what is there is the beginning of
// what was sent, and as long as it says, or what was there with such a beginning, or
// nothing. In any case other objects are as they were, and the same put goes
// through afterwards.
func (k *objects) torn() {
	const size = 8 * mib
	from := time.Now()
	whole := k.put("torn", Bytes("torn", size))
	var all []torn
	known := map[system.Ref]bool{}
	for _, way := range cutOffs(time.Since(from)) {
		for _, o := range []torn{k.tornNew(way, size), k.tornOld(way, size), k.tornUpdate(way, size/4)} {
			if o.write == nil {
				continue
			}
			known[o.ref] = true
			before := listing(k.T, k.n)
			stored := k.tear(way, o)
			k.nothingNew(o, before, known)
			if stored && o.before == nil {
				o.again = nil // some systems refuse what is there
			}
			if o.ref != "" {
				all = append(all, o)
			}
		}
	}
	// At once, and when the server has seen that the client is gone.
	for _, later := range []time.Duration{0, 5 * arrive} {
		time.Sleep(later)
		for _, o := range all {
			err := k.tornContent(o)
			if k.c.Identity()["puts"] == system.PutsTear { // it may still write, between our read and our list
				for end := time.Now().Add(soon); err != nil && time.Now().Before(end); time.Sleep(arrive) {
					err = k.tornContent(o)
				}
			}
			if err != nil {
				k.Errorf("%s: %v", o.what, err)
			}
		}
	}
	k.want(whole, Bytes("torn", size))
	for _, o := range all {
		if o.again != nil {
			data := Bytes(o.what+" again", mib)
			k.want(o.again(data), data)
		}
	}
}

// nothingNew holds that a list has nothing new after an object was torn, but the whole of it; or a
// part where [Truths.CutOffStays].
func (k *objects) nothingNew(o torn, before map[system.Ref]system.Object, known map[system.Ref]bool) {
	k.Helper()
	_, named := k.n.(system.Namer)
	for ref, has := range listing(k.T, k.n) {
		if named && !strings.Contains(string(ref), "torn-") { // what an earlier case cut off may still arrive
			continue
		}
		if has.Size < 0 { // a list without sizes: all may have arrived before the end
			var got bytes.Buffer
			if err := k.n.Get(Context(k.T), ref, &got); err == nil && bytes.Equal(got.Bytes(), o.new) {
				continue
			}
		}
		part := k.Truths.CutOffStays && has.Size < int64(len(o.new))
		if _, there := before[ref]; !there && !known[ref] && !part && has.Size != int64(len(o.new)) {
			k.Errorf("%s: %s of %d bytes is listed after it", o.what, ref, has.Size)
		}
	}
}

// tear stores whole and is cut off, or is not when it was quicker than thought.
func (k *objects) tear(way cutOff, o torn) (stored bool) {
	k.Helper()
	ctx, cancel := context.WithCancel(Context(k.T))
	defer cancel()
	if way.after > 0 {
		defer time.AfterFunc(way.after, cancel).Stop()
	}
	within(k.T, o.what, func() { stored = o.write(ctx, way.source(o.new, cancel)) == nil })
	if stored && way.after == 0 {
		k.Errorf("%s: no error", o.what)
	}
	return stored
}

func (k *objects) putAs(name string, size int64) func(context.Context, io.Reader) error {
	return func(ctx context.Context, r io.Reader) error {
		_, err := k.n.Put(ctx, name, size, r)
		return err
	}
}

// tornNew stores under a name that is free. Where the ref follows from the name,
// nothing is to be found by it.
func (k *objects) tornNew(way cutOff, size int64) torn {
	k.Helper()
	name := "torn-new-" + way.name
	o := torn{what: "a new object, put " + way.name, new: Bytes(name, size), write: k.putAs(name, size)}
	o.again = func(data []byte) system.Ref { return k.put(name, data) }
	if namer, ok := k.n.(system.Namer); ok {
		o.ref = namer.Named(name)
	} else if d, ok := k.n.(system.Deleter); ok && !k.Truths.ContentAddressed {
		o.ref = k.put(name, Bytes(name, 1000))
		must(k.T, "delete", d.Delete(Context(k.T), o.ref))
	}
	return o
}

// tornOld stores under a name that has an object. A system may refuse that.
func (k *objects) tornOld(way cutOff, size int64) torn {
	k.Helper()
	name := "torn-old-" + way.name
	o := torn{what: "an object, replacement " + way.name, before: Bytes(name, 3*mib), new: Bytes(name+" new", size)}
	o.ref, o.write = k.put(name, o.before), k.putAs(name, size)
	return o
}

func (k *objects) tornUpdate(way cutOff, size int64) torn {
	k.Helper()
	u, ok := k.n.(system.Updater)
	if !ok {
		return torn{}
	}
	name := "torn-update-" + way.name
	o := torn{what: "an object, update " + way.name, before: Bytes(name, mib), new: Bytes(name+" new", size)}
	o.ref = store(k.putMutable).bytes(k.T, name, o.before)
	o.write = func(ctx context.Context, r io.Reader) error { return u.Update(ctx, o.ref, size, r) }
	o.again = func(data []byte) system.Ref {
		must(k.T, "update", u.Update(Context(k.T), o.ref, int64(len(data)), bytes.NewReader(data)))
		return o.ref
	}
	return o
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

// tornContent says what is wrong with what is there.
func (k *objects) tornContent(o torn) error {
	inPlace := k.c.Identity()["puts"] == system.PutsTear
	var got bytes.Buffer
	err := k.n.Get(Context(k.T), o.ref, &got)
	there := got.Bytes()
	switch {
	case errors.Is(err, system.ErrNotFound) && (o.before == nil || inPlace):
		return nil
	case err != nil:
		return err
	case o.before != nil && bytes.Equal(there, o.before), bytes.Equal(there, o.new):
		return nil
	case inPlace && (bytes.HasPrefix(o.new, there) || o.overwritten(there)):
		if of := listing(k.T, k.n); of != nil && of[o.ref].Size != int64(len(there)) {
			return fmt.Errorf("%d bytes are there, and %d are listed", len(there), of[o.ref].Size)
		}
		return nil
	}
	return fmt.Errorf("%d bytes are there, which are neither the %d before nor the %d that were sent", len(there),
		len(o.before), len(o.new))
}
