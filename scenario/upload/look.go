package upload

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
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
)

// find asks the system for an object by name.
func (t *trial) find(ctx context.Context, object int) (finding, system.Object) {
	n, named := t.node.(system.Namer)
	s, stats := t.node.(system.Stater)
	if !named || !stats {
		return unknown, system.Object{}
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

// lookTime bounds one question about an object.
func (t *trial) lookTime() time.Duration {
	return min(t.site.Limits.Deadline.Std(), scenario.RemoveOneTimeout)
}

// Objects up to compareWhole are fetched and compared to find out whether they
// are whole; of larger ones, the ends are, compareEnd bytes each, where the
// system serves ranges.
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
	case size <= compareWhole:
		return findingOf(t.fetch(w, object, o.Ref))
	case ranges:
		if first := findingOf(t.sameRange(w, r, object, o.Ref, 0)); first != whole {
			return first
		}
		return findingOf(t.sameRange(w, r, object, o.Ref, size-compareEnd))
	case o.Size >= 0:
		return whole
	}
	return unknown
}

// findingOf derives the finding from the error of a comparison. That there are too few
// servers to rebuild it from is the system's own word that it is not whole.
func findingOf(err error) finding {
	switch {
	case err == nil:
		return whole
	case errors.Is(err, scenario.ErrWrongBytes), errors.Is(err, errTooShort), errors.Is(err, system.ErrTooFew):
		return broken
	case errors.Is(err, system.ErrNotFound):
		return absent
	}
	return unknown
}

func (t *trial) sameRange(w *scenario.Operation, r system.Ranger, object int, ref system.Ref, off int64) error {
	from, err := t.set.Open(object)
	if err != nil {
		return &unreadableError{err}
	}
	defer from.Close()
	want := make([]byte, compareEnd)
	if _, err := from.Seek(off, io.SeekStart); err != nil {
		return &unreadableError{err}
	}
	if _, err := io.ReadFull(from, want); err != nil {
		return &unreadableError{err}
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

// hash is the SHA-256 of an object's content.
func (t *trial) hash(object int) (string, error) {
	from, err := openSource(t.set, object)
	if err != nil {
		return "", err
	}
	defer from.close()
	if _, err := io.Copy(io.Discard, from); err != nil {
		return "", err
	}
	return hex.EncodeToString(from.hash.Sum(nil)), nil
}

// look finds out what an attempt that seemed to fail has left. What is there and
// whole is not put again: done says so. What is not whole goes.
func (t *trial) look(ctx context.Context, worker, object int) (done bool, err error) {
	found, o := t.find(ctx, object)
	if ctx.Err() != nil {
		t.queue.back(object, objectUnder)
		return true, nil
	}
	switch found {
	case whole:
		job := t.adopt(object, o)
		return true, t.accepted(ctx, worker, object, job, o.Ref, job.Accepted)
	case broken:
		t.removeBroken(ctx, o)
		t.doubts(object, false)
	case absent:
		t.doubts(object, false)
	}
	return false, nil
}

// adopt makes a found object one of ours: its job, as if a put had succeeded now.
func (t *trial) adopt(object int, o system.Object) *record.Job {
	job := t.job(object)
	if job.Attempts == 0 { // the record of it was lost with the power
		job.Attempts = 1
	}
	job.Adopted, job.SHA256 = true, ""
	if sum, err := t.hash(object); err == nil {
		job.SHA256 = sum
	}
	t.runner.adopt(o)
	job.State, job.Ref, job.Accepted, job.Error = record.JobAccepted, string(o.Ref), t.sink.Now(), ""
	if job.Began == 0 {
		job.Began = job.Accepted
	}
	return job
}

// takeBack adopts an object that was given up, or never known to be accepted, and
// is not under way.
func (t *trial) takeBack(object int, o system.Object) error {
	t.regain(object)
	job := t.adopt(object, o)
	if err := t.write(*job); err != nil {
		return err
	}
	t.keepRef(object, job)
	t.countAccepted(job)
	if t.settler() == nil {
		t.forget(object)
	} else {
		t.doubts(object, false)
	}
	return nil
}

// removeBroken removes what is not whole.
func (t *trial) removeBroken(ctx context.Context, o system.Object) {
	if err := t.remove(ctx, o); err != nil {
		t.site.Event("note", "object not removed", fmt.Sprintf("%s: %s is not whole, and stays until it is put again: %v", t.site.Use.Name, o.Ref, err), 0)
	}
}

// discard removes what an attempt has left that we cut off for our own reasons.
func (t *trial) discard(ctx context.Context, name string, ref system.Ref) {
	if n, ok := t.node.(system.Namer); ok && ref == "" {
		ref = n.Named(name)
	}
	if ref != "" {
		// That it fails, or nothing was there, changes nothing: it is not counted as stored.
		_ = t.remove(context.WithoutCancel(ctx), system.Object{Ref: ref, Size: -1})
	}
}

// resolve looks at each object that is in doubt at the end: those that were
// given up, and those that an exit condition cut off. What is there is adopted
// or removed; where this cannot be decided, the object stays in doubt in the journal.
func (t *trial) resolve(ctx context.Context) error {
	t.mu.Lock()
	var doubted []int
	for object := range t.doubt {
		doubted = append(doubted, object)
	}
	t.mu.Unlock()
	slices.Sort(doubted)
	if len(doubted) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	ask, err := t.asker(ctx)
	if err != nil {
		t.site.Event("note", "in doubt", fmt.Sprintf("%s: list what is stored: %v", t.site.Use.Name, err), 0)
	}
	var adopted, removed, absentNow, open int
	for _, object := range doubted {
		found, o := ask(object)
		switch found {
		case whole:
			adopted++
			if err := t.takeBack(object, o); err != nil {
				return err
			}
			t.queue.set(object, objectAccepted)
			if t.settler() != nil {
				t.mu.Lock()
				t.late = append(t.late, object)
				t.mu.Unlock()
			}
		case broken:
			if err := t.remove(ctx, o); err != nil {
				open++
				continue
			}
			removed++
			t.doubts(object, false)
		case absent:
			absentNow++
			t.doubts(object, false)
		default:
			open++
		}
	}
	what := fmt.Sprintf("%d attempts cut off or failed: %d had stored their object, %d a part of it that was removed, %d nothing", len(doubted), adopted, removed, absentNow)
	if open > 0 {
		what += fmt.Sprintf("; for %d this is not known", open)
		t.note(fmt.Sprintf("of %d objects that failed or were cut off it is not known whether the system has them", open))
	}
	return t.event("note", "in doubt", what)
}

// asker finds objects by name, or from one list of all where the system cannot be
// asked by name.
func (t *trial) asker(ctx context.Context) (func(object int) (finding, system.Object), error) {
	byName := func(object int) (finding, system.Object) { return t.find(ctx, object) }
	_, named := t.node.(system.Namer)
	_, stats := t.node.(system.Stater)
	if named && stats || !t.lists() {
		return byName, nil
	}
	listed := map[int]system.Object{}
	index := t.index(newHashes())
	err := t.walk(ctx, func(o system.Object) error {
		for _, object := range index.find(o) {
			if t.inDoubt(object) {
				listed[object] = o
			}
		}
		return nil
	})
	if err != nil {
		return byName, err
	}
	return func(object int) (finding, system.Object) {
		o, there := listed[object]
		if !there {
			return absent, o
		}
		return t.inspect(ctx, object, o), o
	}, nil
}

// resolveTimeout bounds the questions about what is in doubt at the end.
const resolveTimeout = time.Minute
