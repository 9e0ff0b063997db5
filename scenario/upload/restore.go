package upload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
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
	doubt    []int // a put had begun, and nothing says how it ended
	adopted  int
	again    int
	missing  []int // accepted, and not there
	damaged  map[int]system.Object
	unlisted bool                  // the system does not say what is there
	refs     *hashes               // of accepted objects
	since    map[int]time.Duration // when those were accepted that are fetched at the end
}

// restore brings the trial to where its earlier sessions have left it. What was
// recorded is compared with what the system lists, because the two can differ: a
// put that was under way may have succeeded, and what was accepted may be lost.
//
//   - recorded as accepted, listed: done
//   - recorded as accepted, not listed, or with another size: missing, put again
//   - not known to be accepted, listed and whole: adopted
//   - not known to be accepted, listed and not whole: removed, put again
//   - else: put, or put again
//
// A system that does not list is believed what was accepted; of what is in doubt
// it is asked by name, and where it cannot be asked either, that is put again: the
// names are the same, and so are the bytes.
func (t *trial) restore(ctx context.Context) error {
	if err := t.polls.restore(); err != nil {
		return t.errorf("read the polls of earlier sessions", err)
	}
	r := restored{refs: newHashes(), since: map[int]time.Duration{}}
	if err := t.replay(&r); err != nil {
		return err
	}
	if err := t.sameData(r.recorded > 0); err != nil {
		return err
	}
	if r.recorded == 0 {
		return nil
	}
	begun := time.Now()
	if err := t.reconcile(ctx, &r); err != nil {
		return err
	}
	what := fmt.Sprintf("%d accepted, %d in doubt: %d adopted, %d put again; %d missing", r.accepted, len(r.doubt), r.adopted, r.again, len(r.missing))
	if r.unlisted {
		what = fmt.Sprintf("%d accepted, taken as recorded because the system does not list what it has; %d in doubt, to be put again where they are not found by name", r.accepted, len(r.doubt))
	}
	t.site.Say(fmt.Sprintf("%s: resumed: %s", t.site.Use.Name, what))
	return t.event(eventResume, whatReconciled, fmt.Sprintf("resumed: %s (it took %.3g s)", what, time.Since(begun).Seconds()))
}

func (t *trial) errorf(what string, err error) error {
	return fmt.Errorf("%s: %s: %w", t.site.Use.Name, what, err)
}

