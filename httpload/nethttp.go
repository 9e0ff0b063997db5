package httpload

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/http2"

	"github.com/plimsoll-project/plimsoll/internal/redirect"
	"github.com/plimsoll-project/plimsoll/record"
)

// netBuffer is the size of the pooled buffers that bodies are read into.
const netBuffer = 64 << 10

// Why an operation's context ended.
var (
	errStalled  = errors.New("stalled")
	errDeadline = errors.New("deadline")
	errWindow   = errors.New("window closed")
)

// netRun is a trial through net/http: TLS, HTTP/2.
type netRun struct {
	trial   *trial
	tls     []*tls.Config // of each object
	buffers sync.Pool
	ctx     context.Context // ends with the window
	started int64

	mu        sync.Mutex
	tally     *tally
	protocols map[string]bool
}

// netWorker is a connection slot: its transports are its own, so that
// concurrency means connections with HTTP/2 as well.
type netWorker struct {
	run        *netRun
	id         int
	transports map[*tls.Config]*http.Transport
	fails      int
}

func runNetHTTP(ctx context.Context, t *trial, res *Result) error {
	s := t.spec
	r := &netRun{trial: t, tally: newTally(t.rec, t.link), protocols: map[string]bool{},
		buffers: sync.Pool{New: func() any { return new([netBuffer]byte) }}}
	if err := r.loadTLS(); err != nil {
		return err
	}
	user := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.ctx = ctx
	var workers []*netWorker
	if s.Arrivals == nil {
		for i := range s.Concurrency {
			workers = append(workers, r.worker(s.FirstWorker+i))
			defer workers[i].close()
		}
	}
	if s.Warmup > 0 {
		r.warmUp(workers)
	}
	r.started = t.start()
	if s.Duration > 0 {
		defer time.AfterFunc(time.Duration(r.started-r.now())+s.Duration, func() { cancel(errWindow) }).Stop()
	}
	stop := every(s.Window, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.tally.flush(r.now())
	})
	t.begin()
	if s.Arrivals == nil {
		r.closedLoop(workers)
	} else {
		r.openLoop()
	}
	t.finish()
	res.Started, res.Ended = r.started, r.now()
	stop()
	if r.ctx.Err() == nil { // all was done: what the workers waited for after that was nothing
		res.Ended = max(r.started+t.schedule.arrivalsEnd(), r.tally.last)
	}
	if s.Arrivals != nil && user.Err() == nil {
		t.notStarted(r.tally, r.started, res.Ended)
	}
	r.tally.flush(res.Ended)
	t.sum = newTally(t.rec, t.link)
	r.tally.addTo(res, t.sum)
	res.Protocol = strings.Join(slices.Sorted(maps.Keys(r.protocols)), ", ")
	return nil
}

func (r *netRun) now() int64 { return int64(time.Since(r.trial.epoch)) }

