package upload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

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
	recorded int     // objects that something was recorded of
	accepted int     // of them
	doubt    int     // a put had begun, and nothing says how it ended
	refs     *hashes // of accepted objects
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
	r := restored{refs: newHashes()}
	err := t.polls.restore()
	if err == nil {
		err = t.replay(&r)
	}
	if err == nil {
		err = t.sameData(r.recorded > 0)
	}
	if err != nil || r.recorded == 0 {
		return err
	}
	begun := time.Now()
	what := fmt.Sprintf("%d accepted, taken as recorded because the system does not list what it has; %d in doubt, to be put again where they are not found by name", r.accepted, r.doubt)
	if t.lists() {
		missing, err := t.reconcile(ctx, &r)
		if err != nil {
			return err
		}
		what = fmt.Sprintf("%d accepted, %d in doubt; %d more are listed, and are looked at; %d missing", r.accepted, r.doubt, len(t.listed), missing)
	}
	t.enqueue()
	t.site.Say(fmt.Sprintf("%s: resumed: %s", t.site.Use.Name, what))
	return t.event(eventResume, whatReconciled, fmt.Sprintf("resumed: %s (it took %.3g s)", what, time.Since(begun).Seconds()))
}

func (t *trial) errorf(what string, err error) error {
	return fmt.Errorf("%s: %s: %w", t.site.Use.Name, what, err)
}

// sameData holds the data set against the one that the trial began with.
func (t *trial) sameData(begun bool) error {
	now := fmt.Sprintf("%d objects, fingerprint %s", t.set.Len(), t.set.Fingerprint())
	in := t.sink.Journal.Recorded()
	for e := range scenario.Stream(in.Events) {
		if e.Kind == eventData && e.What == whatSet {
			if e.Detail != now {
				return t.dataChanged(fmt.Sprintf("it was %s, and is %s", e.Detail, now))
			}
			begun = true
		}
	}
	if err := in.Err(); err != nil || begun {
		return err
	}
	if err := t.keepManifest(); err != nil {
		return t.errorf("keep what the data set consists of", err)
	}
	return t.event(eventData, whatSet, now)
}

func (t *trial) dataChanged(how string) error {
	files, hint := t.changedFiles()
	if files != "" {
		how = files // the fingerprints say nothing more
	}
	if hint == "" {
		hint = "nothing is lost: put the data back as it was, times included, and resume again, or begin a new run"
	}
	return &DataChangedError{System: t.site.Use.Name, How: how, hint: hint}
}

// eachJob calls do for each object that something is recorded of.
func (t *trial) eachJob(do func(object int, job *record.Job) error) error {
	in := t.sink.Journal.Recorded()
	for job := range scenario.Stream(in.Jobs) {
		if err := do(int(job.Object), &job); err != nil {
			return err
		}
	}
	return in.Err()
}

// replay reads what earlier sessions have recorded.
func (t *trial) replay(r *restored) error {
	err := t.eachJob(func(i int, job *record.Job) error {
		if i < 0 || i >= t.set.Len() {
			return t.dataChanged(fmt.Sprintf("object %d (%s) is not in it any more", job.Object, job.Name))
		}
		if o := t.set.Object(i); job.Name != t.pre+o.Name || job.Size != o.Size {
			return t.dataChanged(fmt.Sprintf("object %d was %s (%d B), and is %s (%d B)", job.Object, strings.TrimPrefix(job.Name, t.pre), job.Size, o.Name, o.Size))
		}
		t.replayJob(r, i, job)
		return nil
	})
	if err != nil {
		return err
	}
	in := t.sink.Journal.Recorded()
	for op := range scenario.Stream(in.Ops) {
		t.tally.ended(op)
		if op.Kind == record.OpGet && op.Outcome != record.Cancelled {
			t.fetched[int(op.Object)] = time.Duration(op.Start)
		}
	}
	return in.Err()
}

// states are those of objects whose job is over.
var states = map[record.JobState]objectState{
	record.JobAccepted: objectAccepted, record.JobDurable: objectDurable, record.JobFailed: objectFailed, record.JobRefused: objectRefused,
}

