package scenario

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/workload"
)

// Operation is one operation of a trial under the experiment's limits: it ends at its
// deadline, and once no byte of its object has moved for the stall limit.
//
// Bytes are seen where they pass between the system's code and us. So a read
// stalls from its beginning on; a write stalls only until the system has taken
// the last byte, because many answer after a long silent work; what moves no
// object cannot stall. For all of them the deadline holds.
type Operation struct {
	Ctx   context.Context
	end   context.CancelCauseFunc
	limit time.Duration // of a stall

	mu    sync.Mutex
	cut   time.Time   // when it was cut off; zero: it was not
	timer *time.Timer // nil: cannot stall
	moved int64
	first time.Time // the first byte to us
	wrong bool      // other bytes than the object's came
	sends bool      // bytes go to the system
}

// count adds n bytes that moved and puts the stall off. done says that no byte is to come.
func (w *Operation) count(n int, done bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n > 0 && !w.sends && w.first.IsZero() {
		w.first = time.Now()
	}
	w.moved += int64(n)
	switch {
	case w.Ctx.Err() != nil:
	case w.timer == nil && !done:
		w.timer = time.AfterFunc(w.limit, func() { w.end(ErrStalled) })
	case done && w.timer != nil:
		w.timer.Stop()
	case !done:
		w.timer.Reset(w.limit)
	}
}

// Sending is the content as the system reads it.
func (w *Operation) Sending(c workload.Content) io.Reader { return w.SendingFrom(c.Reader(), c.Size) }

// SendingFrom is likewise for size bytes of from.
func (w *Operation) SendingFrom(from io.Reader, size int64) io.Reader {
	w.sends = true
	w.count(0, false)
	return &sender{w: w, from: from, left: size}
}

type sender struct {
	w    *Operation
	from io.Reader
	left int64
}

func (s *sender) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	s.left -= int64(n)
	s.w.count(n, s.left == 0)
	return n, err
}

// Why a read that gave no error, or whose error does not say so, failed all the same.
var (
	ErrWrongBytes = errors.New("these bytes are not the object's")
	ErrTooShort   = errors.New("it ended before the object did")
)

// Receiving compares every byte that a system writes with c, from an offset on.
func (w *Operation) Receiving(c workload.Content, off int64) io.Writer {
	want, buf := c.Reader(), []byte{}
	_, _ = want.Seek(off, io.SeekStart) // fails before the content only
	return w.Comparing(func(p []byte) bool {
		buf = append(buf[:0], p...) // Check works in place, and p is the system's
		return want.Check(buf)
	})
}

// Comparing gives what a system writes to same. Its error ends the operation: more bytes
// of another object say nothing new.
func (w *Operation) Comparing(same func(p []byte) bool) io.Writer {
	w.count(0, false)
	return receiver{w, same}
}

type receiver struct {
	w    *Operation
	same func([]byte) bool
}

func (r receiver) Write(p []byte) (int, error) {
	r.w.count(len(p), false)
	if !r.same(p) {
		r.w.mu.Lock()
		r.w.wrong = true
		r.w.mu.Unlock()
		return 0, ErrWrongBytes
	}
	return len(p), nil
}

// Timed does one operation under the limits, and adds to op, which says what it is, how it
// went by the trial's clock. Its error is that of do or, where do gave none, why the
// operation is not ok.
//
// What the system's code did after an operation that failed was cut off, removing what it
// had left behind, is no part of the operation.
func Timed(ctx context.Context, limits experiment.Limits, now func() time.Duration, op *record.Op,
	do func(*Operation) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limits.Deadline.Std(), ErrDeadline)
	defer cancel()
	w := &Operation{limit: limits.Stall.Std()}
	w.Ctx, w.end = context.WithCancelCause(ctx)
	defer w.end(nil)
	defer context.AfterFunc(w.Ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.cut = time.Now()
	})()
	begun, start := time.Now(), now()
	err := do(w)
	end, cause := now(), context.Cause(w.Ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
	}
	if err != nil && !w.cut.IsZero() {
		end -= time.Since(w.cut)
	}
	op.Start, op.LastByte, op.Bytes = Nanos(start), Nanos(end), w.moved
	op.Intended = op.Start
	if !w.first.IsZero() {
		op.FirstByte = min(op.Start+w.first.Sub(begun).Nanoseconds(), op.LastByte)
	}
	op.Outcome, op.Class, op.Status = OutcomeOf(err, cause)
	switch {
	case w.wrong || errors.Is(err, ErrWrongBytes):
		op.Outcome, op.Class, err = record.WrongBytes, "", ErrWrongBytes
	case errors.Is(err, ErrTooShort), op.Outcome == record.OK && op.Bytes < op.Length && !w.sends:
		op.Outcome, op.Class, err = record.Truncated, "", ErrTooShort
	case op.Outcome == record.OK && op.Bytes != op.Length:
		op.Outcome, op.Class = record.Error, "accepted without reading all of it"
		err = errors.New(op.Class)
	}
	return err
}

