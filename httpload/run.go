package httpload

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"runtime"
	"slices"
	"strings"
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

// Run executes the load in this process and passes every operation to sink, which must not keep the
// slice. An error means that the load could not be executed or recorded; errors of servers are in the
// operations. When ctx ends, operations in flight are recorded as cancelled and the result is partial.
//
// The result's CPU and saturation are those of the whole process: use a separate one ([Serve]) if
// they matter.
func Run(ctx context.Context, s Spec, sink func([]record.Op) error) (Result, error) {
	return run(ctx, s, sink, &linkUse{}, func(Progress) {}, func() time.Time { return time.Time{} })
}

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

// Thresholds above which the generator counts as the bottleneck. Shares are of wall time;
// waits are compared with measured latencies, because 1 ms is nothing in an answer of 1 s
// and everything in one of 1 ms.
const (
	maxBusy      = 0.9  // share of an event loop's time not spent waiting for the network
	maxCPUShare  = 0.9  // share of the CPUs of this process
	maxOwnShare  = 0.25 // share of our own wait in the median time to the first byte
	minOwnWait   = 1e-3 // seconds; shorter waits are not reported
	maxOwnLate   = 5e-3 // seconds; lateness of an open loop at p99, or of a shard's start
	maxLateStart = 0.01 // lateness of a shard's start as a share of the time
	minRunDelay  = 0.2  // share of the time spent waiting for a CPU
)

// conclude computes rates and whether the generator was the bottleneck.
func (t *trial) conclude(res *Result) {
	s := t.spec
	res.Receive = t.receivePath(res.Receive)
	res.Warmed, res.Redirects = t.sum.warmed, t.sum.redirects
	res.CPU = t.cpuEnded - t.cpuBegan
	took := res.seconds()
	if took <= 0 {
		return
	}
	if s.Arrivals != nil {
		res.OfferedRate = t.schedule.offered(res.Ended - res.Started)
	}

	why := func(flag *bool, is bool, format string, args ...any) {
		if is {
			*flag = true
			res.Why = append(res.Why, fmt.Sprintf(format, args...))
		}
	}
	ttfb, wait, late := seconds(t.sum.first, 50), seconds(t.sum.wait, 50), seconds(t.sum.late, 99)
	cpus, shard := float64(runtime.NumCPU()), t.late.Seconds()
	why(&res.Saturated, t.busy >= maxBusy, "an event loop was busy %.0f %% of the time", 100*t.busy)
	why(&res.Saturated, res.CPU >= maxCPUShare*cpus*took, "used %.2f of %g CPUs", res.CPU/took, cpus)
	why(&res.Saturated, t.delay >= minRunDelay, "an event loop waited %.0f %% of the time for a CPU", 100*t.delay)
	why(&res.Saturated, wait >= minOwnWait && wait >= maxOwnShare*ttfb, "answers lay ready for %.2g s before they "+
		"were read (median; the median time to the first byte is %.2g s)", wait, ttfb)
	for class, n := range t.sum.local {
		why(&res.Saturated, true, "%d operations failed on this machine: %s", n,
			strings.TrimPrefix(class, classLocalFailure))
	}
	why(&res.Behind, shard > max(maxOwnLate, maxLateStart*took), "started %.2g s after the other generators", shard)
	why(&res.Behind, s.Arrivals != nil && late >= max(maxOwnLate, maxOwnShare*ttfb),
		"operations started %.2g s later than they could have (p99)", late)
}

// receivePath describes how a client received answers and what was compared.
func (t *trial) receivePath(client string) string {
	if t.spec.Receive == receiveDrop {
		s := "drop: " + client + ", MSG_TRUNC + SO_RCVLOWAT, content not compared"
		if t.sum.chunked > 0 {
			s += fmt.Sprintf("; %d chunked answers received by copying, not compared", t.sum.chunked)
		}
		return s
	}
	parts := []string{"verify: " + client + ", pooled buffers"}
	for _, o := range t.spec.Objects {
		with := "content unknown: length checked, not compared"
		if o.Content != nil {
			with = "compared with seeded content (AES-128-CTR)"
		} else if o.Reference != "" {
			with = "compared with a reference file"
		}
		if !slices.Contains(parts, with) {
			parts = append(parts, with)
		}
	}
	return strings.Join(parts, "; ")
}