// givenUp reports whether no further put follows.
func givenUp(s record.JobState) bool { return s == record.JobFailed || s == record.JobRefused }

func (t *trial) replayJob(r *restored, i int, j *record.Job) {
	r.recorded++
	if j.Attempts > 0 {
		t.tally.begun(j.Began)
	}
	t.queue.set(i, states[j.State])
	switch j.State {
	case record.JobFailed, record.JobRefused:
		return
	case record.JobAccepted, record.JobDurable:
		r.accepted++
		r.refs.add(j.Ref, i)
		t.tally.last = max(t.tally.last, j.Accepted)
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
	for _, i := range slices.Sorted(maps.Keys(t.jobs)) {
		j := t.jobs[i]
		_, listed := t.listed[i]
		switch {
		case t.stored(i):
			t.pending <- i
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
	there, err := t.list(step, r.refs)
	if err != nil {
		return 0, t.errorf("list what is stored, to compare it with what was recorded (nothing is lost: resume again)", err)
	}
	t.clearUnlisted()
	var missing []record.Job
	var unlisted []system.Ref // of them
	err = t.eachJob(func(i int, j *record.Job) error {
		if _, damaged := there.damaged[i]; t.stored(i) && (damaged || !there.seen[i]) {
			missing = append(missing, *j)
		}
		if t.stored(i) && !there.seen[i] {
			unlisted = append(unlisted, system.Ref(j.Ref))
		}
		if _, listed := t.listed[i]; listed && givenUp(j.State) { // it may be whole all the same
			t.jobs[i] = &job{Job: *j}
		}
		return nil
	})
	if err == nil {
		err = t.confirm(ctx, unlisted, r.accepted)
	}
	if err != nil || len(missing) == 0 {
		return 0, err
	}
	for _, o := range there.damaged {
		t.removeBroken(ctx, o)
	}
	detail := fmt.Sprintf("%d of %d accepted objects are not there, or not whole, and are put again; the first: object %d, %s", len(missing), r.accepted, missing[0].Object, missing[0].Name)
	if err := t.event(eventResume, whatMissing, detail); err != nil {
		return 0, err
	}
	for i := range missing {
		j := &missing[i]
		t.jobs[int(j.Object)] = &job{Job: record.Job{Object: j.Object, Name: j.Name, Size: j.Size}}
		t.queue.set(int(j.Object), objectWaiting)
		delete(t.fetched, int(j.Object))
		j.State, j.Error = record.JobMissing, "it was accepted, and is not there, or not whole, any more"
	}
	for batch := range slices.Chunk(missing, 1000) {
		if err := t.write(batch...); err != nil {
			return 0, err
		}
	}
	return len(missing), nil
}

// listing is what a system has of the accepted objects.
type listing struct {
	seen    []bool
	damaged map[int]system.Object // with another size
}

// list reads all that the system has. What it has of objects that are not accepted is
// kept, to be looked at.
func (t *trial) list(ctx context.Context, refs *hashes) (listing, error) {
	there := listing{make([]bool, t.set.Len()), map[int]system.Object{}}
	names := newHashes()
	namer, named := t.node.(system.Namer)
	for i := range t.set.Len() {
		names.add(t.name(i), i)
		if named { // a name that is too long for the system is listed as its hash
			names.add(string(namer.Named(t.name(i))), i)
		}
	}
	err := t.walk(ctx, func(o system.Object) error {
		for _, i := range t.objectsOf(o, refs, names) {
			if there.seen[i] {
				continue
			}
			there.seen[i] = true
			switch {
			case !t.stored(i):
				t.listed[i] = o
			case o.Size >= 0 && o.Size != t.set.Object(i).Size:
				there.damaged[i] = o
			default:
				t.runner.adopt(o) // an earlier session's is ours: it counts, and may be removed
			}
		}
		return nil
	})
	return there, err
}

// walk calls visit for everything that the system lists.
func (t *trial) walk(ctx context.Context, visit func(system.Object) error) error {
	if w, ok := t.node.(system.Walker); ok {
		return w.Walk(ctx, visit)
	}
	all, err := t.node.(system.Lister).List(ctx)
	if err != nil {
		return err
	}
	for _, o := range all {
		if err := visit(o); err != nil {
			return err
		}
	}
	return nil
}

// objectsOf are the objects of the set that a listed one is: by its ref, which is known
// of accepted ones (more than one where refs come from content, and some have the same),
// or by its name, before which a system may put a mark of its own.
func (t *trial) objectsOf(o system.Object, refs, names *hashes) []int {
	if found := slices.Collect(refs.all(string(o.Ref))); len(found) > 0 {
		return found
	}
	if namer, named := t.node.(system.Namer); named {
		for i := range names.all(string(o.Ref)) {
			if namer.Named(t.name(i)) == o.Ref {
				return []int{i}
			}
		}
	}
	if at := strings.Index(o.Name, t.pre); at >= 0 {
		for i := range names.all(o.Name[at:]) {
			if t.name(i) == o.Name[at:] {
				return []int{i}
			}
		}
	}
	return nil
}

// confirmSome is how many objects are asked for that a list left out.
const confirmSome = 5

// confirm asks for some of the missing objects one by one when they are most of
// those accepted: a list may be empty because the system is not itself yet, and
// to believe it is to pay for all of them again.
func (t *trial) confirm(ctx context.Context, unlisted []system.Ref, accepted int) error {
	if 2*len(unlisted) <= accepted {
		return nil
	}
	some := min(confirmSome, len(unlisted))
	there, gone := 0, 0
	var why error
	for n := range some {
		switch err := t.reach(ctx, unlisted[n*len(unlisted)/some]); {
		case err == nil:
			there++
		case errors.Is(err, system.ErrNotFound):
			gone++
		default:
			why = err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	what := fmt.Sprintf("%s: %d of %d accepted objects are not in its list", t.site.Use.Name, len(unlisted), accepted)
	switch {
	case there > 0:
		return fmt.Errorf("%s, but %d of %d that were asked for are there: the list is not to be believed, and nothing was put again; see that the system is well, and resume again", what, there, some)
	case gone == 0:
		return fmt.Errorf("%s, and whether they are there cannot be found out (%w); nothing was put again: see that the system is well, and resume again", what, why)
	}
	return nil
}

// reach asks for an object by its ref: for its first byte where nothing less can
// be asked.
func (t *trial) reach(ctx context.Context, ref system.Ref) error {
	ctx, cancel := context.WithTimeout(ctx, t.lookTime())
	defer cancel()
	if s, ok := t.node.(system.Stater); ok {
		_, err := s.Stat(ctx, ref)
		return err
	}
	var first firstByte
	if err := t.node.Get(ctx, ref, &first); err != nil && !first.came {
		return err
	}
	return nil
}

// firstByte ends what writes to it.
type firstByte struct{ came bool }

func (f *firstByte) Write([]byte) (int, error) {
	f.came = true
	return 0, errors.New("that is enough")
}

// hashes finds objects by a text of theirs, of which it keeps 64 bits: there may be
// millions.
type hashes struct {
	seed    maphash.Seed
	entries []hashed
	sorted  bool
}

type hashed struct {
	hash   uint64
	object int32
}

func newHashes() *hashes { return &hashes{seed: maphash.MakeSeed()} }

func (h *hashes) add(text string, object int) {
	h.entries, h.sorted = append(h.entries, hashed{maphash.String(h.seed, text), int32(object)}), false
}

// all are the objects that may have been added with a text.
func (h *hashes) all(text string) iter.Seq[int] {
	if !h.sorted {
		slices.SortFunc(h.entries, func(a, b hashed) int { return cmp.Compare(a.hash, b.hash) })
		h.sorted = true
	}
	want := maphash.String(h.seed, text)
	at, _ := slices.BinarySearchFunc(h.entries, want, func(e hashed, want uint64) int { return cmp.Compare(e.hash, want) })
	return func(yield func(int) bool) {
		for ; at < len(h.entries) && h.entries[at].hash == want; at++ {
			if !yield(int(h.entries[at].object)) {
				return
			}
		}
	}
}
