package upload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
)

// What an event of a trial is found again by.
const (
	eventData      = "data"
	whatSet        = "data set"
	eventResume    = "resume"
	whatReconciled = "reconciled"
	whatMissing    = "objects missing"
)

// restored is what earlier sessions have left.
type restored struct {
	recorded int   // objects that something was recorded of
	accepted int   // of them
	doubt    int   // a put had begun, and nothing says how it ended
	known    index // by the refs of accepted objects
}

// restore brings the trial to where its earlier sessions have left it: to what they
// recorded, compared with what the system lists, because the two can differ.
//
//   - recorded as accepted, listed: done
//   - recorded as accepted, not listed, or with another size: missing, put again
//   - not recorded as accepted, listed: looked at; done if whole, else removed and put
//   - else: put, or put again
//
// A system that does not list is believed what was accepted; of what is in doubt
// it is asked by name, and where it cannot be asked either, that is put again: the
// names are the same, and so are the bytes.
func (t *trial) restore(ctx context.Context) error {
	r := restored{known: index{}}
	err := cmp.Or(t.polls.restore(), t.sameData())
	if err == nil {
		err = t.replay(&r)
	}
	if err != nil || r.recorded == 0 {
		return err
	}
	begun := time.Now()
	what := fmt.Sprintf("%d accepted, %d in doubt", r.accepted, r.doubt)
	if _, lists := t.node.(system.Lister); lists {
		missing, err := t.reconcile(ctx, &r)
		if err != nil {
			return err
		}
		what += fmt.Sprintf("; %d more are listed, and are looked at; %d missing", len(t.listed), missing)
	}
	t.enqueue()
	t.site.Say(fmt.Sprintf("%s: resumed: %s", t.site.Use.Name, what))
	return t.event(eventResume, whatReconciled, fmt.Sprintf("resumed: %s (it took %.3g s)", what,
		time.Since(begun).Seconds()))
}

// sameData holds the data set against the one that the trial began with.
func (t *trial) sameData() error {
	now := fmt.Sprintf("%d objects, fingerprint %s", t.set.Len(), t.set.Fingerprint())
	in := t.sink.Recorded()
	for e := range in.Events {
		if e.Kind == eventData && e.What == whatSet {
			if e.Detail != now {
				return t.dataChanged(fmt.Sprintf("it was %s, and is %s", e.Detail, now))
			}
			return nil
		}
	}
	if err := in.Err(); err != nil {
		return err
	}
	return t.event(eventData, whatSet, now)
}

func (t *trial) dataChanged(how string) error {
	hint := "nothing is lost: put the data back as it was, times included, and resume again, or begin a new run"
	if dir := t.cell.Data.Directory; dir != "" {
		hint += fmt.Sprintf("; what was written since the run began: find %s -newer RUN/plan.json", dir)
	}
	return ui.WithHint(fmt.Errorf("%s: %w: %s", t.site.Use.Name, ErrDataChanged, how), hint)
}

// ErrDataChanged is of a session that cannot go on.
var ErrDataChanged = errors.New("the data set has changed since the trial began")

// eachJob calls do for each object that something is recorded of.
func (t *trial) eachJob(do func(object int, job *record.Job) error) error {
	in := t.sink.Recorded()
	for job := range in.Jobs {
		if err := do(int(job.Object), &job); err != nil {
			return err
		}
	}
	return in.Err()
}

// replay reads what earlier sessions have recorded.
func (t *trial) replay(r *restored) error {
	err := t.eachJob(func(i int, job *record.Job) error {
		if i < 0 || i >= t.set.Len() || job.Name != t.name(i) || job.Size != t.set.Object(i).Size {
			return t.dataChanged(fmt.Sprintf("object %d, %s, is another", i, job.Name))
		}
		t.replayJob(r, i, job)
		return nil
	})
	if err != nil {
		return err
	}
	in := t.sink.Recorded()
	t.fetched = t.tally.read(in.Ops)
	return in.Err()
}

// givenUp reports whether no further put follows.
func givenUp(s record.JobState) bool { return s == record.JobFailed || s == record.JobRefused }

func (t *trial) replayJob(r *restored, i int, j *record.Job) {
	r.recorded++
	if j.Attempts > 0 {
		t.tally.begun(j.Began)
	}
	if isStored(j.State) || givenUp(j.State) {
		t.queue.set(i, j.State)
	}
	switch j.State {
	case record.JobFailed, record.JobRefused:
		return
	case record.JobAccepted, record.JobDurable:
		r.accepted++
		r.known.add(j.Ref, i)
		t.last = max(t.last, j.Accepted)
		if j.State == record.JobDurable || t.settler() == nil {
			return
		}
	case record.JobPutting:
		r.doubt++
	case record.JobUnreadable, record.JobMissing: // perhaps it can be read now
		j.Attempts, j.Ref, j.SHA256 = 0, "", ""
	}
	t.jobs[i] = &job{*j, j.State == record.JobPutting || j.State == record.JobWaiting}
}

// enqueue gives out what is left of earlier sessions. What may be there already, and
// what was cut off, comes first.
func (t *trial) enqueue() {
	for i := range t.listed {
		t.job(i).doubt = true
	}
	for _, i := range t.those(func(*job) bool { return true }) {
		j := t.jobs[i]
		_, listed := t.listed[i]
		switch {
		case isStored(t.queue.of(i)):
			t.queue.again(i)
		case j.State == record.JobWaiting && !listed:
			// When the attempt ended is not recorded; it took part of the pause
			// at most. So retries are as far apart as if the session had not ended.
			t.queue.later(i, j.Began+backoff(t.u.Backoff.Std(), j.Attempts))
		default:
			t.queue.later(i, 0)
		}
	}
}

