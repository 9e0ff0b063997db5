package httpload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/workload"
)

// generator starts a load process whose clock is ahead.
func generator(t *testing.T, ahead time.Duration) Generator {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	t.Cleanup(func() { inW.Close(); outR.Close() })
	go func() { outW.CloseWithError(serveAhead(context.Background(), inR, outW, ahead)) }()
	return Generator{In: inW, Out: outR, Elsewhere: ahead != 0, Ended: func() error { return nil }}
}

// driven is a load that generators share, whose clocks are ahead by so much.
func driven(t *testing.T, s Spec, ahead ...time.Duration) (sums counted, all []record.Op, progress []Progress,
	err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	parts := s.Split(len(ahead))
	var generators []Generator
	for _, a := range ahead[:len(parts)] {
		generators = append(generators, generator(t, a))
	}
	res, err := Drive(ctx, parts, generators, func(b []byte) error {
		var err error
		all, err = record.DecodeBlock(b, all)
		return err
	}, func(p Progress) { progress = append(progress, p) })
	return count(res, all), all, progress, err
}

func TestServe(t *testing.T) {
	t.Parallel()
	c := content(10_000)
	res, all, progress, err := driven(t, Spec{Objects: objectAt(serveContent(t, c).URL, c), Concurrency: 3, Range: 100,
		Duration: time.Second, Window: 50 * time.Millisecond, Epoch: time.Now()}, 0)
	must(t, err)
	if res.Outcomes["ok"] == 0 || res.CPU <= 0 {
		t.Errorf("%d operations, result %+v", len(all), res)
	}
	if len(progress) < 3 {
		t.Fatalf("%d progress reports", len(progress))
	}
	for i := 1; i < len(progress); i++ {
		if progress[i].Ops < progress[i-1].Ops {
			t.Errorf("progress goes back: %+v, %+v", progress[i-1], progress[i])
		}
	}
	if progress[len(progress)-1].Ops == 0 {
		t.Error("no progress seen")
	}
}

