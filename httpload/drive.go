package httpload

import (
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
)

// Generator is a load process that was started with [Serve]: what it reads, and what it writes.
type Generator struct {
	In  io.WriteCloser
	Out io.ReadCloser
	// Elsewhere: on a machine with a clock of its own, which is compared with ours.
	Elsewhere bool
}

// ClockOffset is how far a generator's clock is ahead of ours, and the largest error that
// a time of it has after the offset was taken off.
type ClockOffset struct{ Ahead, Error time.Duration }

// GeneratorError is one of several generators that did not come to a result.
type GeneratorError struct {
	Index int
	Err   error
}

func (e *GeneratorError) Error() string { return e.Err.Error() }
func (e *GeneratorError) Unwrap() error { return e.Err }

const (
	exchanges  = 20                    // questions for the time of another clock
	startDelay = 20 * time.Millisecond // in which all generators learn when to start
	lastWords  = 5 * time.Second       // after which a cancelled generator is not waited for
)

// Split divides a load among at most n generators: of every n operations, each does one.
// In a closed loop all have the same number of connections, so that none has
// less to do than another: there may be fewer generators than n.
func (s Spec) Split(n int) []Spec {
	all := max(1, s.Concurrency)
	if s.Arrivals != nil {
		s.MaxInFlight = s.inFlight()
		all = s.MaxInFlight
	}
	n = max(1, min(n, all))
	for s.Arrivals == nil && all%n != 0 {
		n--
	}
	var parts []Spec
	first := 0
	for i := range n {
		part := s
		own := all / n
		if i < all%n {
			own++
		}
		part.Shard, part.Shards, part.FirstWorker = i, n, first
		if s.Arrivals != nil {
			part.MaxInFlight = own
		} else if s.Concurrency > 0 {
			part.Concurrency = own
		}
		first += own
		parts = append(parts, part)
	}
	return parts
}

// Drive gives each generator its part of a load, starts all at one moment, and returns what
// they came to together. Blocks of operations (valid during the call only) and progress go
// to the callbacks, which may be nil and are never called twice at once; times are of our
// clock. When ctx ends, operations under way are recorded as cancelled and the result is
// what there was until then. Drive closes what the generators read.
func Drive(ctx context.Context, parts []Spec, generators []Generator, onBlock func([]byte) error,
	onProgress func(Progress)) (Result, error) {
	d := &drive{onBlock: onBlock, onProgress: onProgress, ready: make(chan struct{}, len(parts)),
		start: make(chan struct{}), failed: make(chan struct{})}
	for i := range parts {
		d.shards = append(d.shards, &shard{Generator: generators[i], index: i, drive: d, spec: parts[i],
			gob: gob.NewDecoder(generators[i].Out)})
	}
	stop := context.AfterFunc(ctx, func() {
		d.closeInputs()
		time.AfterFunc(lastWords, d.closeOutputs)
	})
	defer stop()
	defer d.closeInputs()
	var done sync.WaitGroup
	for _, s := range d.shards {
		done.Go(func() {
			if err := s.run(ctx); err != nil {
				d.fail(&GeneratorError{s.index, err})
			}
		})
	}
	if d.allReady() {
		d.at = time.Now()
		if len(d.shards) > 1 || d.shards[0].Elsewhere {
			d.at = d.at.Add(startDelay + 2*d.slowest())
		}
		close(d.start)
	}
	done.Wait()
	if d.err != nil {
		return Result{}, d.err
	}
	return d.merge(), nil
}

// drive is what the generators of one load share.
type drive struct {
	onBlock    func([]byte) error
	onProgress func(Progress)
	shards     []*shard
	ready      chan struct{}
	start      chan struct{} // closed when at is set
	at         time.Time     // when the load starts
	failed     chan struct{}

	mu  sync.Mutex // of the callbacks, and of what follows
	err error
}

func (d *drive) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		return
	}
	d.err = err
	close(d.failed)
	d.closeInputs()
	d.closeOutputs() // others would go on to their end
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

// allReady waits until every generator can start.
func (d *drive) allReady() bool {
	for range d.shards {
		select {
		case <-d.ready:
		case <-d.failed:
			return false
		}
	}
	return true
}

// slowest is the longest that a message to a generator takes.
func (d *drive) slowest() (longest time.Duration) {
	for _, s := range d.shards {
		longest = max(longest, s.clock.Error)
	}
	return longest
}

// shard is one generator of a load.
type shard struct {
	Generator
	index int
	drive *drive
	spec  Spec
	gob   *gob.Decoder

	clock  ClockOffset
	now    Progress
	result *Result
	ops    []record.Op
	block  []byte
}

// message is what a load process reads after its specification: one of these.
type message struct {
	Time  bool  `json:"time,omitempty"`  // say what time it is
	Start int64 `json:"start,omitempty"` // when the load begins: nanoseconds of its wall clock since 1970
	// Others is how many body bytes the other shards have received, of what they last reported.
	Others int64 `json:"others,omitempty"`
}

func (s *shard) send(v any) error {
	b, err := json.Marshal(v)
	if err == nil {
		_, err = s.In.Write(append(b, '\n'))
	}
	return err
}

