package upload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
)

// finding is what is known of an object whose put may or may not have succeeded.
type finding int

const (
	unknown finding = iota // the system cannot be asked, or does not answer
	absent
	broken // there, and not as it should be
	whole
	findings
)

// find asks the system for an object: a list that was read since says it, or its name.
func (t *trial) find(ctx context.Context, object int) (finding, system.Object) {
	t.mu.Lock()
	o, listed := t.listed[object]
	delete(t.listed, object)
	t.mu.Unlock()
	if listed {
		return t.inspect(ctx, object, o), o
	}
	n, s, ok := t.byName()
	if !ok {
		return unknown, o
	}
	ref := n.Named(t.name(object))
	step, cancel := context.WithTimeout(ctx, t.lookTime())
	defer cancel()
	o, err := s.Stat(step, ref)
	switch {
	case errors.Is(err, system.ErrNotFound):
		return absent, o
	case err != nil:
		return unknown, o
	}
	o.Ref = ref
	return t.inspect(ctx, object, o), o
}

// byName is the node, when it can be asked for an object by its name.
func (t *trial) byName() (system.Namer, system.Stater, bool) {
	n, named := t.node.(system.Namer)
	s, stats := t.node.(system.Stater)
	return n, s, named && stats
}

// lookTime bounds one question about an object.
func (t *trial) lookTime() time.Duration {
	return min(t.site.Limits.Deadline.Std(), scenario.RemoveOneTimeout)
}

// Objects up to compareWhole are fetched and compared to find out whether they are whole.
// Of larger ones the ends are, compareEnd bytes each, where the system serves ranges; else
// their size is believed. There may be little time, and what is not known is put again.
const (
	compareWhole = 1 << 20
	compareEnd   = 64 << 10
)

// inspect finds out whether a stored object is the set's: by its size, then by
// the hash that the system reports, or by bytes. It is broken only when that is
// proven: what is not answered, or cannot be compared, is not known.
func (t *trial) inspect(ctx context.Context, object int, o system.Object) finding {
	size := t.set.Object(object).Size
	if o.Size >= 0 && o.Size != size {
		return broken
	}
	if o.SHA256 != "" {
		switch sum, err := t.hash(object); {
		case err != nil:
			return unknown
		case sum != o.SHA256:
			return broken
		}
		return whole
	}
	w := scenario.Watch(ctx, t.site.Limits)
	defer w.Stop()
	r, ranges := t.node.(system.Ranger)
	switch {
	case size > compareWhole && ranges:
		if first := findingOf(t.sameRange(w, r, object, o.Ref, 0)); first != whole {
			return first
		}
		return findingOf(t.sameRange(w, r, object, o.Ref, size-compareEnd))
	case size > compareWhole && o.Size >= 0:
		return whole
	}
	check, err := t.set.Check(object)
	if err != nil {
		return unknown
	}
	return findingOf(t.fetch(w, object, o.Ref, check))
}

// findingOf derives the finding from the error of a comparison. That there are too few
// servers to rebuild it from is the system's own word that it is not whole.
func findingOf(err error) finding {
	switch {
	case err == nil:
		return whole
	case errors.Is(err, scenario.ErrWrongBytes), errors.Is(err, scenario.ErrTooShort), errors.Is(err, system.ErrTooFew):
		return broken
	case errors.Is(err, system.ErrNotFound):
		return absent
	}
	return unknown
}

// sameRange compares compareEnd bytes of an object with the set's.
func (t *trial) sameRange(w *scenario.Operation, r system.Ranger, object int, ref system.Ref, off int64) error {
	from, err := t.set.Open(object)
	if err != nil {
		return err
	}
	defer from.Close()
	want := make([]byte, compareEnd)
	if _, err = from.Seek(off, io.SeekStart); err == nil {
		_, err = io.ReadFull(from, want)
	}
	if err != nil {
		return err
	}
	var got bytes.Buffer
	w.Moved(0, false)
	if err := r.GetRange(w.Ctx, ref, off, compareEnd, &got); err != nil {
		return err
	}
	if !bytes.Equal(got.Bytes(), want) {
		return scenario.ErrWrongBytes
	}
	return nil
}

