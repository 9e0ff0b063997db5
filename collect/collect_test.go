package collect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"net"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// plain is a node without any ability.
type plain struct{}

func (plain) Processes() []testbed.Process { return nil }

// monitored is a node with its own calls.
type monitored struct {
	plain
	calls []system.Call
}

func (m monitored) Calls() []system.Call { return m.calls }

// call returns a call that takes some time and returns one reading.
func call(name string, took func() time.Duration, value func() (float64, error)) system.Call {
	return system.Call{Name: name, Read: func(ctx context.Context) ([]system.Reading, error) {
		select {
		case <-time.After(took()):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		v, err := value()
		if err != nil {
			return nil, err
		}
		return []system.Reading{{Name: name, Value: v}}, nil
	}}
}

func always[T any](v T) func() T { return func() T { return v } }
func fine() (float64, error)     { return 1, nil }
func on(took time.Duration) monitored {
	return monitored{calls: []system.Call{call("a", always(took), fine)}}
}
func since(epoch time.Time) func() time.Duration {
	return func() time.Duration { return time.Since(epoch) }
}
func keep(all *[]record.Poll) func(record.Poll) error {
	return func(p record.Poll) error { *all = append(*all, p); return nil }
}
func run(t *testing.T, c *Collector, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if err := c.Run(ctx); err != nil {
		t.Errorf("run: %v", err)
	}
}

// wantOrder checks the properties of every sequence of polls.
func wantOrder(t *testing.T, all []record.Poll, first int64) {
	t.Helper()
	next := first
	for i, p := range all {
		if p.Seq != next+int64(p.Missed) {
			t.Errorf("poll %d has number %d, %d were missed, and %d is next", i, p.Seq, p.Missed, next)
		}
		next = p.Seq + 1
		if p.Start < p.Intended || p.End < p.Start || i > 0 && p.Start < all[i-1].End {
			t.Errorf("poll %d: intended %v, %v to %v", i, p.Intended, p.Start, p.End)
		}
	}
}

// TestMonths polls every minute for 60 days. Each poll must be on time, in constant memory.
func TestMonths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const minutes = 60 * 24 * 60
		var n, late int
		var last record.Poll
		var before, after runtime.MemStats
		c := &Collector{Node: on(3 * time.Second), Every: time.Minute, Now: since(time.Now()),
			Keep: func(p record.Poll) error {
				if n == 100 {
					runtime.GC()
					runtime.ReadMemStats(&before)
				}
				if p.Intended%time.Minute != 0 && p.Seq != minutes || p.Missed != 0 || p.Seq != int64(n) {
					t.Errorf("%+v", p)
				}
				if p.Start != p.Intended {
					late++
				}
				n++
				last = p
				return nil
			}}
		run(t, c, minutes*time.Minute-time.Second)
		runtime.GC()
		runtime.ReadMemStats(&after)
		if n != minutes+1 || late > 0 {
			t.Errorf("%d polls, %d of them late", n, late)
		}
		if grew := int64(after.HeapAlloc) - int64(before.HeapAlloc); grew > 1<<20 {
			t.Errorf("memory grew by %d KiB", grew>>10)
		}
		// The last poll reports the state after the end.
		if end := minutes*time.Minute - time.Second; last.Start != end || last.End != end+3*time.Second {
			t.Errorf("last poll %+v", last)
		}
	})
}

// TestSlowPolls checks that ticks during a slow poll are missed and counted, and not made up for.
func TestSlowPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took := []time.Duration{1 * time.Second, 150 * time.Second, 60 * time.Second, time.Second, time.Second,
			time.Second}
		i := -1
		var all []record.Poll
		c := &Collector{
			Node:  monitored{calls: []system.Call{call("a", func() time.Duration { i++; return took[i] }, fine)}},
			Every: time.Minute, Now: since(time.Now()), Keep: keep(&all),
		}
		run(t, c, 6*time.Minute+30*time.Second) // 0:00, 1:00 to 3:30, 4:00 to 5:00, 5:00, 6:00, and the last poll
		wantOrder(t, all, 0)
		want := []struct {
			at     time.Duration
			missed int
		}{{0, 0}, {time.Minute, 0}, {4 * time.Minute, 2}, {5 * time.Minute, 0}, {6 * time.Minute, 0},
			{6*time.Minute + 30*time.Second, 0}}
		if len(all) != len(want) {
			t.Fatalf("%d polls: %+v", len(all), all)
		}
		for i, w := range want {
			if p := all[i]; p.Start != w.at || p.Intended != w.at || p.Missed != w.missed {
				t.Errorf("poll %d: %+v, want %+v", i, p, w)
			}
		}
	})
}

