package httpload

import (
	"cmp"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
)

// Generator is a load process running [Serve], with its input and output.
type Generator struct {
	In  io.WriteCloser
	Out io.ReadCloser
	// Elsewhere: it is on a machine with its own clock, which is compared with ours.
	Elsewhere bool
	// Ended returns how its process ended, if it did.
	Ended func() error
}

// ClockOffset is how far a generator's clock is ahead of ours, and the largest error of its
// times after correction.
type ClockOffset struct{ Ahead, Error time.Duration }

const (
	exchanges  = 20                    // number of time requests to compare clocks
	startDelay = 20 * time.Millisecond // time to tell all generators when to start
	lastWords  = 5 * time.Second       // how long a cancelled generator may take to report its result
)

// Split divides a load among at most n generators: of every n operations, each executes one.
// In a closed loop all have the same number of connections, so that their load is equal;
// therefore there may be fewer than n generators.
func (s Spec) Split(n int) []Spec {
	all := max(1, s.connections())
	n = max(1, min(n, all))
	for s.Arrivals == nil && all%n != 0 {
		n--
	}
	parts := make([]Spec, n)
	first := 0
	for i := range parts {
		part := s
		part.Shard, part.Shards, part.FirstWorker = i, n, first
		own := (all + n - 1 - i) / n
		if s.Arrivals != nil {
			part.MaxInFlight = own
		} else {
			part.Concurrency = min(s.Concurrency, own)
		}
		first += own
		parts[i] = part
	}
	return parts
}

// Drive sends each generator its part of a load, starts all at the same time, and returns
// their combined result. Blocks of operations (valid only during the call) and progress are
// passed to the callbacks, which are never called concurrently; times are of
// our clock. When ctx ends, operations in flight are recorded as cancelled and the result is
// partial. The generators end when their input is closed, which Drive does only if it fails or ctx ends.
func Drive(ctx context.Context, parts []Spec, generators []Generator, onBlock func([]byte) error,
	onProgress func(Progress)) (Result, error) {
	d := &drive{onBlock: onBlock, onProgress: onProgress}
	for i := range parts {
		d.shards = append(d.shards, &shard{Generator: generators[i], drive: d, spec: parts[i],
			gob: gob.NewDecoder(generators[i].Out)})
	}
	stop := context.AfterFunc(ctx, func() {
		d.closeInputs()
		time.AfterFunc(lastWords, d.closeOutputs)
	})
	defer stop()

	if err := d.each((*shard).prepare); err != nil {
		return Result{}, err
	}
	at := time.Now()
	if len(d.shards) > 1 || d.shards[0].Elsewhere {
		slowest := time.Duration(0) // message to a generator
		for _, s := range d.shards {
			slowest = max(slowest, s.clock.Error)
		}
		at = at.Add(startDelay + 2*slowest)
	}
	if err := d.each(func(s *shard) error { return s.run(ctx, at) }); err != nil {
		return Result{}, err
	}
	return d.merge(), nil
}

// drive is the common state of the generators of one load.
type drive struct {
	onBlock    func([]byte) error
	onProgress func(Progress)
	shards     []*shard

	mu  sync.Mutex // guards the callbacks and err
	err error
}

// each calls do for all generators in parallel. The first failure ends all of them.
func (d *drive) each(do func(*shard) error) error {
	var group sync.WaitGroup
	for _, s := range d.shards {
		group.Go(func() {
			err := do(s)
			d.mu.Lock()
			defer d.mu.Unlock()
			if err != nil && d.err == nil {
				d.err = err
				d.closeInputs()
				d.closeOutputs()
			}
		})
	}
	group.Wait()
	return d.err
}

func (d *drive) closeInputs() {
	for _, s := range d.shards {
		s.In.Close()
	}
}

func (d *drive) closeOutputs() {
	for _, s := range d.shards {
		s.Out.Close()
	}
}

// shard is one generator of a load.
type shard struct {
	Generator
	drive *drive
	spec  Spec
	gob   *gob.Decoder

	clock  ClockOffset
	now    Progress
	result *Result
	ops    []record.Op
	block  []byte
}

