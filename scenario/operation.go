package scenario

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/workload"
)

// Operation is one operation of a trial under the experiment's limits: it ends at its
// deadline, or when no byte of its object has moved for the stall limit.
//
// Bytes are counted where they pass between the system's code and ours. A read can stall from
// its start. A write can stall only until the system has taken the last byte, since many
// systems answer only after long, silent work. An operation that moves no object cannot stall.
// The deadline applies to all of them.
type Operation struct {
	Ctx   context.Context
	end   context.CancelCauseFunc
	limit time.Duration // stall limit

	mu    sync.Mutex
	cut   time.Time   // when it was cut off; zero: it was not
	timer *time.Timer // stall timer; nil: cannot stall
	moved int64
	first time.Time // when the first byte was received
	wrong bool      // received bytes differ from the object's
	sends bool      // bytes go to the system

	unread error // why the content to send could not be read
}

// count adds n moved bytes and restarts the stall timer; done means that no more bytes will move.
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

// Sending returns a reader of the content for the system.
func (w *Operation) Sending(c workload.Content) io.Reader { return w.SendingFrom(c.Reader(), c.Size) }

// SendingFrom returns a reader of size bytes of from for the system.
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
	s.w.count(n, s.left <= 0)
	switch {
	case s.left < 0:
		err = errors.New("it is longer than it was")
	case errors.Is(err, io.EOF) && s.left > 0:
		err = fmt.Errorf("it ends %d bytes too early: %w", s.left, io.ErrUnexpectedEOF)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		s.w.mu.Lock()
		defer s.w.mu.Unlock()
		s.w.unread = err
	}
	return n, err
}

// ErrOwnData means that the content to send or to compare with could not be read, which is no
// failure of the system.
var ErrOwnData = errors.New("its own data could not be read")

// Reasons for the failure of a read whose own error, if any, does not name them.
var (
	ErrWrongBytes = errors.New("these bytes are not the object's")
	ErrTooShort   = errors.New("it ended before the object did")
)

// Receiving returns a writer that compares every byte with c, starting at an offset.
func (w *Operation) Receiving(c workload.Content, off int64) io.Writer {
	want, buf := c.Reader(), []byte{}
	_, _ = want.Seek(off, io.SeekStart) // fails only for negative offsets
	return w.Comparing(func(p []byte) bool {
		buf = append(buf[:0], p...) // Check works in place, and p belongs to the system
		return want.Check(buf)
	})
}

// Comparing returns a writer that passes bytes to same. If same returns false, the writer fails,
// which ends the operation: further wrong bytes would add no information.
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

// Timed executes one operation under the limits. op describes it; Timed adds the result, by the
// trial's clock. It returns the error of do or, if do returned nil, why the operation is not ok.
//
// If a failed operation was cut off, the time of the system's cleanup after that does not count.
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
	case w.unread != nil:
		op.Outcome, op.Class = record.Cancelled, ErrOwnData.Error()
		err = fmt.Errorf("%w: %w", ErrOwnData, w.unread)
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

// Nanos returns a time in the format of operations, at least 1: there, 0 means none.
func Nanos(d time.Duration) int64 { return max(1, d.Nanoseconds()) }

// SettleBriefly limits a wait after the previous one was in vain. Some systems never settle
// (until a buffer is full): waiting for an operation's deadline in every trial would take hours,
// and not waiting at all would never notice a change.
const SettleBriefly = 5 * time.Second

// Saturated reports whether this process limited its operations: it kept saturatedShare of a
// core busy for each worker (or of all cores, if they are fewer). A client that waits only for
// its own work uses a whole core; waiting for a server or a link leaves the core idle. busy is
// the sum of the operations' times in seconds, cpu the CPU seconds of this process.
//
// Periods shorter than saturatedFrom are not judged: the kernel counts CPU in ticks, and
// observing processes takes some CPU now and then.
func Saturated(cpu, busy float64, workers, cores int) bool {
	wall := busy / float64(workers)
	return wall >= saturatedFrom && cpu >= saturatedShare*wall*float64(min(workers, cores))
}

const (
	saturatedShare = 0.8
	saturatedFrom  = 0.1 // seconds
)

// Workers calls do in n concurrent workers. The first error ends the context of all. Workers
// returns the cause of ctx's end, else that error.
func Workers(ctx context.Context, n int, do func(ctx context.Context, worker int) error) error {
	group, within := errgroup.WithContext(ctx)
	for worker := range n {
		group.Go(func() error { return do(within, worker) })
	}
	err := group.Wait()
	return cmp.Or(context.Cause(ctx), err)
}

// Tally counts the operations of a trial in this process, and sends them to its sink in blocks. It
// is safe for concurrent use.
type Tally struct {
	sink Sink

	mu          sync.Mutex
	ops         []record.Op   // not sent yet
	sent        time.Time     // when others were sent
	Ended       int64         // operations
	Failed      int64         // operations that were not ok
	Busy        time.Duration // total time of operations, from call to return
	moved       int64         // bytes of objects
	first, last int64         // start of the first and end of the last, in nanoseconds since the epoch
}