// TestFailures checks that a failed call leaves a gap with its reason, and that the other calls are
// still made.
func TestFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all []record.Poll
		broken := errors.New("x: out of luck\nand more")
		c := &Collector{
			Node: monitored{calls: []system.Call{
				call("slow", always(time.Hour), fine),
				call("broken", always(time.Second), func() (float64, error) { return 0, broken }),
				call("fine", always(time.Second), fine),
			}},
			Every: time.Minute, Now: since(time.Now()), Keep: keep(&all),
		}
		run(t, c, 21*time.Minute+30*time.Second)
		wantOrder(t, all, 0)
		if len(all) != 3 {
			t.Fatalf("%d polls", len(all))
		}
		for _, p := range all[:2] {
			if len(p.Calls) != 3 || p.Calls[0].Error != "timeout: no answer within 10 min" ||
				p.Calls[1].Error != "failed: x: out of luck and more" || p.Calls[2].Error != "" {
				t.Errorf("%+v", p.Calls)
			}
			if len(p.Readings) != 1 || p.Readings[0].Name != "fine" || p.Readings[0].Value != 1 ||
				p.End-p.Start != 10*time.Minute+2*time.Second {
				t.Errorf("%+v", p)
			}
		}
		// A slow call in the last poll does not use the others' time.
		if p := all[2]; p.End-p.Start != 10*time.Minute+2*time.Second || len(p.Readings) != 1 || p.Calls[2].Error != "" {
			t.Errorf("the last poll: %+v", p)
		}
	})
}

// TestCutOff ends during a poll. That poll is discarded: otherwise, its earlier readings would be
// reported as the final state.
func TestCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all []record.Poll
		c := &Collector{Node: on(20 * time.Second), Every: time.Minute, Now: since(time.Now()), Keep: keep(&all)}
		run(t, c, 70*time.Second)
		wantOrder(t, all, 0)
		if len(all) != 2 || all[1].Start != 70*time.Second || all[1].Calls[0].Error != "" || len(all[1].Readings) != 1 {
			t.Errorf("%+v", all)
		}
	})
}

// TestLaterSession checks that the schedule continues from the same epoch, and that polls between
// the sessions count as missed.
func TestLaterSession(t *testing.T) {
	for _, now := range []struct {
		after    time.Duration // start of the second session since the epoch
		at       time.Duration
		missed   int
		intended time.Duration
	}{
		{after: 95 * time.Second, at: 120 * time.Second, intended: 120 * time.Second},
		{after: 130 * time.Second, at: 130 * time.Second, intended: 120 * time.Second},
		{after: 610 * time.Second, at: 610 * time.Second, intended: 600 * time.Second, missed: 8},
	} {
		synctest.Test(t, func(t *testing.T) {
			epoch := time.Now()
			var all []record.Poll
			c := &Collector{Node: on(time.Second), Every: time.Minute, Now: since(epoch), Keep: keep(&all)}
			run(t, c, 90*time.Second) // at 0:00, 1:00 and, as the last poll, 1:30
			last := all[len(all)-1]
			time.Sleep(now.after - time.Since(epoch))
			all = nil
			c = &Collector{Node: on(time.Second), Every: time.Minute, Now: since(epoch), First: last.Seq + 1,
				Earlier: last.Start, Keep: keep(&all)}
			run(t, c, 5*time.Minute)
			wantOrder(t, all, last.Seq+1)
			if p := all[0]; p.Start != now.at || p.Intended != now.intended || p.Missed != now.missed {
				t.Errorf("%+v: %+v", now, p)
			}
		})
	}
}