// message is sent to a load process after its specification. One of the fields is set.
type message struct {
	Time  bool  `json:"time,omitempty"`  // report your time
	Start int64 `json:"start,omitempty"` // when to start the load: nanoseconds of its wall clock since 1970
	// Others is the number of body bytes received by the other shards, as last reported.
	Others int64 `json:"others,omitempty"`
}

func (s *shard) send(v any) error { return json.NewEncoder(s.In).Encode(v) }

// prepare waits until the generator can start.
func (s *shard) prepare() error {
	// If sending fails, the stream ends, and its error is better.
	go s.send(s.spec)
	for ready := false; !ready; {
		f, err := s.next()
		if err != nil {
			return err
		}
		ready = f.Ready
	}
	if !s.Elsewhere {
		return nil
	}
	var err error
	s.clock, err = s.askTime()
	return err
}

// run starts the load at a given time, and reads frames until the result.
func (s *shard) run(ctx context.Context, at time.Time) error {
	_ = s.send(message{Start: at.Add(s.clock.Ahead).UnixNano()}) // as above
	for s.result == nil {
		if _, err := s.next(); err != nil {
			return err
		}
	}
	if !s.Elsewhere || ctx.Err() != nil {
		return nil
	}
	after, err := s.askTime()
	if err != nil && ctx.Err() != nil {
		return nil
	}
	drift := after.Ahead - s.clock.Ahead
	s.clock.Error = max(s.clock.Error, drift.Abs()+after.Error)
	return err
}

// askTime compares the generator's clock with ours: it uses the quickest of several
// exchanges, whose error is at most half of its duration.
func (s *shard) askTime() (best ClockOffset, err error) {
	best.Error = math.MaxInt64
	for range exchanges {
		asked := time.Now()
		if err := s.send(message{Time: true}); err != nil {
			return best, fmt.Errorf("httpload: ask for the time: %w", err)
		}
		var f frame
		for f.Time == 0 {
			if f, err = s.next(); err != nil {
				return best, err
			}
		}
		if half := time.Since(asked) / 2; half < best.Error {
			best = ClockOffset{Ahead: time.Unix(0, f.Time).Sub(asked.Round(0).Add(half)), Error: half}
		}
	}
	return best, nil
}

// next reads and handles a frame.
func (s *shard) next() (f frame, err error) {
	if err := s.gob.Decode(&f); err != nil {
		return f, fmt.Errorf("httpload: the load process ended without a result: %w", cmp.Or(s.Ended(), err))
	}
	switch {
	case f.Error != "":
		return f, errors.New(f.Error)
	case f.Result != nil:
		s.result = f.Result
		s.result.Started -= int64(s.clock.Ahead)
		s.result.Ended -= int64(s.clock.Ahead)
	case f.Progress != nil:
		s.drive.progress(s, *f.Progress)
	case f.Block != nil:
		return f, s.blockCame(f.Block)
	}
	return f, nil
}

// blockCame passes on operations, with times converted to our clock.
func (s *shard) blockCame(block []byte) (err error) {
	if ahead := int64(s.clock.Ahead); ahead != 0 {
		if s.ops, err = record.DecodeBlock(block, s.ops[:0]); err != nil {
			return err
		}
		for i := range s.ops {
			op := &s.ops[i]
			op.Intended, op.Start, op.LastByte = op.Intended-ahead, op.Start-ahead, op.LastByte-ahead
			if op.FirstByte != 0 {
				op.FirstByte -= ahead
			}
		}
		s.block = record.AppendBlock(s.block[:0], s.ops)
		block = s.block
	}
	s.drive.mu.Lock()
	defer s.drive.mu.Unlock()
	return s.drive.onBlock(block)
}

// progress sums the progress of all generators, and informs each about the bytes of the others.
func (d *drive) progress(of *shard, now Progress) {
	d.mu.Lock()
	defer d.mu.Unlock()
	of.now = now
	var sum Progress
	for _, s := range d.shards {
		sum.Ops, sum.Bytes = sum.Ops+s.now.Ops, sum.Bytes+s.now.Bytes
	}
	if others := sum.Bytes - now.Bytes; others > 0 {
		go of.send(message{Others: others}) // if it has died, its stream reports that
	}
	d.onProgress(sum)
}

