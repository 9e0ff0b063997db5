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

	"golang.org/x/sync/errgroup"

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
	if s.Arrivals != nil {
		s.MaxInFlight = s.inFlight()
	}
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

// Drive gives each generator its part of a load, starts all at one moment, and returns what
// they came to together. Blocks of operations (valid during the call only) and progress go
// to the callbacks, which may be nil and are never called twice at once; times are of our
// clock. When ctx ends, operations under way are recorded as cancelled and the result is
// what there was until then. Drive closes what the generators read.
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
	defer d.closeInputs()

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

// drive is what the generators of one load share.
type drive struct {
	onBlock    func([]byte) error
	onProgress func(Progress)
	shards     []*shard

	mu  sync.Mutex // of the callbacks, and of what follows
	err error
}

// each does something with all generators at once. The first that fails ends all: the
// others would go on to their end.
func (d *drive) each(do func(*shard) error) error {
	var group errgroup.Group
	for i, s := range d.shards {
		group.Go(func() error {
			err := do(s)
			d.mu.Lock()
			defer d.mu.Unlock()
			if err != nil && d.err == nil {
				d.err = &GeneratorError{i, err}
				d.closeInputs()
				d.closeOutputs()
			}
			return nil
		})
	}
	_ = group.Wait()
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

// message is what a load process reads after its specification: one of these.
type message struct {
	Time  bool  `json:"time,omitempty"`  // say what time it is
	Start int64 `json:"start,omitempty"` // when the load begins: nanoseconds of its wall clock since 1970
	// Others is how many body bytes the other shards have received, of what they last reported.
	Others int64 `json:"others,omitempty"`
}

func (s *shard) send(v any) error { return json.NewEncoder(s.In).Encode(v) }

// prepare waits until the generator can start.
func (s *shard) prepare() error {
	// What cannot be sent is said better by the stream, which ends then.
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

// run starts the load at a moment, and takes what comes until its result.
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
		if half := time.Since(asked) / 2; half < best.Error {
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
	case f.Block != nil && s.drive.onBlock != nil:
		return f, s.blockCame(f.Block)
	}
	return f, nil
}

// blockCame hands over operations, with times of our clock.
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

// progress adds up what all generators have done, and lets each know what the others received.
func (d *drive) progress(of *shard, now Progress) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now.At -= int64(of.clock.Ahead)
	of.now = now
	sum := Progress{At: now.At}
	for _, s := range d.shards {
		sum.Ops, sum.Bytes = sum.Ops+s.now.Ops, sum.Bytes+s.now.Bytes
	}
	if others := sum.Bytes - now.Bytes; others > 0 {
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
	all.Clocks, all.Why = nil, nil
	rate, protocols := 0.0, map[string]bool{}
	for i, s := range d.shards {
		r := s.result
		all.Clocks = append(all.Clocks, s.clock)
		rate += r.AchievedRate * r.seconds()
		protocols[r.Protocol] = true
		for _, why := range r.Why {
			if len(d.shards) > 1 {
				why = fmt.Sprintf("%d of %d: %s", i+1, len(d.shards), why)
			}
			all.Why = append(all.Why, why)
		}
		if i == 0 {
			continue
		}
		all.Counts.add(&r.Counts)
		all.Started, all.Ended = min(all.Started, r.Started), max(all.Ended, r.Ended)
		all.OfferedRate = max(all.OfferedRate, r.OfferedRate) // each walks the whole arrival process
		all.Lag, all.Late, all.Wait = all.Lag.worse(r.Lag), all.Late.worse(r.Late), all.Wait.worse(r.Wait)
		all.CPU, all.MaxRSS, all.Threads = all.CPU+r.CPU, all.MaxRSS+r.MaxRSS, all.Threads+r.Threads
		all.Busy, all.RunDelay = max(all.Busy, r.Busy), max(all.RunDelay, r.RunDelay)
		all.Saturated, all.Behind = all.Saturated || r.Saturated, all.Behind || r.Behind
	}
	all.Protocol = strings.Join(slices.Sorted(maps.Keys(protocols)), ", ")
	if took := all.seconds(); took > 0 {
		all.AchievedRate = rate / took
		if !all.Open {
			all.OfferedRate = all.AchievedRate
		}
	}
	return all
}

func (r *Result) seconds() float64 { return float64(r.Ended-r.Started) / 1e9 }

// worse is the larger of each quantile: at least that of all operations together.
func (q Quantiles) worse(of Quantiles) Quantiles {
	return Quantiles{max(q.P50, of.P50), max(q.P99, of.P99)}
}
