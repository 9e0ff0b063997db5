package httpload

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/http2"

	"github.com/plimsoll-project/plimsoll/internal/redirect"
	"github.com/plimsoll-project/plimsoll/internal/timing"
	"github.com/plimsoll-project/plimsoll/internal/trust"
	"github.com/plimsoll-project/plimsoll/record"
)

const (
	netBuffer = 64 << 10 // size of the pooled receive buffers
	// maxDrain is the size of the largest body of a failed answer that is read to the end, so
	// that its connection can be kept.
	maxDrain = 256 << 10
)

// Causes of the end of an operation's context.
var (
	errStalled  = errors.New("stalled")
	errDeadline = errors.New("deadline")
	errWindow   = errors.New("window closed")
)

// netRun is a trial through net/http: TLS, HTTP/2.
type netRun struct {
	*trial
	buffers sync.Pool
	ctx     context.Context // ends with the window

	mu        sync.Mutex
	tally     *tally
	protocols map[string]bool
}

// netWorker is a connection slot. It has its own transport, so that concurrency means
// connections even with HTTP/2.
type netWorker struct {
	*netRun
	id        int
	transport *http.Transport
	fails     int
}

func runNetHTTP(ctx context.Context, t *trial, res *Result) error {
	s := t.spec
	r := &netRun{trial: t, tally: newTally(t.rec, t.link), protocols: map[string]bool{},
		buffers: sync.Pool{New: func() any { return new([netBuffer]byte) }}}
	config, err := trust.Config(s.CAFile, s.Insecure)
	if err != nil {
		return err
	}
	user := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.ctx = ctx
	workers := make([]*netWorker, s.connections())
	for i := range workers {
		workers[i] = &netWorker{netRun: r, id: s.FirstWorker + i, transport: r.newTransport(config)}
		defer workers[i].transport.CloseIdleConnections()
	}
	if s.Warmup > 0 {
		r.warmUp(workers)
	}
	t.start()
	if s.Duration > 0 {
		defer time.AfterFunc(time.Duration(r.started-r.now())+s.Duration, func() { cancel(errWindow) }).Stop()
	}
	stop := timing.Every(s.Window, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.tally.flush(r.now())
	})
	t.cpuBegan = timing.SelfCPU()
	if s.Arrivals == nil {
		r.closedLoop(workers)
	} else {
		r.openLoop(workers)
	}
	t.cpuEnded = timing.SelfCPU()
	res.Started, res.Ended = r.started, r.now()
	stop()
	if r.ctx.Err() == nil { // everything was done before the window ended
		res.Ended = max(r.started+t.schedule.arrivalsEnd(), r.tally.last)
	}
	if s.Arrivals != nil && user.Err() == nil {
		t.notStarted(r.tally, res.Ended)
	}
	r.tally.flush(res.Ended)
	t.sum, res.Receive = r.tally, "net/http"
	res.Protocol = strings.Join(slices.Sorted(maps.Keys(r.protocols)), ", ")
	return nil
}

func (r *netRun) now() int64 { return int64(time.Since(r.epoch)) }

// warmUp sends one request per worker before the clock starts.
func (r *netRun) warmUp(workers []*netWorker) {
	all := r.ctx
	ctx, cancel := context.WithTimeoutCause(all, 2*r.spec.Stall, errWindow)
	defer cancel()
	r.ctx = ctx
	var wg sync.WaitGroup
	for _, w := range workers {
		wg.Go(func() {
			req := r.schedule.warmup(w.id, r.spec.Warmup)
			req.intended = r.now()
			w.do(req, req.intended)
			w.fails = 0
		})
	}
	wg.Wait()
	r.ctx = all
}

func (r *netRun) closedLoop(workers []*netWorker) {
	var wg sync.WaitGroup
	for _, w := range workers {
		wg.Go(func() {
			for n := 0; r.ctx.Err() == nil && (r.spec.PerWorker == 0 || n < r.spec.PerWorker); n++ {
				req, ok := r.schedule.claim()
				if !ok {
					return
				}
				now := r.now()
				req.intended = now - r.started
				w.do(req, now)
			}
		})
	}
	wg.Wait()
}