// TestOnce checks that a poll outside the schedule does not affect the schedule.
func TestOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all []record.Poll
		c := &Collector{Node: on(time.Second), Every: time.Minute, Now: since(time.Now()), Keep: keep(&all)}
		go func() {
			time.Sleep(20 * time.Second)
			for range 3 {
				err := c.Once(t.Context())
				if p := all[len(all)-1]; err != nil || p.Intended != p.Start || len(p.Readings) != 1 {
					t.Errorf("%+v, %v", p, err)
				}
			}
		}()
		run(t, c, 150*time.Second)
		wantOrder(t, all, 0)
		var scheduled []time.Duration
		for _, p := range all {
			if p.Intended%time.Minute == 0 {
				scheduled = append(scheduled, p.Start)
			}
		}
		if len(all) != 7 || fmt.Sprint(scheduled) != "[0s 1m0s 2m0s]" {
			t.Errorf("%d polls, %v", len(all), scheduled)
		}
	})
}

// TestAbsurd checks that an impossible reading is recorded as such, never as a number.
func TestAbsurd(t *testing.T) {
	heights := []float64{1000, 990, 3, 1001}
	at := -1
	node := monitored{calls: []system.Call{{Name: "a", Read: func(context.Context) ([]system.Reading, error) {
		at++
		return []system.Reading{
			{Name: "fine", Value: 7},
			{Name: "nan", Value: math.NaN()}, {Name: "inf", Value: math.Inf(1)}, {Name: "negative", Value: -1},
			{Name: "underflow", Value: 18446744073709551615}, {Name: "debt", Value: -1, Amount: big.NewInt(-5)},
			{Name: "under", Value: 1, Amount: new(big.Int).Lsh(big.NewInt(1), 128)},
			system.Money("rich", new(big.Int).Exp(big.NewInt(10), big.NewInt(34), nil)),
			{Name: "told", Value: 5, Bad: "the system's own reason"},
			{Name: system.ReadHeight, Value: heights[at]}, {Name: "fine", Value: 8},
		}, nil
	}}}}
	var all []record.Poll
	c := &Collector{Node: node, Every: time.Minute, Now: since(time.Now()), Keep: keep(&all)}
	for range heights {
		if err := c.Once(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for i, p := range all {
		got := map[string]record.Reading{}
		for _, r := range p.Readings {
			if math.IsNaN(r.Value) || math.IsInf(r.Value, 0) || r.Bad != "" && (r.Value != 0 || r.Exact != "") {
				t.Errorf("%+v", r)
			}
			got[r.Name] = r
		}
		for name, reason := range map[string]string{
			"fine": "", "rich": "", "nan": "not a number", "inf": "not a number", "negative": "negative",
			"debt":      "negative: -1",
			"underflow": "below zero in an unsigned counter: 1.845e+19", "under": "below zero",
			"told":   "the system's own reason",
			"height": map[int]string{2: "fell from 1000 to 3"}[i],
		} {
			if r, ok := got[name]; !ok || !strings.HasPrefix(r.Bad, reason) || (reason == "") != (r.Bad == "") {
				t.Errorf("poll %d, %s: %+v, want %q", i, name, r, reason)
			}
		}
		if len(p.Readings) != 10 || got["fine"].Value != 7 || got["rich"].Exact != "1"+strings.Repeat("0", 34) ||
			got["rich"].Value != 1e10 {
			t.Errorf("%+v", got)
		}
	}
}

// status is an error of an API, like those that systems return.
type status int

func (s status) Error() string   { return fmt.Sprintf("GET /x: status %d: out of luck", int(s)) }
func (s status) StatusCode() int { return int(s) }

func TestReason(t *testing.T) {
	dial := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	for _, c := range []struct {
		err   error
		class string
	}{
		{fmt.Errorf("siad: %w", context.DeadlineExceeded), "timeout"},
		{fmt.Errorf("siad: %w", dial), "connection refused"},
		{fmt.Errorf("siad: %w", syscall.ECONNRESET), "connection reset"},
		{fmt.Errorf("siad: %w", status(500)), "status 500"},
		{fmt.Errorf("siad: %w: eh", system.ErrAnswer), "malformed answer"},
		{fmt.Errorf("siad: %w", io.ErrUnexpectedEOF), "cut off"},
		{errors.New("what"), "failed"},
	} {
		got := reason(c.err, 2*time.Second)
		if Class(got) != c.class || c.class != "timeout" && !strings.HasSuffix(got, c.err.Error()) {
			t.Errorf("%v: %q, class %q", c.err, got, Class(got))
		}
	}
	if long := reason(errors.New(strings.Repeat("ü", 1000)), 0); utf8.RuneCountInString(long) > mostReason+20 {
		t.Errorf("%d bytes: %q", len(long), long)
	}
}

// TestLastPollIsBounded checks that the last poll ends after twice the time limit of a call, and
// that calls that do not fit are gaps.
func TestLastPollIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all []record.Poll
		never := always(100 * time.Hour)
		c := &Collector{
			Node: monitored{calls: []system.Call{call("a", never, fine), call("b", never, fine),
				call("c", never, fine), call("d", never, fine)}},
			Every: 100 * time.Hour, Now: since(time.Now()), Keep: keep(&all), First: 1,
		}
		run(t, c, time.Minute)
		p := all[len(all)-1]
		if len(p.Calls) != 4 || p.End-p.Start != 2*time.Hour {
			t.Errorf("%+v", p)
		}
		for _, call := range p.Calls {
			if !strings.HasPrefix(call.Error, "timeout") {
				t.Errorf("%+v", call)
			}
		}
	})
}