// warmUp lets each worker have one answer before the clock starts.
func (r *netRun) warmUp(workers []*netWorker) {
	s, all := r.trial.spec, r.ctx
	ctx, cancel := context.WithTimeoutCause(all, 2*s.Stall, errWindow)
	defer cancel()
	r.ctx = ctx
	var wg sync.WaitGroup
	for _, w := range workers {
		wg.Go(func() {
			req := r.trial.schedule.warmup(w.id, s.Warmup)
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
			for n := 0; r.ctx.Err() == nil && (r.trial.spec.PerWorker == 0 || n < r.trial.spec.PerWorker); n++ {
				req, ok := r.trial.schedule.claim()
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

// openLoop starts arrivals on the workers that are free, the last used first.
func (r *netRun) openLoop() {
	var (
		wg       sync.WaitGroup
		mu       sync.Mutex
		free     []*netWorker
		freed    = make(chan struct{}, r.trial.spec.MaxInFlight)
		possible int64 // when a worker became free after none was
	)
	for i := range r.trial.spec.MaxInFlight {
		free = append(free, r.worker(r.trial.spec.FirstWorker+i))
		defer free[i].close()
		freed <- struct{}{}
	}
	slices.Reverse(free)
	for {
		select {
		case <-freed:
		default:
			select {
			case <-freed:
				possible = r.now()
			case <-r.ctx.Done():
			}
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
			freed <- struct{}{}
		})
	}
	wg.Wait()
}

// await waits for the next arrival; more is false when none follows.
func (r *netRun) await() (req request, more bool) {
	for r.ctx.Err() == nil {
		req, ok, at, more := r.trial.schedule.claimDue(r.now() - r.started)
		if ok || !more {
			return req, ok
		}
		select {
		case <-time.After(time.Duration(r.started + at - r.now())):
		case <-r.ctx.Done():
		}
	}
	return req, false
}

func newOp(req *request, worker int, started, now int64) record.Op {
	op := record.Op{
		Kind: req.kind(), Worker: uint32(worker), Object: uint32(req.object), Offset: req.off, Length: req.length,
		Intended: started + req.intended, Start: now,
	}
	if req.warm {
		op.Kind = record.OpWarmup
	}
	return op
}

func (r *netRun) worker(id int) *netWorker {
	return &netWorker{run: r, id: id, transports: map[*tls.Config]*http.Transport{}}
}

func (w *netWorker) close() {
	for _, t := range w.transports {
		t.CloseIdleConnections()
	}
}

func (w *netWorker) transport(c *tls.Config) *http.Transport {
	if t := w.transports[c]; t != nil {
		return t
	}
	s := w.run.trial.spec
	t := &http.Transport{
		TLSClientConfig:        c.Clone(), // net/http changes it
		DisableCompression:     true,      // identity is asked for; what comes is looked at
		DisableKeepAlives:      s.Connections == connFresh,
		MaxConnsPerHost:        1,
		MaxResponseHeaderBytes: maxHead,
		ReadBufferSize:         16 << 10,
		ForceAttemptHTTP2:      s.HTTP != http11,
	}
	if s.HTTP == http11 {
		t.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	}
	w.transports[c] = t
	return t
}

// fetch is one operation under way.
type fetch struct {
	op        record.Op
	req       request
	wrong     int64
	phase     string
	cancel    context.CancelCauseFunc
	stall     *time.Timer
	limit     time.Duration // of stall
	link      *linkUse
	before    int64 // what the link had carried when a byte came last
	conns     int
	dials     int
	redirects int // followed
	proto     string
	chunks    bool
}

// do executes one operation; possible is when it could have started.
func (w *netWorker) do(req request, possible int64) {
	r, s := w.run, w.run.trial.spec
	f := &fetch{op: newOp(&req, w.id, r.started, r.now()), req: req, wrong: -1, phase: phaseConnect, limit: s.Stall,
		link: r.trial.link}
	r.mu.Lock()
	r.tally.begin(&f.op, possible)
	r.mu.Unlock()

	ctx, cancel := context.WithCancelCause(r.ctx)
	f.cancel = cancel
	defer cancel(nil)
	f.before = f.link.carried()
	f.stall = time.AfterFunc(s.Stall, func() { cancel(errStalled) })
	defer f.stall.Stop()
	if s.Deadline > 0 {
		defer time.AfterFunc(s.Deadline, func() { cancel(errDeadline) }).Stop()
	}
	o, class := w.roundTrip(ctx, f)
	if f.wrong >= 0 {
		o, class = record.WrongBytes, classWrong
	}
	f.op.Outcome, f.op.Class, f.op.LastByte = o, class, r.now()
	if req.warm {
		req.settle(&f.op)
	}

	r.mu.Lock()
	r.tally.end(&f.op)
	r.tally.dials += int64(f.dials)
	if f.conns > 1+f.redirects {
		r.tally.reconnects += int64(f.conns - 1 - f.redirects)
	}
	if f.chunks {
		r.tally.chunked++
	}
	r.tally.redirects += int64(f.redirects)
	if f.proto != "" {
		r.protocols[f.proto] = true
	}
	r.mu.Unlock()

	if f.op.Status != 0 || s.Arrivals != nil {
		w.fails = 0
		return
	}
	// No answer at all: asking again at once would be a busy loop.
	select {
	case <-time.After(min(time.Millisecond<<min(w.fails, 7), 100*time.Millisecond)):
	case <-r.ctx.Done():
	}
	w.fails++
}

func (w *netWorker) roundTrip(ctx context.Context, f *fetch) (record.Outcome, string) {
	r, s := w.run, w.run.trial.spec
	object := &s.Objects[f.req.object]
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(i httptrace.GotConnInfo) {
			f.conns++
			if !i.Reused {
				f.dials++
			}
		},
	})
	hr, err := http.NewRequestWithContext(ctx, f.req.method(), object.URL, nil)
	if err == nil && f.req.uri != "" {
		var own *url.URL
		if own, err = url.ParseRequestURI(f.req.uri); err == nil {
			hr.URL.Path, hr.URL.RawPath, hr.URL.RawQuery = own.Path, own.RawPath, own.RawQuery
		}
	}
	if err != nil {
		return record.Cancelled, classLocalFailure + "invalid request"
	}
	hr.Header.Set("User-Agent", userAgent)
	for name, v := range object.Header {
		if strings.EqualFold(name, "Host") {
			hr.Host = v[0]
			continue
		}
		hr.Header[textproto.CanonicalMIMEHeaderKey(name)] = v
	}
	hr.Header.Set("Accept-Encoding", "identity")
	if !f.req.whole {
		hr.Header.Set("Range", string(appendRange(nil, &f.req)))
	}
	var resp *http.Response
	trip := w.transport(r.tls[f.req.object]).RoundTrip
	if object.Follow {
		resp, f.redirects, err = redirect.Do(hr, object.Header, trip)
	} else {
		resp, err = trip(hr)
	}
	if err != nil {
		return f.failed(ctx, err, false)
	}
	defer resp.Body.Close()
	f.phase = phaseBody
	f.listenFrom()
	f.op.Status = uint16(resp.StatusCode)
	f.proto = map[bool]string{true: "h2", false: "http/1.1"}[resp.ProtoMajor == 2]
	if s.HTTP == http2Only && resp.ProtoMajor != 2 {
		return record.Error, "http/2 not offered"
	}
	h := head{status: resp.StatusCode, length: resp.ContentLength, total: -1}
	if f.req.head {
		h.length = 0
	}
	f.chunks = slices.Contains(resp.TransferEncoding, "chunked")
	h.encoding = encodingName(resp.Header.Get("Content-Encoding"))
	if v := resp.Header.Values("Content-Range"); len(v) > 0 {
		h.ranged = true
		if err := h.contentRange(v[0]); err != nil || len(v) > 1 {
			return record.Error, errContentRange.Error()
		}
	}
	o, class, length := judge(&h, &f.req, object.Size)
	if o != record.OK {
		if resp.ContentLength >= 0 && resp.ContentLength <= maxDrain {
			io.Copy(io.Discard, resp.Body) // so that the connection can be kept
		}
		return o, class
	}
	return w.body(ctx, f, resp.Body, length)
}

// body reads length bytes (-1: until the end) and compares them.
func (w *netWorker) body(ctx context.Context, f *fetch, body io.Reader, length int64) (record.Outcome, string) {
	r := w.run
	buf := r.buffers.Get().(*[netBuffer]byte)
	defer r.buffers.Put(buf)
	compare := r.trial.expected[f.req.object].at(f.req.off)
	for {
		n, err := body.Read(buf[:])
		if n > 0 {
			if f.op.FirstByte == 0 {
				f.op.FirstByte = r.now()
			}
			f.link.bytes.Add(int64(n))
			f.listenFrom()
			p := buf[:n]
			if length >= 0 {
				p = p[:min(int64(n), length-f.op.Bytes)]
			}
			f.op.Bytes += int64(len(p))
			if f.wrong < 0 {
				if at, ok := compare.check(p); !ok {
					f.wrong = at
				}
			}
			if len(p) < n {
				return record.Error, classLong
			}
		}
		if err == io.EOF {
			if length >= 0 && f.op.Bytes < length {
				return record.Truncated, classEOFBody
			}
			return record.OK, ""
		}
		if err != nil {
			return f.failed(ctx, err, true)
		}
	}
}

// listenFrom begins the time in which no byte comes.
func (f *fetch) listenFrom() {
	f.before = f.link.carried()
	f.stall.Reset(f.limit)
}

// failed classifies what net/http says went wrong.
func (f *fetch) failed(ctx context.Context, err error, inBody bool) (record.Outcome, string) {
	if cause := context.Cause(ctx); cause != nil {
		if f.conns > 0 && !inBody {
			f.phase = phaseBeforeHead
		}
		switch cause {
		case errStalled:
			if f.link.starved(f.before, int64(f.limit), f.req.length) {
				return record.Starved, f.phase
			}
			return record.Stalled, f.phase
		case errDeadline:
			return record.Deadline, f.phase
		case errWindow:
			return record.InFlight, f.phase
		}
		return record.Cancelled, f.phase
	}
	switch outcome, class := protocolFailure(err); {
	case outcome == record.Stalled:
		return outcome, f.phase
	case class != "":
		return outcome, class
	case inBody && errors.Is(err, io.ErrUnexpectedEOF):
		return record.Truncated, classEOFBody
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return record.Error, classEOFBefore
	case strings.HasPrefix(err.Error(), "tls: ") || strings.Contains(err.Error(), "remote error: tls"):
		return record.Error, "tls: handshake failed"
	case inBody:
		return record.Error, "broken body"
	}
	return record.Error, errMalformedHead.Error()
}

// protocolFailure classifies what the error itself names; an empty class: nothing.
func protocolFailure(err error) (record.Outcome, string) {
	var (
		errno  syscall.Errno
		stream http2.StreamError
		cert   *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &cert):
		return record.Error, "tls: certificate not trusted"
	case errors.As(err, &stream):
		return record.Error, "h2 stream error " + stream.Code.String()
	case errors.As(err, &errno):
		o, class := errnoOutcome(errno)
		if strings.HasPrefix(class, classLocalFailure) { // or not: an HTTP client's call fails in more ways
			return record.Error, errno.Error()
		}
		return o, class
	case errors.Is(err, redirect.ErrTooMany), strings.HasPrefix(err.Error(), "redirect to "):
		return record.Error, classNotFollowed
	case strings.Contains(err.Error(), "response headers exceeded"):
		return record.Error, errHeadTooLarge.Error()
	}
	return record.Error, ""
}

// loadTLS makes one TLS configuration for each kind that the objects ask for.
func (r *netRun) loadTLS() error {
	type kind struct {
		file     string
		insecure bool
	}
	made := map[kind]*tls.Config{}
	for i := range r.trial.spec.Objects {
		o := &r.trial.spec.Objects[i]
		k := kind{o.CAFile, o.Insecure}
		if made[k] == nil {
			c := &tls.Config{InsecureSkipVerify: o.Insecure}
			if o.CAFile != "" {
				pem, err := os.ReadFile(o.CAFile)
				if err != nil {
					return fmt.Errorf("httpload: root certificate: %w", err)
				}
				c.RootCAs, err = x509.SystemCertPool()
				if err != nil {
					c.RootCAs = x509.NewCertPool()
				}
				if !c.RootCAs.AppendCertsFromPEM(pem) {
					return fmt.Errorf("httpload: root certificate: %s holds no certificate in PEM form", o.CAFile)
				}
			}
			made[k] = c
		}
		r.tls = append(r.tls, made[k])
	}
	return nil
}