// hash is the SHA-256 of an object's content, in hex.
func (t *trial) hash(object int) (string, error) {
	from, err := openSource(t.set, object)
	if err != nil {
		return "", err
	}
	defer from.close()
	if _, err := io.Copy(io.Discard, from); err != nil {
		return "", err
	}
	return from.sum(), nil
}

// look finds out what an attempt that seemed to fail has left. What is there and
// whole is accepted now; what is not whole goes.
func (t *trial) look(ctx context.Context, object int) (finding, error) {
	found, o := t.find(ctx, object)
	switch found {
	case whole:
		return whole, t.adopt(object, o)
	case broken:
		if !t.removeBroken(ctx, o) {
			return unknown, nil
		}
		t.doubts(object, false)
	case absent:
		t.doubts(object, false)
	}
	return found, nil
}

// adopt makes a found object one of ours, as if a put had succeeded now.
func (t *trial) adopt(object int, o system.Object) error {
	job, now := t.job(object), t.sink.Now()
	job.Attempts = max(1, job.Attempts) // the record of it was lost with the power
	job.Adopted, job.SHA256 = true, ""
	if sum, err := t.hash(object); err == nil {
		job.SHA256 = sum
	}
	t.runner.adopt(o)
	if job.Began == 0 {
		job.Began = now
	}
	return t.accept(object, job, o.Ref, now)
}

// removeBroken removes what is not whole, and reports whether it is gone.
func (t *trial) removeBroken(ctx context.Context, o system.Object) bool {
	err := scenario.Remove(ctx, t.node, o)
	if err != nil {
		t.site.Event("note", "object not removed",
			fmt.Sprintf("%s: %s is not whole, and stays until it is put again: %v",
				t.site.Use.Name, o.Ref, err), 0)
	}
	return err == nil
}

// discard removes what an attempt has left that we cut off for our own reasons.
func (t *trial) discard(ctx context.Context, name string, ref system.Ref) {
	if n, ok := t.node.(system.Namer); ok && ref == "" {
		ref = n.Named(name)
	}
	if ref != "" {
		// That it fails, or nothing was there, changes nothing: it is not counted as stored.
		_ = scenario.Remove(context.WithoutCancel(ctx), t.node, system.Object{Ref: ref, Size: -1})
	}
}

// resolve looks at each object that is in doubt at the end: those that were
// given up, and those that an exit condition cut off. What is there is adopted
// or removed; where this cannot be decided, the object stays in doubt in the journal.
func (t *trial) resolve(ctx context.Context) error {
	doubted := t.doubted()
	if len(doubted) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	if _, _, named := t.byName(); !named && t.lists() {
		if _, err := t.list(ctx, newIndex()); err != nil {
			t.site.Event("note", "in doubt", fmt.Sprintf("%s: list what is stored: %v", t.site.Use.Name, err), 0)
		} else {
			t.clearUnlisted()
		}
	}
	var n [findings]int
	for _, object := range doubted {
		found := absent
		if t.inDoubt(object) { // else it is not in the list
			var err error
			if found, err = t.look(ctx, object); err != nil {
				return err
			}
		}
		n[found]++
	}
	if err := t.write(); err != nil {
		return err
	}
	what := fmt.Sprintf("%d attempts cut off or failed: %d had stored their object, %d a part of it that was removed, "+
		"%d nothing", len(doubted), n[whole], n[broken], n[absent])
	if open := n[unknown]; open > 0 {
		what += fmt.Sprintf("; for %d this is not known", open)
		t.note(fmt.Sprintf("of %d objects that failed or were cut off it is not known whether the system has them",
			open))
	}
	return t.event("note", "in doubt", what)
}

// doubted are the objects in doubt, in the set's order.
func (t *trial) doubted() (all []int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for object, j := range t.jobs {
		if j.doubt {
			all = append(all, object)
		}
	}
	slices.Sort(all)
	return all
}

// clearUnlisted ends the doubt about objects that a complete list does not have.
func (t *trial) clearUnlisted() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for object, j := range t.jobs {
		if _, there := t.listed[object]; !there {
			j.doubt = false
		}
	}
}

// resolveTimeout bounds the questions about what is in doubt at the end.
const resolveTimeout = time.Minute
