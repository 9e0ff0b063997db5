package upload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
)

// Kinds and names of events that later sessions and reports look for.
const (
	eventData      = "data"
	whatSet        = "data set"
	eventResume    = "resume"
	whatReconciled = "reconciled"
	whatMissing    = "objects missing"
)

// restored summarizes the state that earlier sessions left.
type restored struct {
	recorded int   // objects with a record
	accepted int   // recorded as accepted
	doubt    int   // a put had begun, and its end is not recorded
	known    index // accepted objects by ref
}

// restore restores the state of the trial's earlier sessions from their records, and compares
// it with the system's list, because the two can differ.
//
//   - recorded as accepted, listed: done
//   - recorded as accepted, not listed or with another size: missing, put again
//   - not recorded as accepted, listed: inspected; done if whole, else removed and put
//   - else: put, or put again
//
// Without a list, objects recorded as accepted count as done. Objects in doubt are looked up by
// name or, where that is impossible, too, put again under the same name with the same bytes.
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
	what := fmt.Sprintf("%d objects accepted, %d in doubt", r.accepted, r.doubt)
	if _, lists := t.node.(system.Lister); lists {
		missing, err := t.reconcile(ctx, &r)
		if err != nil {
			return err
		}
		what = fmt.Sprintf("%d objects accepted, %d of them missing; %d in doubt; %d other listed objects will be checked",
			r.accepted, missing, r.doubt, len(t.listed))
	}
	t.enqueue()
	t.site.Say(fmt.Sprintf("%s: resumed: %s", t.site.Use.Name, what))
	return t.event(eventResume, whatReconciled, fmt.Sprintf("resumed: %s (took %.3g s)", what,
		time.Since(begun).Seconds()))
}

// sameData compares the data set with the one that the trial began with. A trial's first
// session records it.
func (t *trial) sameData() error {
	now := fmt.Sprintf("%d objects, fingerprint %s", t.set.Len(), t.set.Fingerprint())
	in := t.sink.Recorded()
	for e := range in.Events {
		if e.Kind == eventData && e.What == whatSet {
			if e.Detail == now {
				return nil
			}
			return ui.WithHint(fmt.Errorf("%s: %w: it was %s, and is %s", t.site.Use.Name, ErrDataChanged, e.Detail, now),
				"nothing is lost: put the data back as it was, times included, and resume again, or begin a new run")
		}
	}
	if err := in.Err(); err != nil {
		return err
	}
	return t.event(eventData, whatSet, now)
}

// ErrDataChanged means that a session cannot continue its trial.
var ErrDataChanged = errors.New("the data set has changed since the trial began")

// replay reads the records of earlier sessions.
func (t *trial) replay(r *restored) error {
	in := t.sink.Recorded()
	for j := range in.Jobs {
		i := int(j.Object)
		r.recorded++
		if j.Attempts > 0 {
			t.tally.begun(j.Began)
		}
		if isStored(j.State) || givenUp(j.State) {
			t.queue.set(i, j.State)
		}
		switch j.State {
		case record.JobFailed, record.JobRefused:
			continue
		case record.JobAccepted, record.JobDurable:
			r.accepted++
			r.known.add(j.Ref, i)
			t.last = max(t.last, j.Accepted)
			if j.State == record.JobDurable || t.settler() == nil {
				continue
			}
		case record.JobPutting:
			r.doubt++
		case record.JobUnreadable, record.JobMissing: // start anew; its data may be readable now
			j.Attempts, j.Ref = 0, ""
		}
		t.jobs[i] = &job{j, j.State == record.JobPutting || j.State == record.JobWaiting}
	}
	t.fetched = t.tally.read(in.Ops)
	return in.Err()
}

// givenUp reports whether an object gets no further put.
func givenUp(s record.JobState) bool { return s == record.JobFailed || s == record.JobRefused }

