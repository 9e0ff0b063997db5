package systemtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing/iotest"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
)

// arrive is a pause in a source: what was read before has reached the server then,
// and is not lost in buffers on the way.
const arrive = 100 * time.Millisecond

// torn is an object that was stored, or overwritten, in part.
type torn struct {
	what, name  string
	ref         system.Ref // empty: not known
	before, new []byte     // before nil: there was nothing
	by          put        // stores new
	again       bool       // whether the same is to be done once more
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
	from := time.Now()
	whole := k.put("torn", tornSize)
	took := time.Since(from)
	var all []torn
	known := map[system.Ref]bool{}
	// The last is for systems that read all of the source before they send.
	for _, way := range []string{"broken", "cancelled", "cancelled-late"} {
		for _, o := range k.tearable(way) {
			known[o.ref] = true
			before := k.listing(k.n)
			k.tear(way, took, o)
			k.nothingNew(o, before, known)
			if o.ref != "" {
				all = append(all, o)
			}
		}
	}
	// At once, and when the server has seen that the client is gone.
	for _, later := range []time.Duration{0, 5 * arrive} {
		time.Sleep(later)
		for _, o := range all {
			var limit time.Duration
			if k.inPlace() { // it may still write, between our read and our list
				limit = soon
			}
			var err error
			if !await(limit, arrive, func() bool {
				err = k.tornContent(o)
				return err == nil
			}) {
				k.Errorf("%s: %v", o.what, err)
			}
		}
	}
	k.want(whole)
	for _, o := range all {
		var there bytes.Buffer
		_ = k.n.Get(k.ctx(), o.ref, &there)
		if o.again && (o.before != nil || !bytes.Equal(there.Bytes(), o.new)) { // some systems refuse what is there
			k.want(k.store(o.by, o.name, Bytes(o.what+" again", mib)))
		}
	}
}

// nothingNew holds that a list has nothing new after an object was torn, but the whole of it; or a
// part where [Truths.CutOffStays].
func (k *objects) nothingNew(o torn, before map[system.Ref]system.Object, known map[system.Ref]bool) {
	_, named := k.n.(system.Namer)
	for ref, has := range k.listing(k.n) {
		if named && !strings.Contains(string(ref), "torn-") { // what an earlier case cut off may still arrive
			continue
		}
		if has.Size < 0 { // a list without sizes: all may have arrived before the end
			var got bytes.Buffer
			if err := k.n.Get(k.ctx(), ref, &got); err == nil && bytes.Equal(got.Bytes(), o.new) {
				continue
			}
		}
		part := k.Truths.CutOffStays && has.Size < int64(len(o.new))
		if _, there := before[ref]; !there && !known[ref] && !part && has.Size != int64(len(o.new)) {
			k.Errorf("%s: %s of %d bytes is listed after it", o.what, ref, has.Size)
		}
	}
}

// tear stores a new object, which would take so long, and is cut off in the middle: its source breaks, or the call
// is cancelled, either when half of the source was read or by the clock. That may be too late.
func (k *objects) tear(way string, took time.Duration, o torn) {
	ctx, cancel := context.WithCancel(k.ctx())
	defer cancel()
	cancelled, late := way == "cancelled", way == "cancelled-late"
	half := len(o.new) / 2
	rest := iotest.ErrReader(errReader)
	if cancelled {
		rest = bytes.NewReader(o.new[half:])
	}
	source := io.MultiReader(bytes.NewReader(o.new[:half]), &hook{do: func() {
		time.Sleep(arrive)
		if cancelled {
			cancel()
		}
	}}, rest)
	if late {
		source = bytes.NewReader(o.new)
		defer time.AfterFunc(took*3/4, cancel).Stop()
	}
	defer k.soon(o.what)()
	if _, err := o.by(ctx, o.name, int64(len(o.new)), source); err == nil && !late {
		k.Errorf("%s: no error", o.what)
	}
}

const tornSize = 8 * mib

// tearable are objects to be torn: one under a name that is free, one under a name that has an object,
// which a system may refuse, and an update.
func (k *objects) tearable(way string) []torn {
	fresh, old, mutable := "torn-new-"+way, "torn-old-"+way, "torn-update-"+way
	all := []torn{
		{what: "a new object, put " + way, name: fresh, new: Bytes(fresh, tornSize), by: k.n.Put, again: true},
		{what: "an object, replacement " + way, name: old, new: Bytes(old+" new", tornSize), by: k.n.Put},
	}
	// Where the ref follows from the name, nothing is to be found by it.
	if namer, ok := k.n.(system.Namer); ok {
		all[0].ref = namer.Named(fresh)
	} else if d, ok := k.n.(system.Deleter); ok && !k.Truths.ContentAddressed {
		all[0].ref = k.put(fresh, 1000).ref
		k.must("delete", d.Delete(k.ctx(), all[0].ref))
	}
	replaced := k.put(old, 3*mib)
	all[1].ref, all[1].before = replaced.ref, replaced.data
	if u, ok := k.n.(system.Updater); ok {
		o := k.store(k.putMutable, mutable, Bytes(mutable, mib))
		update := func(ctx context.Context, _ string, size int64, r io.Reader) (system.Ref, error) {
			return o.ref, u.Update(ctx, o.ref, size, r)
		}
		all = append(all, torn{what: "an object, update " + way, name: mutable, ref: o.ref, before: o.data,
			new: Bytes(mutable+" new", tornSize/4), by: update, again: true})
	}
	return all
}

// inPlace says whether the server writes under the object's own name.
func (k *objects) inPlace() bool { return k.c.Identity()["puts"] == system.PutsTear }

// tornContent says what is wrong with what is there.
func (k *objects) tornContent(o torn) error {
	inPlace := k.inPlace()
	var got bytes.Buffer
	err := k.n.Get(k.ctx(), o.ref, &got)
	there := got.Bytes()
	begun := 0 // bytes of what was sent; some servers do not make a file empty first
	for begun < min(len(there), len(o.new)) && there[begun] == o.new[begun] {
		begun++
	}
	switch {
	case errors.Is(err, system.ErrNotFound) && (o.before == nil || inPlace):
		return nil
	case err != nil:
		return err
	case o.before != nil && bytes.Equal(there, o.before), bytes.Equal(there, o.new):
		return nil
	case inPlace && (begun == len(there) || bytes.Equal(there[begun:], o.before[min(begun, len(o.before)):])):
		if of := k.listing(k.n); of != nil && of[o.ref].Size != int64(len(there)) {
			return fmt.Errorf("%d bytes are there, and %d are listed", len(there), of[o.ref].Size)
		}
		return nil
	}
	return fmt.Errorf("%d bytes are there, which are neither the %d before nor the %d that were sent", len(there),
		len(o.before), len(o.new))
}
