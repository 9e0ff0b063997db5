package upload

import (
	"context"
	"slices"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/stats"
	"github.com/plimsoll-project/plimsoll/system"
)

// tally adds up a trial, over all its sessions, as far as it has to know itself.
type tally struct {
	accepted, durable int64 // objects; durable ones are accepted
	failed, refused   int64 // given up
	unreadable        int64
	bytes             int64 // file bytes accepted
	finished          int64 // attempts
	failures          int64 // of them
	session           int64 // attempts of this session

	first, last time.Duration // first put begun, last acceptance
}

func newUploadTally() tally { return tally{first: -1} }

// done takes an operation that has ended.
func (t *trial) done(op record.Op) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if op.Kind == record.OpPut {
		t.tally.ended(op)
		if op.Outcome == record.OK {
			if t.probing {
				t.probed = append(t.probed, time.Duration(op.LastByte-op.Start).Seconds())
			}
			t.recent.add(time.Duration(op.LastByte), time.Duration(op.LastByte-op.Start))
		}
	}
	t.ops = append(t.ops, op)
	if len(t.ops) >= record.BlockSize || time.Since(t.sent) > scenario.FlushEvery {
		return t.send()
	}
	return nil
}

// ended takes an operation; only puts are attempts.
func (y *tally) ended(op record.Op) {
	if op.Kind != record.OpPut {
		return
	}
	// A job holds only the latest attempt at an object.
	if start := time.Duration(op.Start); y.first < 0 || start < y.first {
		y.first = start
	}
	if op.Outcome.Finished() {
		y.finished++
	}
	if op.Outcome.ServerFailure() {
		y.failures++
	}
}

func (t *trial) flush() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.send()
}

func (t *trial) send() error {
	if len(t.ops) == 0 {
		return nil
	}
	err := t.sink.Block(record.AppendBlock(nil, t.ops))
	t.ops, t.sent = t.ops[:0], time.Now()
	return err
}

// begun counts an attempt.
func (t *trial) begun(job *record.Job) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tally.session++
	t.tally.began(job)
}

// began notes when an attempt began.
func (y *tally) began(job *record.Job) {
	if job.Attempts > 0 && (y.first < 0 || job.Began < y.first) {
		y.first = job.Began
	}
}

func (t *trial) countAccepted(job *record.Job) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tally.acceptedJob(job)
	t.full, t.quotas = "", 0 // there is room
}

// countQuota notes a failed attempt, and says how many in a row the system had no
// room for, with no object accepted in between.
func (t *trial) countQuota(full bool) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if full {
		t.quotas++
	}
	return t.quotas
}

func (y *tally) acceptedJob(job *record.Job) {
	y.accepted++
	y.bytes += job.Size
	y.last = max(y.last, job.Accepted)
	if job.State == record.JobDurable {
		y.durable++
	}
}

func (t *trial) countDurable() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tally.durable++
}

func (t *trial) countGivenUp(job *record.Job) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tally.givenUp(job.State)
}

func (y *tally) givenUp(state record.JobState) {
	switch state {
	case record.JobFailed:
		y.failed++
	case record.JobRefused:
		y.refused++
	case record.JobUnreadable:
		y.unreadable++
	}
}

// regain takes back that an object was given up.
func (t *trial) regain(object int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch t.queue.of(object) {
	case objectFailed:
		t.tally.failed--
	case objectRefused:
		t.tally.refused--
	}
}

func (t *trial) countUnreadable() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tally.unreadable
}

// keepRef keeps the ref of an accepted object, if something is to be done with
// it at the end, and it cannot be had from the name.
func (t *trial) keepRef(object int, job *record.Job) {
	if !t.toVerify(object) && !t.removes() {
		return
	}
	if n, ok := t.node.(system.Namer); ok && n.Named(job.Name) == system.Ref(job.Ref) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refs[object] = system.Ref(job.Ref)
}

// refOf is the ref of an accepted object; false: it is not known.
func (t *trial) refOf(object int) (system.Ref, bool) {
	t.mu.Lock()
	ref, ok := t.refs[object]
	t.mu.Unlock()
	if n, named := t.node.(system.Namer); named && !ok {
		return n.Named(t.name(object)), true
	}
	return ref, ok
}

// report passes on the progress of the trial.
func (t *trial) report() {
	t.telling.Lock()
	defer t.telling.Unlock()
	if t.sink.State != nil {
		t.sink.State(t.state())
	}
}

func (t *trial) state() scenario.State {
	at := t.sink.Now()
	s := scenario.State{At: at, Objects: int64(t.set.Len()), Absolute: -1, AbsoluteAt: -1}
	if t.polls != nil {
		t.polls.sofar(&s)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	y := &t.tally
	s.Accepted, s.Durable, s.Failed, s.Refused, s.Bytes = y.accepted, y.durable, y.failed, y.refused, y.bytes
	s.Unreadable, s.Settles = y.unreadable, t.settler() != nil
	s.Finished, s.Failures, s.Full, s.Idle = y.finished, y.failures, t.full, t.idle
	s.PutP50 = t.recent.median(at)
	return s
}

// reportEvery is how often progress is reported, and operations are written.
const reportEvery = time.Second

// reports calls report periodically. The function that it returns ends that.
func (t *trial) reports(ctx context.Context, fail context.CancelCauseFunc) (end func()) {
	stop, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		tick := time.NewTicker(reportEvery)
		defer tick.Stop()
		for {
			t.report()
			select {
			case <-tick.C:
			case <-stop:
				return
			case <-ctx.Done():
				return
			}
			if err := t.flush(); err != nil {
				fail(err)
			}
		}
	}()
	return func() { close(stop); <-over }
}

// recentTimes are the times that it took lately to store an object. It keeps so
// many that their median is known well, and not more.
type recentTimes struct {
	window time.Duration // 0: none are kept
	times  []recentTime
	every  int // each so many is kept; 0: each
	passed int
}

type recentTime struct{ at, took time.Duration }

const recentMost = 4096

func (r *recentTimes) add(at, took time.Duration) {
	if r.window <= 0 {
		return
	}
	if r.passed++; r.passed < r.every {
		return
	}
	r.passed = 0
	r.times = append(r.times, recentTime{at, took})
	if len(r.times) < recentMost {
		return
	}
	r.prune(at)
	if len(r.times) > recentMost/2 {
		kept := r.times[:0]
		for i := 0; i < len(r.times); i += 2 {
			kept = append(kept, r.times[i])
		}
		r.times, r.every = kept, 2*max(1, r.every)
	} else if len(r.times) < recentMost/8 {
		r.every /= 2
	}
}

func (r *recentTimes) prune(at time.Duration) {
	r.times = slices.DeleteFunc(r.times, func(x recentTime) bool { return x.at < at-r.window })
}

// median in seconds; 0: there is none.
func (r *recentTimes) median(at time.Duration) float64 {
	r.prune(at)
	if len(r.times) == 0 {
		return 0
	}
	took := make([]float64, len(r.times))
	for i, x := range r.times {
		took[i] = x.took.Seconds()
	}
	return stats.Median(took)
}