// openLoop starts arrivals on free workers, the last used first.
func (r *netRun) openLoop(free []*netWorker) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	slots := make(chan struct{}, len(free)) // one for each operation in flight
	possible := int64(0)                    // when a worker became free after all were busy
	slices.Reverse(free)
	for {
		full := len(slots) == cap(slots)
		select {
		case slots <- struct{}{}:
		case <-r.ctx.Done():
		}
		if full {
			possible = r.now()
		}
		req, more := r.await()
		if !more {
			break
		}
		mu.Lock()
		w := free[len(free)-1]
		free = free[:len(free)-1]
		mu.Unlock()
		from := max(possible, r.started+req.intended)
		wg.Go(func() {
			w.do(req, from)
			mu.Lock()
			free = append(free, w)
			mu.Unlock()
			<-slots
		})
	}
	wg.Wait()
}

// await waits for the next arrival; more is false if none follows.
func (r *netRun) await() (req request, more bool) {
	for r.ctx.Err() == nil {
		req, ok, at, more := r.schedule.claimDue(r.now() - r.started)
		if ok || !more {
			return req, ok
		}
		timing.Pause(r.ctx, time.Duration(r.started+at-r.now()))
	}
	return req, false
}

// newTransport returns a transport for a worker.
func (r *netRun) newTransport(c *tls.Config) *http.Transport {
	t := &http.Transport{
		TLSClientConfig:        c.Clone(), // net/http changes it
		DisableCompression:     true,      // we request and check identity
		DisableKeepAlives:      r.spec.Connections == connFresh,
		MaxConnsPerHost:        1,
		MaxResponseHeaderBytes: maxHead,
		ReadBufferSize:         16 << 10,
		ForceAttemptHTTP2:      r.spec.HTTP != http11,
	}
	if r.spec.HTTP == http11 {
		t.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	}
	return t
}

// fetch is an operation in flight.
type fetch struct {
	*netRun
	op        record.Op
	req       request
	wrong     bool
	phase     string
	stall     *time.Timer
	before    int64 // bytes that the link had carried when the last byte arrived
	connected bool
	redirects int // followed
}

// do executes one operation; possible is the earliest time at which it could have started.
func (w *netWorker) do(req request, possible int64) {
	r, s := w.netRun, w.spec
	f := &fetch{netRun: r, op: r.newOp(&req, w.id, r.now()), req: req, phase: record.PhaseConnect}
	r.mu.Lock()
	r.tally.begin(&f.op, possible)
	r.mu.Unlock()
	ctx, cancel := context.WithCancelCause(r.ctx)
	defer cancel(nil)
	f.before = r.link.carried()
	f.stall = time.AfterFunc(s.Stall, func() { cancel(errStalled) })
	defer f.stall.Stop()
	if s.Deadline > 0 {
		defer time.AfterFunc(s.Deadline, func() { cancel(errDeadline) }).Stop()
	}

	f.op.Outcome, f.op.Class = w.roundTrip(ctx, f)
	if f.wrong {
		f.op.Outcome, f.op.Class = record.WrongBytes, classWrong
	}
	f.op.LastByte = r.now()
	r.mu.Lock()
	r.tally.end(&f.op, &req)
	r.tally.redirects += int64(f.redirects)
	r.mu.Unlock()
	if f.op.Status != 0 || s.Arrivals != nil {
		w.fails = 0
		return
	}
	timing.Pause(r.ctx, backoff(w.fails))
	w.fails++
}