// merge returns the combined result.
func (d *drive) merge() Result {
	all := Result{Receive: d.shards[0].result.Receive, Started: math.MaxInt64, Ended: math.MinInt64}
	protocols := map[string]bool{}
	for i, s := range d.shards {
		r := s.result
		all.Clocks = append(all.Clocks, s.clock)
		protocols[r.Protocol] = true
		for _, why := range r.Why {
			if len(d.shards) > 1 {
				why = fmt.Sprintf("%d of %d: %s", i+1, len(d.shards), why)
			}
			all.Why = append(all.Why, why)
		}
		all.Started, all.Ended = min(all.Started, r.Started), max(all.Ended, r.Ended)
		all.OfferedRate = max(all.OfferedRate, r.OfferedRate) // each runs through the whole arrival process
		all.Warmed, all.Redirects, all.CPU = all.Warmed+r.Warmed, all.Redirects+r.Redirects, all.CPU+r.CPU
		all.Saturated, all.Behind = all.Saturated || r.Saturated, all.Behind || r.Behind
	}
	all.Protocol = strings.Join(slices.Sorted(maps.Keys(protocols)), ", ")
	return all
}

func (r *Result) seconds() float64 { return float64(r.Ended-r.Started) / 1e9 }

// frame is an element of the output stream of a load process, encoded with gob. One of the
// fields is set. After a result only times follow, and after an error nothing.
type frame struct {
	Block    []byte // operations, encoded by record.AppendBlock
	Progress *Progress
	Ready    bool  // ready to start
	Time     int64 // nanoseconds of its wall clock since 1970
	Result   *Result
	Error    string
}

// Serve is `plimsoll node load`: it reads a Spec (JSON) from stdin, reports that it is ready,
// executes it at the time that it reads next, and writes frames for [Drive] to stdout. stdin
// stays open as long as the parent lives; when it or ctx ends, operations in flight are
// recorded as cancelled and the result follows.
func Serve(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	return serveAhead(ctx, stdin, stdout, 0)
}

// serveAhead is Serve with a wall clock that is ahead, for tests.
func serveAhead(ctx context.Context, stdin io.Reader, stdout io.Writer, ahead time.Duration) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	encoder := gob.NewEncoder(stdout) // safe for concurrent use
	write := func(f frame) error { return encoder.Encode(f) }
	defer func() {
		if err != nil {
			// The parent reads the error from the stream; if it cannot be written, our
			// exit status shows it.
			err = errors.Join(err, write(frame{Error: err.Error()}))
		}
	}()
	var s Spec
	d := json.NewDecoder(stdin)
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return fmt.Errorf("httpload: read the specification from stdin: %w", err)
	}
	start, link := make(chan time.Time, 1), &linkUse{}
	go func() {
		defer cancel()
		for {
			var m message
			if d.Decode(&m) != nil {
				return
			}
			switch {
			case m.Time:
				write(frame{Time: time.Now().Add(ahead).UnixNano()})
			case m.Start != 0:
				start <- time.Unix(0, m.Start).Add(-ahead)
			default: // messages may overtake each other, so keep the largest
				link.others.Store(max(link.others.Load(), m.Others))
			}
		}
	}()
	s.Epoch = s.Epoch.Add(-ahead)
	// Event loops are in system calls most of the time. With spare Go processors they
	// never wait for one; the number of real CPUs does not matter here.
	runtime.GOMAXPROCS(max(runtime.NumCPU(), maxThreads) + 2)
	var block []byte
	sink := func(ops []record.Op) error {
		block = record.AppendBlock(block[:0], ops)
		return write(frame{Block: block})
	}
	res, err := run(ctx, s, sink, link, func(p Progress) { write(frame{Progress: &p}) }, func() time.Time {
		write(frame{Ready: true})
		select {
		case at := <-start:
			return at
		case <-ctx.Done():
			return time.Time{}
		}
	})
	if err == nil {
		err = write(frame{Result: &res})
	}
	if err == nil {
		<-ctx.Done() // there may be more time requests
	}
	return err
}