// enqueue queues the unfinished objects of earlier sessions before all new ones; those that
// wait for a retry follow when their pause is over.
func (t *trial) enqueue() {
	for i := range t.listed {
		t.job(i).doubt = true
	}
	for _, i := range t.unfinished(func(*job) bool { return true }) {
		j := t.jobs[i]
		if _, listed := t.listed[i]; j.State == record.JobWaiting && !listed {
			// The end of the attempt is not recorded, so count the pause from its start.
			t.queue.later(i, j.Began+backoff(t.u.Backoff.Std(), j.Attempts)-t.sink.Now())
			continue
		}
		if !isStored(t.queue.of(i)) {
			t.queue.set(i, record.JobWaiting)
		}
		t.queue.again(i)
	}
}

// reconcile compares the records with the system's list, and queues missing objects to be put
// again. It returns their number.
func (t *trial) reconcile(ctx context.Context, r *restored) (int, error) {
	step, cancel := context.WithTimeout(ctx, t.site.Limits.Deadline.Std()+time.Duration(t.set.Len())*time.Millisecond)
	defer cancel()
	seen, err := t.list(step, r.known)
	if err != nil {
		return 0, fmt.Errorf("%s: list what is stored, to compare it with what was recorded (nothing is lost: resume "+
			"again): %w", t.site.Use.Name, err)
	}
	for i, j := range t.jobs {
		_, there := t.listed[i]
		j.doubt = j.doubt && there
	}
	var missing []record.Job
	unlisted := 0
	in := t.sink.Recorded()
	for j := range in.Jobs {
		i := int(j.Object)
		_, listed := t.listed[i]
		switch {
		case listed && givenUp(j.State): // it may be whole nevertheless
			t.jobs[i] = &job{Job: j}
		case isStored(j.State) && !seen[i]:
			missing = append(missing, j)
			if !listed {
				unlisted++
			}
		}
	}
	if err = in.Err(); err == nil && 2*unlisted > r.accepted { // putting objects again costs money again
		err = fmt.Errorf("%s: %d of %d accepted objects are missing from its list; none was stored again. A system "+
			"that is still starting may list too few: check it and resume. If the objects are lost, start a new run",
			t.site.Use.Name, unlisted, r.accepted)
	}
	if err != nil || len(missing) == 0 {
		return 0, err
	}
	detail := fmt.Sprintf("%d of %d accepted objects are missing or incomplete and will be stored again; the first "+
		"is object %d, %s", len(missing), r.accepted, missing[0].Object, missing[0].Name)
	if err := t.event(eventResume, whatMissing, detail); err != nil {
		return 0, err
	}
	for i := range missing {
		j := &missing[i]
		t.jobs[int(j.Object)] = &job{Job: record.Job{Object: j.Object, Name: j.Name, Size: j.Size}}
		t.queue.set(int(j.Object), record.JobWaiting)
		delete(t.fetched, int(j.Object))
		j.State, j.Error = record.JobMissing, "it was accepted, but is now missing or incomplete"
	}
	return len(missing), t.sink.Jobs(missing...)
}

// list lists the objects of the system, and returns which stored objects are there with the
// right size. It keeps the other objects of the set in t.listed, to be inspected.
func (t *trial) list(ctx context.Context, known index) (seen []bool, err error) {
	namer, named := t.node.(system.Namer)
	for i := range t.set.Len() {
		known.add(t.name(i), i)
		if named { // a system may list a name that is too long for it as a hash
			known.add(string(namer.Named(t.name(i))), i)
		}
	}
	seen = make([]bool, t.set.Len())
	return seen, t.node.(system.Lister).List(ctx, func(o system.Object) error {
		// Several objects share a ref that is derived from content. A system may prefix names.
		found := known[string(o.Ref)]
		if at := strings.Index(o.Name, t.pre); len(found) == 0 && at >= 0 {
			found = known[o.Name[at:]]
		}
		for _, i := range found {
			switch whole := o.Size < 0 || o.Size == t.set.Object(i).Size; {
			case seen[i]:
			case whole && isStored(t.queue.of(i)):
				seen[i] = true
				delete(t.listed, i)
				scenario.Adopt(t.node, o) // stored by an earlier session: the node may count and remove it
			default:
				t.listed[i] = o
			}
		}
		return nil
	})
}

// index finds objects by their refs and names.
type index map[string][]int

func (x index) add(text string, object int) {
	if !slices.Contains(x[text], object) {
		x[text] = append(x[text], object)
	}
}