// reconcile compares what was recorded with what is there, has what is missing put
// again, and says how many objects that is.
func (t *trial) reconcile(ctx context.Context, r *restored) (int, error) {
	step, cancel := context.WithTimeout(ctx, t.site.Limits.Deadline.Std()+time.Duration(t.set.Len())*time.Millisecond)
	defer cancel()
	seen, err := t.list(step, r.known)
	if err != nil {
		return 0, fmt.Errorf("%s: list what is stored, to compare it with what was recorded (nothing is lost: resume "+
			"again): %w", t.site.Use.Name, err)
	}
	t.clearUnlisted()
	var missing []record.Job
	var unlisted []system.Ref
	err = t.eachJob(func(i int, j *record.Job) error {
		_, listed := t.listed[i]
		switch {
		case listed && givenUp(j.State): // it may be whole all the same
			t.jobs[i] = &job{Job: *j}
		case isStored(j.State) && !seen[i]:
			missing = append(missing, *j)
			if !listed {
				unlisted = append(unlisted, system.Ref(j.Ref))
			}
		}
		return nil
	})
	if err == nil {
		err = t.confirm(ctx, unlisted, r.accepted)
	}
	if err != nil || len(missing) == 0 {
		return 0, err
	}
	detail := fmt.Sprintf("%d of %d accepted objects are not there, or not whole, and are put again; the first: "+
		"object %d, %s", len(missing), r.accepted, missing[0].Object, missing[0].Name)
	if err := t.event(eventResume, whatMissing, detail); err != nil {
		return 0, err
	}
	for i := range missing {
		j := &missing[i]
		t.jobs[int(j.Object)] = &job{Job: record.Job{Object: j.Object, Name: j.Name, Size: j.Size}}
		t.queue.set(int(j.Object), record.JobWaiting)
		delete(t.fetched, int(j.Object))
		j.State, j.Error = record.JobMissing, "it was accepted, and is not there, or not whole, any more"
	}
	for batch := range slices.Chunk(missing, 1000) {
		if err := t.sink.Jobs(batch...); err != nil {
			return 0, err
		}
	}
	return len(missing), nil
}

// leastUnlisted is from how many accepted objects on, if they are most of all, a list
// without them is not believed. Fewer are asked for one by one.
const leastUnlisted = 5

// confirm holds a list without most accepted objects against the objects themselves: the
// system may not be ready yet, and to put them again is to pay for them again.
func (t *trial) confirm(ctx context.Context, unlisted []system.Ref, accepted int) error {
	if 2*len(unlisted) <= accepted {
		return nil
	}
	stater, _ := t.node.(system.Stater)
	gone := func(ref system.Ref) bool {
		ctx, cancel := context.WithTimeout(ctx, min(t.site.Limits.Deadline.Std(), scenario.RemoveOneTimeout))
		defer cancel()
		_, err := stater.Stat(ctx, ref)
		return errors.Is(err, system.ErrNotFound)
	}
	for i, ref := range unlisted {
		if stater == nil || i+1 == leastUnlisted || !gone(ref) {
			return fmt.Errorf("%s: %d of %d accepted objects are not in its list, and nothing was put again: a system "+
				"that is not ready yet may list too little; see that it is well, and resume again; if it has lost "+
				"them, begin a new run", t.site.Use.Name, len(unlisted), accepted)
		}
	}
	return nil
}

// list reads all that the system has, and returns which accepted objects are among it, of
// the right size. What it has of the others is kept, to be looked at.
func (t *trial) list(ctx context.Context, known index) (seen []bool, err error) {
	namer, named := t.node.(system.Namer)
	for i := range t.set.Len() {
		known.add(t.name(i), i)
		if named { // a name that is too long for the system is listed as its hash
			known.add(string(namer.Named(t.name(i))), i)
		}
	}
	seen = make([]bool, t.set.Len())
	return seen, t.node.(system.Lister).List(ctx, func(o system.Object) error {
		for _, found := range t.objectsOf(o, known) {
			i := int(found)
			switch whole := o.Size < 0 || o.Size == t.set.Object(i).Size; {
			case seen[i]:
			case whole && isStored(t.queue.of(i)):
				seen[i] = true
				delete(t.listed, i)
				scenario.Adopt(t.node, o) // an earlier session's is ours: it counts, and may be removed
			default:
				t.listed[i] = o
			}
		}
		return nil
	})
}

// objectsOf are the objects of the set that a listed one is: by its ref (more than one
// where refs come from content, and some have the same), or by its name, before which a
// system may put a mark of its own.
func (t *trial) objectsOf(o system.Object, known index) []int32 {
	if found := known[hashOf(string(o.Ref))]; len(found) > 0 {
		return found
	}
	if at := strings.Index(o.Name, t.pre); at >= 0 {
		return known[hashOf(o.Name[at:])]
	}
	return nil
}

// index finds objects by their refs and names, of which it keeps 64 bits: there may be millions.
type index map[uint64][]int32

func (x index) add(text string, object int) {
	if hash := hashOf(text); !slices.Contains(x[hash], int32(object)) {
		x[hash] = append(x[hash], int32(object))
	}
}

var hashSeed = maphash.MakeSeed()

func hashOf(text string) uint64 { return maphash.String(hashSeed, text) }