func (w *netWorker) roundTrip(ctx context.Context, f *fetch) (record.Outcome, string) {
	object := &w.spec.Objects[f.req.object]
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { f.connected = true },
	})
	hr, err := object.request(ctx, &f.req)
	if err != nil {
		return record.Cancelled, classLocalFailure + "invalid request"
	}
	resp, followed, err := redirect.Do(hr, object.Header, w.transport.RoundTrip)
	f.redirects = followed
	if err != nil {
		return f.failed(ctx, err, false)
	}
	defer resp.Body.Close()
	f.phase = record.PhaseBody
	f.listenFrom()
	f.op.Status = uint16(resp.StatusCode)
	w.mu.Lock()
	w.protocols[map[bool]string{true: "h2", false: "http/1.1"}[resp.ProtoMajor == 2]] = true
	w.mu.Unlock()
	if w.spec.HTTP == http2Only && resp.ProtoMajor != 2 {
		return record.Error, "http/2 not offered"
	}

	o, class, length := judge(headOf(resp), &f.req, object.Size)
	if o != record.OK {
		if resp.ContentLength >= 0 && resp.ContentLength <= maxDrain {
			io.Copy(io.Discard, resp.Body) // so that the connection can be kept
		}
		return o, class
	}
	return f.body(ctx, resp.Body, length)
}

// body reads length bytes (-1: until the end) and compares them.
func (f *fetch) body(ctx context.Context, body io.Reader, length int64) (record.Outcome, string) {
	buf := f.buffers.Get().(*[netBuffer]byte)
	defer f.buffers.Put(buf)
	compare := f.expected[f.req.object].at(f.req.off)
	for {
		n, err := body.Read(buf[:])
		if n > 0 {
			f.op.FirstByte = cmp.Or(f.op.FirstByte, f.now())
			f.link.bytes.Add(int64(n))
			f.listenFrom()
			p := buf[:n]
			if length >= 0 {
				p = p[:min(int64(n), length-f.op.Bytes)]
			}
			f.op.Bytes += int64(len(p))
			f.wrong = f.wrong || !compare.check(p)
			if len(p) < n {
				return record.Error, classLong
			}
		}
		switch {
		case err == io.EOF && length >= 0 && f.op.Bytes < length:
			return record.Truncated, classEOFBody
		case err == io.EOF:
			return record.OK, ""
		case err != nil:
			return f.failed(ctx, err, true)
		}
	}
}

// listenFrom restarts the stall limit.
func (f *fetch) listenFrom() {
	f.before = f.link.carried()
	f.stall.Reset(f.spec.Stall)
}

// failed classifies an error of net/http.
func (f *fetch) failed(ctx context.Context, err error, inBody bool) (record.Outcome, string) {
	if f.connected && !inBody {
		f.phase = record.PhaseBeforeHead
	}
	switch context.Cause(ctx) {
	case nil:
	case errStalled:
		if f.link.starved(f.before, int64(f.spec.Stall), f.req.length) {
			return record.Starved, f.phase
		}
		return record.Stalled, f.phase
	case errDeadline:
		return record.Deadline, f.phase
	case errWindow:
		return record.InFlight, f.phase
	default:
		return record.Cancelled, f.phase
	}

	var errno syscall.Errno
	if errors.As(err, &errno) {
		outcome, class := errnoOutcome(errno)
		switch {
		case outcome == record.Stalled:
			return outcome, f.phase
		case strings.HasPrefix(class, classLocalFailure): // not certain: calls of an HTTP client fail in more ways
			return record.Error, errno.Error()
		}
		return outcome, class
	}
	if inBody && errors.Is(err, io.ErrUnexpectedEOF) {
		return record.Truncated, classEOFBody
	}
	return record.Error, protocolFailure(err, inBody)
}

// protocolFailure returns the class of an error that does not come from the kernel.
func protocolFailure(err error, inBody bool) string {
	var stream http2.StreamError
	var cert *tls.CertificateVerificationError
	text := err.Error()
	switch {
	case errors.As(err, &cert):
		return "tls: certificate not trusted"
	case errors.As(err, &stream):
		return "h2 stream error " + stream.Code.String()
	case errors.Is(err, redirect.ErrTooMany), strings.HasPrefix(text, "redirect to "):
		return "redirect not followed"
	case strings.Contains(text, "response headers exceeded"):
		return errHeadTooLarge.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return classEOFBefore
	case strings.HasPrefix(text, "tls: "), strings.Contains(text, "remote error: tls"):
		return "tls: handshake failed"
	case inBody:
		return "broken body"
	}
	return errMalformedHead.Error()
}