func (s *shard) run(ctx context.Context) error {
	// What cannot be sent is said better by the stream, which ends then.
	go s.send(s.spec)
	for ready := false; !ready; {
		f, err := s.next()
		if err != nil {
			return err
		}
		ready = f.Ready
	}
	var err error
	if s.Elsewhere {
		if s.clock, err = s.askTime(); err != nil {
			return err
		}
	}
	s.drive.ready <- struct{}{}
	select {
	case <-s.drive.start:
		_ = s.send(message{Start: s.drive.at.Add(s.clock.Ahead).UnixNano()})
	case <-s.drive.failed:
		return nil
	}
	for s.result == nil {
		if _, err := s.next(); err != nil {
			return err
		}
	}
	if !s.Elsewhere || ctx.Err() != nil {
		return nil
	}
	after, err := s.askTime()
	if err == nil {
		drift := after.Ahead - s.clock.Ahead
		s.clock.Error = max(s.clock.Error, drift.Abs()+after.Error)
	} else if ctx.Err() != nil {
		err = nil
	}
	return err
}

// askTime compares the generator's clock with ours: of several exchanges the quickest
// counts, whose answer is off by at most half of the time that it took.
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
		half := time.Since(asked) / 2
		if half < best.Error {
			best = ClockOffset{Ahead: time.Unix(0, f.Time).Sub(asked.Round(0).Add(half)), Error: half}
		}
	}
	return best, nil
}

// next reads a frame and does what there is to do with it.
func (s *shard) next() (f frame, err error) {
	if err := s.gob.Decode(&f); err != nil {
		return f, fmt.Errorf("httpload: the load process ended without a result: %w", err)
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

// blockCame hands over operations, with times of our clock.
func (s *shard) blockCame(block []byte) (err error) {
	if s.drive.onBlock == nil {
		return nil
	}
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

// progress adds up what all generators have done, and lets each know what the others received.
func (d *drive) progress(of *shard, now Progress) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now.At -= int64(of.clock.Ahead)
	of.now = now
	sum := Progress{At: now.At}
	for _, s := range d.shards {
		sum.Ops, sum.OK = sum.Ops+s.now.Ops, sum.OK+s.now.OK
		sum.Failed, sum.Bytes = sum.Failed+s.now.Failed, sum.Bytes+s.now.Bytes
		sum.Received += s.now.Received
	}
	if others := sum.Received - now.Received; others > 0 {
		go of.send(message{Others: others}) // one that has died reads nothing: its stream says so
	}
	if d.onProgress != nil {
		d.onProgress(sum)
	}
}

// merge is the result of all generators: sums of what they did and used, and the worst of
// what they say of themselves.
func (d *drive) merge() Result {
	all := *d.shards[0].result
	all.Clocks, all.Why = []ClockOffset{d.shards[0].clock}, nil
	rate := all.AchievedRate * all.seconds()
	protocols := map[string]bool{all.Protocol: true}
	for _, s := range d.shards[1:] {
		r := s.result
		all.Clocks = append(all.Clocks, s.clock)
		rate += r.AchievedRate * r.seconds()
		protocols[r.Protocol] = true
		all.Started, all.Ended = min(all.Started, r.Started), max(all.Ended, r.Ended)
		all.Ops, all.Bytes, all.Warmed = all.Ops+r.Ops, all.Bytes+r.Bytes, all.Warmed+r.Warmed
		all.Outcomes, all.Classes = added(all.Outcomes, r.Outcomes), added(all.Classes, r.Classes)
		all.Dials, all.Reconnects = all.Dials+r.Dials, all.Reconnects+r.Reconnects
		all.Redirects, all.Chunked = all.Redirects+r.Redirects, all.Chunked+r.Chunked
		all.OfferedRate = max(all.OfferedRate, r.OfferedRate) // each walks the whole arrival process
		all.Lag, all.Late, all.Wait = all.Lag.worse(r.Lag), all.Late.worse(r.Late), all.Wait.worse(r.Wait)
		all.CPU, all.MaxRSS, all.Threads = all.CPU+r.CPU, all.MaxRSS+r.MaxRSS, all.Threads+r.Threads
		all.Busy, all.RunDelay = max(all.Busy, r.Busy), max(all.RunDelay, r.RunDelay)
		all.Saturated, all.Behind = all.Saturated || r.Saturated, all.Behind || r.Behind
	}
	for _, s := range d.shards {
		for _, why := range s.result.Why {
			if len(d.shards) > 1 {
				why = fmt.Sprintf("%d of %d: %s", s.index+1, len(d.shards), why)
			}
			all.Why = append(all.Why, why)
		}
	}
	all.Protocol = strings.Join(slices.Sorted(maps.Keys(protocols)), ", ")
	if took := all.seconds(); took > 0 {
		all.AchievedRate = rate / took
		if all.Loop == loopClosed {
			all.OfferedRate = all.AchievedRate
		}
	}
	return all
}

func (r *Result) seconds() float64 { return float64(r.Ended-r.Started) / 1e9 }

func added(a, b map[string]int64) map[string]int64 {
	sum := maps.Clone(a)
	if sum == nil {
		sum = map[string]int64{}
	}
	for k, n := range b {
		sum[k] += n
	}
	return sum
}

// worse is the larger of each quantile: at least that of all operations together.
func (q Quantiles) worse(of Quantiles) Quantiles {
	return Quantiles{max(q.P50, of.P50), max(q.P99, of.P99), max(q.Max, of.Max)}
}