// NewTally returns a Tally for a trial.
func NewTally(sink Sink) *Tally { return &Tally{sink: sink, sent: time.Now()} }

// Add counts an ended operation, and sends it with others.
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
	y.ops = append(y.ops, op)
	if len(y.ops) >= record.BlockSize || time.Since(y.sent) > flushEvery {
		return y.send()
	}
	return nil
}

// flushEvery is the time after which the next operation flushes those that wait.
const flushEvery = time.Second

// Flush sends the operations that wait.
func (y *Tally) Flush() error {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.send()
}

func (y *Tally) send() error {
	if len(y.ops) == 0 {
		return nil
	}
	err := y.sink.Block(record.AppendBlock(nil, y.ops))
	y.ops, y.sent = y.ops[:0], time.Now()
	return err
}

// Load returns the facts about the load generator. cpu is this process's CPU seconds in the
// whole trial, loop those in the operations (with several workers, also between operations).
func (y *Tally) Load(cpu, loop float64, workers int) Load {
	load := Load{Seconds: time.Duration(y.last - y.first).Seconds(), CPU: cpu}
	if Saturated(loop, y.Busy.Seconds(), workers, runtime.GOMAXPROCS(0)) {
		load.Invalid = append(load.Invalid, record.ReasonGeneratorSaturated)
		load.Notes = append(load.Notes, fmt.Sprintf("generator: it used %.2g s of CPU in %.2g s of operations", loop,
			y.Busy.Seconds()/float64(workers)))
	}
	return load
}

// Reasons for cutting off an operation, as causes of its context's end.
var (
	ErrStalled  = errors.New("no byte arrived within the stall limit")
	ErrDeadline = errors.New("the operation's deadline passed")
)

// contractErrors maps the errors of package system to classes. An error that wraps several of
// them has the class of the first.
var contractErrors = []struct {
	err   error
	class string
}{
	{system.ErrBadRef, "malformed reference"},
	{system.ErrNotFound, "not found"},
	{system.ErrAuth, "wrong credentials"},
	{system.ErrLocked, "locked"},
	{system.ErrQuota, "quota or disk full"},
	{system.ErrTooFew, "too few servers"},
	{system.ErrReadOnly, "read only"},
	{system.ErrNoRange, "no ranges"},
	{system.ErrWarm, "not cold"},
}

// statusRE finds the status in the text of a system's error: "status 503".
var statusRE = regexp.MustCompile(`\bstatus (\d{3})\b`)

// OutcomeOf derives the outcome of an operation from its error and the cause of its context's
// end (nil if the context had not ended). class is empty if the outcome needs none, such as OK;
// status is 0 if the error names none.
func OutcomeOf(err, cause error) (outcome record.Outcome, class string, status uint16) {
	switch {
	case err == nil:
		return record.OK, "", 0
	// the experiment's limit, or the system's own
	case errors.Is(cause, ErrStalled), cause == nil && errors.Is(err, system.ErrStalled):
		return record.Stalled, "", 0
	case errors.Is(cause, ErrDeadline):
		return record.Deadline, "", 0
	case cause != nil:
		return record.Cancelled, "", 0
	}
	if m := statusRE.FindStringSubmatch(err.Error()); m != nil {
		n, _ := strconv.Atoi(m[1])
		status = uint16(n)
	}
	for _, c := range contractErrors {
		if errors.Is(err, c.err) {
			return record.Error, c.class, status
		}
	}
	var timeout net.Error
	named := "status " + strconv.Itoa(int(status))
	switch {
	case status == 429 || status == 503:
		return record.Refused, named, status
	case errors.Is(err, syscall.ECONNREFUSED):
		return record.Refused, "connection refused", status
	case errors.Is(err, io.ErrUnexpectedEOF):
		return record.Truncated, "", status
	case status != 0:
		return record.Error, named, status
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return record.Error, "connection reset", 0
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return record.Error, "timeout of the system's own", 0
	}
	return record.Error, shortClass(err), 0
}

// classLength limits the text of a class that is derived from an error's text.
const classLength = 60

// digitsRE matches the parts that differ between errors of the same class: numbers, and the
// hexadecimal and base-32 names of objects.
var digitsRE = regexp.MustCompile(`[A-Za-z0-9_-]*[0-9][A-Za-z0-9_-]*`)

// shortClass returns the innermost error's text without names of objects, so that the same
// failure of many objects is one class.
func shortClass(err error) string {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return words.Clip(strings.Join(strings.Fields(digitsRE.ReplaceAllString(err.Error(), "#")), " "), classLength)
}

// errorLength limits the text of an error that is kept for each object.
const errorLength = 300

// ShortError returns the text of an error, clipped because it is kept for each object.
func ShortError(err error) string { return words.Clip(err.Error(), errorLength) }