// TestOnceBesideAPoll checks that a poll outside the schedule waits for a running poll, also in
// virtual time.
func TestOnceBesideAPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var polls []record.Poll
		c := &Collector{Node: on(3 * time.Second), Every: time.Hour, Now: since(time.Now()),
			Keep: func(p record.Poll) error { polls = append(polls, p); return nil }}
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error)
		go func() { done <- c.Run(ctx) }()
		time.Sleep(time.Second)
		if err := c.Once(ctx); err != nil || polls[len(polls)-1].Start != 3*time.Second {
			t.Errorf("%+v: %v", polls, err)
		}
		cancel(ErrAtOnce)
		if err := <-done; err != nil || len(polls) != 2 || polls[0].Start != 0 || polls[0].End != 3*time.Second {
			t.Errorf("%v, %+v", err, polls)
		}
	})
}

// able has all abilities from which polls derive calls.
type able struct {
	plain
	listing time.Duration
	lists   *int
	sick    error
}

func (able) Stats(context.Context) (system.Holdings, error) {
	return system.Holdings{Objects: 3, Absolute: 300, Disk: -1, Entries: -1, Inodes: 5}, nil
}

func (a able) List(_ context.Context, visit func(system.Object) error) error {
	*a.lists++
	time.Sleep(a.listing)
	return errors.Join(visit(system.Object{Size: 10}), visit(system.Object{Size: 20}))
}

func (a able) Health(context.Context) error { return a.sick }

func TestCallsFromAbilities(t *testing.T) {
	lists := 0
	var p record.Poll
	c := &Collector{Node: able{lists: &lists, sick: errors.New("ill")}, Now: since(time.Now()),
		Keep: func(got record.Poll) error { p = got; return nil }}
	if err := c.Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{
		"objects": 3, "absolute_bytes": 300, "inodes": 5,
		"files": 2, "file_bytes": 30,
	}
	for _, r := range p.Readings {
		if v, ok := want[r.Name]; !ok || r.Value != v || r.Bad != "" {
			t.Errorf("%+v, want %v (%v)", r, v, ok)
		}
		delete(want, r.Name)
	}
	if len(want) > 0 {
		t.Errorf("not read: %v", want)
	}
	var names []string
	for _, call := range p.Calls {
		names = append(names, call.Name)
		if (call.Name == "health") != (call.Error == "failed: ill") {
			t.Errorf("%+v", call)
		}
	}
	if !slices.Equal(names, []string{"stats", "list", "health"}) {
		t.Errorf("%v", names)
	}
}

// TestListingRests checks that a listing that takes ten seconds is repeated every 200 seconds, and
// a quick one in each poll.
func TestListingRests(t *testing.T) {
	for listing, want := range map[time.Duration]int{time.Second: 61 + 1, 10 * time.Second: 16 + 1} {
		synctest.Test(t, func(t *testing.T) {
			lists, polls := 0, 0
			c := &Collector{Node: able{lists: &lists, listing: listing}, Every: time.Minute, Now: since(time.Now()),
				Keep: func(record.Poll) error { polls++; return nil }}
			run(t, c, time.Hour+30*time.Second) // polls at 0:00 to 60:00, and the last poll, which always lists
			if polls != 62 || lists != want {
				t.Errorf("%v: %d listings, want %d, in %d polls", listing, lists, want, polls)
			}
		})
	}
}