// sameData holds the data set against the one that the trial began with.
func (t *trial) sameData(begun bool) error {
	now := fmt.Sprintf("%d objects, fingerprint %s", t.set.Len(), t.set.Fingerprint())
	for e, err := range t.sink.Journal.EarlierEvents() {
		if err != nil {
			return t.errorf("read the events of earlier sessions", err)
		}
		if e.Kind == eventData && e.What == whatSet {
			if e.Detail != now {
				return t.dataChanged(fmt.Sprintf("it was %s, and is %s", e.Detail, now))
			}
			begun = true
		}
	}
	if begun {
		return nil
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

// replay reads what earlier sessions have recorded.
func (t *trial) replay(r *restored) error {
	for job, err := range t.sink.Journal.Earlier() {
		if err != nil {
			return t.errorf("read the journal of earlier sessions", err)
		}
		i := int(job.Object)
		if i < 0 || i >= t.set.Len() {
			return t.dataChanged(fmt.Sprintf("object %d (%s) is not in it any more", job.Object, job.Name))
		}
		if o := t.set.Object(i); job.Name != t.pre+o.Name || job.Size != o.Size {
			return t.dataChanged(fmt.Sprintf("object %d was %s (%d B), and is %s (%d B)", job.Object, strings.TrimPrefix(job.Name, t.pre), job.Size, o.Name, o.Size))
		}
		r.recorded++
		t.replayJob(r, i, job)
	}
	for op, err := range t.sink.Journal.EarlierOps() {
		if err != nil {
			return t.errorf("read the operations of earlier sessions", err)
		}
		t.tally.ended(op)
		if since, ok := r.since[int(op.Object)]; ok && op.Kind == record.OpGet && time.Duration(op.Start) >= since {
			t.fetchedBefore(op)
		}
	}
	return nil
}

func (t *trial) replayJob(r *restored, i int, job record.Job) {
	t.tally.began(&job)
	switch job.State {
	case record.JobAccepted, record.JobDurable:
		r.accepted++
		r.refs.add(job.Ref, i)
		t.tally.acceptedJob(&job)
		t.keepRef(i, &job)
		if t.toVerify(i) {
			r.since[i] = job.Accepted
		}
		state := objectAccepted
		if job.State == record.JobDurable {
			state = objectDurable
		} else if t.settler() != nil {
			t.jobs[i] = &job
		}
		t.queue.set(i, state)
	case record.JobPutting:
		t.jobs[i] = &job
		r.doubt = append(r.doubt, i)
		t.doubt[i] = true
		t.queue.first(i)
	case record.JobWaiting:
		t.jobs[i] = &job
		t.doubt[i] = true
		// When the attempt ended is not in the journal; it took part of the pause
		// at most. So retries are as far apart as if the session had not ended.
		t.queue.wait(i, job.Began+backoff(t.u.Backoff.Std(), job.Attempts))
	case record.JobFailed, record.JobRefused:
		t.tally.givenUp(job.State)
		state := objectFailed
		if job.State == record.JobRefused {
			state = objectRefused
		}
		t.queue.set(i, state)
	case record.JobUnreadable, record.JobMissing: // perhaps it can be read now
		job.Attempts, job.Ref, job.SHA256 = 0, "", ""
		t.jobs[i] = &job
		t.queue.first(i)
	}
}

// reconcile compares what was recorded with what is there.
func (t *trial) reconcile(ctx context.Context, r *restored) error {
	if !t.lists() {
		r.unlisted = true
		return t.pendRestored()
	}
	found := map[int]system.Object{} // there, and not known to be accepted
	r.damaged = map[int]system.Object{}
	seen := make([]bool, t.set.Len())
	index := t.index(r.refs)
	step, cancel := context.WithTimeout(ctx, t.site.Limits.Deadline.Std()+time.Duration(t.set.Len())*time.Millisecond)
	defer cancel()
	err := t.walk(step, func(o system.Object) error {
		for _, i := range index.find(o) {
			if seen[i] {
				continue
			}
			seen[i] = true
			switch {
			case !t.stored(i):
				found[i] = o
			case o.Size >= 0 && o.Size != t.set.Object(i).Size:
				r.damaged[i] = o
			default:
				t.runner.adopt(o) // an earlier session's is ours: it counts, and may be removed
			}
		}
		return nil
	})
	if err != nil {
		return t.errorf("list what is stored, to compare it with what was recorded (nothing is lost: resume again)", err)
	}
	for i := range t.set.Len() {
		if _, damaged := r.damaged[i]; t.stored(i) && (!seen[i] || damaged) {
			r.missing = append(r.missing, i)
		}
	}
	if err := t.confirm(ctx, r); err != nil {
		return err
	}
	if err := t.replace(ctx, r); err != nil {
		return err
	}
	if err := t.takeUp(ctx, r, found); err != nil {
		return err
	}
	return t.pendRestored()
}

// confirmSome is how many objects are asked for that a list left out.
const confirmSome = 5

// confirm asks for some of the missing objects one by one when they are most of
// those accepted: a list may be empty because the system is not itself yet, and
// to believe it is to pay for all of them again.
func (t *trial) confirm(ctx context.Context, r *restored) error {
	unlisted := slices.DeleteFunc(slices.Clone(r.missing), func(i int) bool { _, damaged := r.damaged[i]; return damaged })
	if 2*len(unlisted) <= r.accepted {
		return nil
	}
	ask := map[int]bool{}
	for n := range confirmSome {
		ask[unlisted[n*len(unlisted)/confirmSome]] = true
	}
	there, gone := 0, 0
	var why error
	for job, err := range t.sink.Journal.Earlier() {
		if err != nil {
			return t.errorf("read the journal of earlier sessions", err)
		}
		if !ask[int(job.Object)] {
			continue
		}
		switch err := t.reach(ctx, system.Ref(job.Ref)); {
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
	what := fmt.Sprintf("%s: %d of %d accepted objects are not in its list", t.site.Use.Name, len(unlisted), r.accepted)
	switch {
	case there > 0:
		return fmt.Errorf("%s, but %d of %d that were asked for are there: the list is not to be believed, and nothing was put again; see that the system is well, and resume again", what, there, len(ask))
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

// replace has what is missing put again.
func (t *trial) replace(ctx context.Context, r *restored) error {
	if len(r.missing) == 0 {
		return nil
	}
	var jobs []record.Job
	y := &t.tally
	gone := map[int]bool{}
	for _, i := range r.missing {
		gone[i] = true
		if o, ok := r.damaged[i]; ok {
			t.removeBroken(ctx, o)
		}
	}
	for job, err := range t.sink.Journal.Earlier() {
		if err != nil {
			return t.errorf("read the journal of earlier sessions", err)
		}
		i := int(job.Object)
		if !gone[i] {
			continue
		}
		y.accepted--
		y.bytes -= job.Size
		delete(t.fetched, i)
		if job.State == record.JobDurable {
			y.durable--
		}
		job.State, job.Error = record.JobMissing, "it was accepted, and is not there, or not whole, any more"
		jobs = append(jobs, job)
		again := record.Job{Object: job.Object, Name: job.Name, Size: job.Size}
		t.jobs[i] = &again
		t.queue.first(i)
	}
	t.recount()
	detail := fmt.Sprintf("%d of %d accepted objects are not there, or not whole, and are put again; the first: object %d, %s", len(jobs), r.accepted, jobs[0].Object, jobs[0].Name)
	if err := t.event(eventResume, whatMissing, detail); err != nil {
		return err
	}
	for batch := range slices.Chunk(jobs, 1000) {
		if err := t.write(batch...); err != nil {
			return err
		}
	}
	return nil
}

// recount is called when accepted objects are accepted no more: the times of
// those stay in the distributions, because they were stored once.
func (t *trial) recount() {
	for i := range t.refs {
		if !t.stored(i) {
			delete(t.refs, i)
		}
	}
}

// takeUp adopts or removes what is there and is not known to be accepted.
func (t *trial) takeUp(ctx context.Context, r *restored, found map[int]system.Object) error {
	for _, i := range r.doubt {
		if _, there := found[i]; !there {
			r.again++
			t.doubts(i, false)
		}
	}
	for i := range t.doubt {
		if _, there := found[i]; !there {
			delete(t.doubt, i)
		}
	}
	objects := make([]int, 0, len(found))
	for i := range found {
		objects = append(objects, i)
	}
	slices.Sort(objects)
	var taken []int
	for _, i := range objects {
		o := found[i]
		if !slices.Contains(r.doubt, i) {
			r.doubt = append(r.doubt, i)
		}
		switch t.inspect(ctx, i, o) {
		case whole:
		case broken:
			t.removeBroken(ctx, o)
			fallthrough
		case absent:
			r.again++
			t.doubts(i, false)
			continue
		default: // it stays in doubt, and is looked at again before it is put
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			r.again++
			t.doubts(i, true)
			continue
		}
		if err := t.takeBack(i, o); err != nil {
			return err
		}
		r.adopted++
		taken = append(taken, i)
	}
	t.queue.unretry(taken, objectAccepted)
	return nil
}

// pendRestored has the accepted objects looked at that were not durable.
func (t *trial) pendRestored() error {
	if t.settler() == nil {
		return nil
	}
	for i := range t.jobs {
		if t.stored(i) {
			t.pending = append(t.pending, i)
		}
	}
	slices.Sort(t.pending)
	return nil
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

// nameIndex finds the object of a data set that the system lists: with some
// thirty bytes for each, because there may be millions.
//
// An object that was accepted is known by its ref. One that is in doubt has none:
// it is known by the ref that its name gives or, where a system puts a mark of
// the session before the names of what it stores, by the end of its name.
type nameIndex struct {
	t     *trial
	refs  *hashes // of accepted objects
	keys  *hashes // refs by name, where a name gives one, else names
	ends  *hashes // names; nil: not needed so far
	found []int
}

func (t *trial) index(refs *hashes) *nameIndex {
	x := &nameIndex{t: t, refs: refs, keys: newHashes()}
	for i := range t.set.Len() {
		x.keys.add(x.key(i), i)
	}
	return x
}

// key is what an object is listed as.
func (x *nameIndex) key(object int) string {
	name := x.t.name(object)
	if n, ok := x.t.node.(system.Namer); ok {
		return string(n.Named(name))
	}
	return name
}

// find gives the objects of the set that a stored object is: more than one where
// refs come from content, and some have the same. It is valid until the next call.
func (x *nameIndex) find(o system.Object) []int {
	x.found = slices.AppendSeq(x.found[:0], x.refs.all(string(o.Ref)))
	if len(x.found) > 0 {
		return x.found
	}
	key := o.Name
	if _, named := x.t.node.(system.Namer); named {
		key = string(o.Ref)
	}
	for i := range x.keys.all(key) {
		if x.key(i) == key {
			return append(x.found, i)
		}
	}
	at := strings.Index(o.Name, x.t.pre)
	if at <= 0 {
		return nil
	}
	if x.ends == nil {
		x.ends = newHashes()
		for i := range x.t.set.Len() {
			x.ends.add(x.t.name(i), i)
		}
	}
	for i := range x.ends.all(o.Name[at:]) {
		if x.t.name(i) == o.Name[at:] {
			return append(x.found, i)
		}
	}
	return nil
}

// hashes finds objects by a text of theirs, of which it keeps 64 bits.
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
