package httpload

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"time"

	"github.com/plimsoll-project/plimsoll/internal/timing"
	"github.com/plimsoll-project/plimsoll/record"
)

// trial is one execution of a Spec.
type trial struct {
	spec     *Spec
	schedule *schedule
	expected []expected
	rec      *recorder
	link     *linkUse
	epoch    time.Time
	sum      *tally           // of the whole trial
	held     func() time.Time // waits for the time at which to start, and returns it
	started  int64            // ns since the epoch; set by start
	late     time.Duration    // how long after the time of held the load of a shard started

	cpuBegan, cpuEnded float64

	busy  float64 // share of the time that the busiest event loop did not wait for the network
	delay float64 // largest share of the time that an event loop waited for a CPU
}

// start waits until the load starts, and sets started, which is the same for all generators.
func (t *trial) start() {
	at := t.held() // zero: cancelled
	time.Sleep(time.Until(at))
	t.started = int64(time.Since(t.epoch))
	if !at.IsZero() && t.spec.Shards > 1 {
		t.late, t.started = time.Since(at), int64(at.Sub(t.spec.Epoch))
	}
}

func (t *trial) newOp(req *request, worker int, now int64) record.Op {
	op := record.Op{
		Kind: req.kind(), Worker: uint32(worker), Object: uint32(req.object), Offset: req.off, Length: req.length,
		Intended: t.started + req.intended, Start: now,
	}
	if req.warm {
		op.Kind = record.OpWarmup
	}
	return op
}

// backoff returns the pause after so many operations in a row without any answer, to avoid a
// busy loop.
func backoff(fails int) time.Duration {
	return min(time.Millisecond<<min(fails, 7), 100*time.Millisecond)
}

// notStarted records the arrivals of an open loop that were due before end but found no free
// connection. Omitting them would hide exactly the slowest operations.
func (t *trial) notStarted(to *tally, end int64) {
	for t.spec.Arrivals != nil {
		req, ok, _, _ := t.schedule.claimDue(end - t.started)
		if !ok {
			return
		}
		op := t.newOp(&req, 0, end)
		op.Outcome, op.Class, op.LastByte = record.InFlight, record.PhaseNotStarted, end
		to.begin(&op, end)
		to.end(&op, &req)
	}
}

// run executes the load and passes every operation to sink, which must not keep the slice. An error
// means that the load could not be executed or recorded; errors of servers are in the operations.
// When ctx ends, operations in flight are recorded as cancelled and the result is partial.
func run(ctx context.Context, s Spec, sink func([]record.Op) error, link *linkUse, onProgress func(Progress),
	held func() time.Time) (res Result, err error) {
	now := time.Now()
	if err := s.prepare(); err != nil {
		return res, err
	}
	link.rate, link.shards = s.Rate, int64(max(1, s.Shards))
	t := &trial{spec: &s, schedule: newSchedule(&s), link: link, epoch: now, held: held}
	if !s.Epoch.IsZero() {
		// The wall clock is read only here; after that only the monotonic clock.
		t.epoch = now.Add(s.Epoch.Sub(now))
	}
	if t.expected, err = openExpected(s.Objects); err != nil {
		return res, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	t.rec = newRecorder(sink, cancel)
	stop := timing.Every(s.Window, func() {
		onProgress(Progress{Ops: link.ended.Load(), Bytes: link.bytes.Load()})
	})
	defer stop()
	execute := runRaw
	moved := slices.ContainsFunc(s.Objects, func(o Object) bool { return o.Moved })
	if u, _ := url.Parse(s.Objects[0].URL); u.Scheme == "https" || moved {
		execute = runNetHTTP
	}
	err = execute(ctx, t, &res)
	stop()
	if err = cmp.Or(err, t.schedule.failed(), t.rec.close()); err != nil {
		return res, err
	}
	t.conclude(&res)
	return res, nil
}