// Nanos is a time as operations have it; 0 means none there.
func Nanos(d time.Duration) int64 { return max(1, d.Nanoseconds()) }

// SettleBriefly bounds a wait that was in vain last time. Some systems never
// settle (until a buffer of the system is full): the deadline of an operation in
// every trial would be hours; no wait at all would never find that it changed.
const SettleBriefly = 5 * time.Second

// Saturated reports whether this process was the limit of its operations: it
// kept saturatedShare of a core busy for each one under way (or of all cores,
// where they are fewer). A client that waits for nothing but its own work uses
// all of one; what waits for a server or a link leaves it idle. busy is the sum of the
// operations' times in seconds.
//
// Less than saturatedFrom is not judged: the kernel counts CPU in ticks, and
// observing processes takes some now and then.
func Saturated(cpu, busy float64, workers, cores int) bool {
	wall := busy / float64(workers)
	return wall >= saturatedFrom && cpu >= saturatedShare*wall*float64(min(workers, cores))
}

const (
	saturatedShare = 0.8
	saturatedFrom  = 0.1 // seconds
)

// Workers has so many workers do something beside each other. The first error ends the
// context of all, and is returned, as is the cause of ctx's end.
func Workers(ctx context.Context, n int, do func(ctx context.Context, worker int) error) error {
	group, within := errgroup.WithContext(ctx)
	for worker := range n {
		group.Go(func() error { return do(within, worker) })
	}
	err := group.Wait()
	return cmp.Or(context.Cause(ctx), err)
}

// Tally adds up the operations that a trial does in this process, and passes them on. It is
// safe for concurrent use.
type Tally struct {
	*OpLog
	sink Sink

	mu          sync.Mutex
	Ended       int64         // operations
	Failed      int64         // of them: those that were not ok
	Busy        time.Duration // of all of them, from call to return
	moved       int64         // bytes of objects
	first, last int64         // start of the first and end of the last, in nanoseconds since the epoch
}

// NewTally makes one for a trial.
func NewTally(sink Sink) *Tally { return &Tally{OpLog: NewOpLog(sink.Block), sink: sink} }

// Add takes an operation that has ended.
func (y *Tally) Add(op record.Op) error {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.Ended++; y.Ended == 1 {
		y.first = op.Start
	}
	if op.Outcome != record.OK {
		y.Failed++
	}
	y.first, y.last = min(y.first, op.Start), max(y.last, op.LastByte)
	y.Busy += time.Duration(op.LastByte - op.Start)
	y.moved += op.Bytes
	y.sink.Progress(y.Ended, y.moved)
	return y.OpLog.Add(op)
}

// Load is what the trial says of itself. cpu is this process's in the whole of it, and
// loop in the operations and what lies between them, of so many workers.
func (y *Tally) Load(cpu, loop float64, workers int) Load {
	load := Load{Seconds: time.Duration(y.last - y.first).Seconds(), CPU: cpu}
	if load.Seconds > 0 {
		load.AchievedRate = float64(y.Ended) / load.Seconds
	}
	if Saturated(loop, y.Busy.Seconds(), workers, runtime.GOMAXPROCS(0)) {
		load.Invalid = append(load.Invalid, record.ReasonGeneratorSaturated)
		load.Notes = append(load.Notes, fmt.Sprintf("generator: it used %.2g s of CPU in %.2g s of operations", loop,
			y.Busy.Seconds()/float64(workers)))
	}
	return load
}

// flushEvery is how long operations wait at most before they are passed on with the next.
const flushEvery = time.Second

// OpLog passes the operations of a trial on to its sink, in blocks. It is safe for
// concurrent use.
type OpLog struct {
	block func([]byte) error

	mu   sync.Mutex
	ops  []record.Op
	sent time.Time
}

// NewOpLog makes one for a [Sink.Block].
func NewOpLog(block func([]byte) error) *OpLog { return &OpLog{block: block, sent: time.Now()} }

// Add takes an operation that has ended.
func (l *OpLog) Add(op record.Op) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ops = append(l.ops, op)
	if len(l.ops) >= record.BlockSize || time.Since(l.sent) > flushEvery {
		return l.send()
	}
	return nil
}

// Flush passes on what it has.
func (l *OpLog) Flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.send()
}

func (l *OpLog) send() error {
	if len(l.ops) == 0 {
		return nil
	}
	err := l.block(record.AppendBlock(nil, l.ops))
	l.ops, l.sent = l.ops[:0], time.Now()
	return err
}