// Closing what a load process reads is what the death of its parent looks like.
func TestServeEndsWithItsParent(t *testing.T) {
	c := content(1_000_000)
	url := throttled(t, contentBytes(t, c), 1000, 10*time.Millisecond)
	g := generator(t, 0)
	time.AfterFunc(200*time.Millisecond, func() { g.In.Close() })
	began := time.Now()
	s := Spec{Objects: objectAt(url, c), Concurrency: 2, Duration: time.Minute}
	sum := record.NewSummary()
	_, err := Drive(t.Context(), []Spec{s}, []Generator{g}, func(b []byte) error {
		all, err := record.DecodeBlock(b, nil)
		return errors.Join(err, sum.Ops(all))
	}, func(Progress) {})
	if n := sum.Counts(); err != nil || n.Outcomes[record.Cancelled] != 2 || n.Ops != 2 {
		t.Errorf("%v, outcomes %v, %d operations", err, n.OutcomeMap(), n.Ops)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestDriveErrors(t *testing.T) {
	if _, _, _, err := driven(t, Spec{}, 0); err == nil || !strings.Contains(err.Error(), "no objects") {
		t.Errorf("no objects: %v", err)
	}
	for in, want := range map[string]string{"": "read the specification", "{": "read the specification",
		`{"concurency": 1}`: "concurency"} {
		if err := Serve(t.Context(), strings.NewReader(in), io.Discard); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", in, err, want)
		}
	}
	for _, stream := range []string{"", "\x20\x01", "?\x00\x00\x00\x00"} {
		_, in := io.Pipe()
		_, err := Drive(t.Context(), make([]Spec, 1), []Generator{{In: in,
			Out: io.NopCloser(strings.NewReader(stream)), Ended: func() error { return nil }}}, nil, nil)
		if err == nil || !strings.Contains(err.Error(), "ended without a result") {
			t.Errorf("stream %q: %v", stream, err)
		}
	}
}

// asked is what an operation asked for, and what became of it.
type asked struct {
	kind           record.OpKind
	object         uint32
	offset, length int64
	outcome        record.Outcome
	intended       int64 // of an open loop, since the start
}

// Several generators do the operations that one does, at the moments at which one does
// them, by our clock.
func TestShardsAreOneLoad(t *testing.T) {
	t.Parallel()
	c := content(300_000)
	server := serveContent(t, c)
	objects := append(objectAt(server.URL, c), objectAt(server.URL+"/again", c)...)
	for name, s := range map[string]Spec{
		"requests": {Concurrency: 6, Requests: 100, Range: 1000},
		"bytes":    {Concurrency: 6, Bytes: 90_500, Range: 1000, Order: "aligned"},
		"burst":    {Concurrency: 6, PerWorker: 1},
		"warm":     {Concurrency: 4, Requests: 40, Range: 1000, Warmup: 500},
		"open": {Arrivals: &workload.ArrivalSpec{Process: "poisson", Rate: 400}, MaxInFlight: 1000, Requests: 100,
			Range: 1000},
		"open, in time":    {Arrivals: constant(400), MaxInFlight: 1000, Duration: 300 * time.Millisecond, Range: 1000},
		"odd":              {Concurrency: 7, Requests: 70, Range: 1000}, // is not divided
		"unknown sizes":    {Concurrency: 6, Requests: 30},
		"more than enough": {Concurrency: 2, Requests: 30, Range: 1000},
	} {
		t.Run(name, func(t *testing.T) {
			s.Objects, s.Seed, s.Epoch = objects, 7, time.Now()
			of := func(ahead ...time.Duration) (counted, map[asked]int) {
				began := time.Now()
				res, all, _, err := driven(t, s, ahead...)
				must(t, err)
				set := map[asked]int{}
				for _, op := range all {
					if s.Duration > 0 { // chance decides what is in flight, or just due, at the end
						op.Outcome = record.OK
						if op.Intended-res.Started >= int64(s.Duration) {
							continue
						}
					}
					if s.Arrivals == nil && op.Worker >= uint32(s.Concurrency) {
						t.Errorf("connection %d of %d", op.Worker, s.Concurrency)
					}
					at := asked{op.Kind, op.Object, op.Offset, op.Length, op.Outcome, 0}
					if s.Arrivals != nil {
						at.intended = op.Intended - res.Started
					}
					set[at]++
					if from, to := int64(began.Sub(s.Epoch)), int64(time.Since(s.Epoch)); op.Start < from ||
						op.LastByte > to || op.FirstByte != 0 && op.FirstByte < op.Start || op.FirstByte > op.LastByte {
						t.Fatalf("%+v is not between %d and %d", op, from, to)
					}
				}
				return res, set
			}
			one, want := of(0)
			for _, ahead := range [][]time.Duration{{0, 0, 0}, {time.Hour, -3 * time.Second, 0}} {
				res, got := of(ahead...)
				if !maps.Equal(got, want) {
					t.Errorf("clocks %v: %d different operations, one generator did %d", ahead, len(got), len(want))
				}
				if s.Duration == 0 && (res.Ops != one.Ops || res.Bytes != one.Bytes ||
					!maps.Equal(res.Outcomes, one.Outcomes)) {
					t.Errorf("clocks %v: %d operations, %d bytes, %v; one generator did %d, %d, %v",
						ahead, res.Ops, res.Bytes, res.Outcomes, one.Ops, one.Bytes, one.Outcomes)
				}
				for i, clock := range res.Clocks {
					if off := clock.Ahead - ahead[i]; off.Abs() > clock.Error || clock.Error > time.Second {
						t.Errorf("a clock that is ahead by %v was found to be by %v ± %v", ahead[i], clock.Ahead,
							clock.Error)
					}
				}
			}
		})
	}
}

// One of several that dies ends the load, and is named.
func TestDeadShard(t *testing.T) {
	c := content(1_000_000)
	url := throttled(t, contentBytes(t, c), 1000, 10*time.Millisecond)
	s := Spec{Objects: objectAt(url, c), Concurrency: 3, Duration: time.Minute, Epoch: time.Now()}
	generators := []Generator{generator(t, 0), generator(t, 0), generator(t, 0)}
	time.AfterFunc(200*time.Millisecond, func() { generators[1].Out.Close() })
	for i := range generators {
		generators[i].Ended = func() error { return fmt.Errorf("killed: %d", i) }
	}
	_, err := Drive(t.Context(), s.Split(3), generators, func([]byte) error { return nil }, func(Progress) {})
	if err == nil || !strings.Contains(err.Error(), "killed: 1") {
		t.Errorf("%v", err)
	}
}
