package overhead

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/timing"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/internal/synthetic"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/mem"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// scripted is a node that records calls, some of which a test can replace.
type scripted struct {
	*mem.Node
	mu    sync.Mutex
	calls []string // "get REF", in order
	on    map[string]func(ctx context.Context) error
}

func hang(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func newScripted(t *testing.T, client testbed.Host, opt system.Options, limits experiment.Limits,
	cells ...experiment.Cell) (*bench, *scripted) {
	t.Helper()
	n := &scripted{on: map[string]func(context.Context) error{}}
	real := synthetic.MemNode(t, opt)
	n.Node = real.Hooked(func(ctx context.Context, call, of string) error {
		n.mu.Lock()
		n.calls = append(n.calls, call+" "+of)
		n.mu.Unlock()
		if do := n.on[call]; do != nil {
			return do(ctx)
		}
		return nil
	}, nil)
	b := newBenchOn(t, client, real, n, limits, cells...)
	n.calls = nil
	return b, n
}

// settled returns the refs of objects for which settle was called.
func (n *scripted) settled() map[system.Ref]bool {
	all := map[system.Ref]bool{}
	for _, call := range n.calls {
		if ref, is := strings.CutPrefix(call, "settle "); is {
			all[system.Ref(ref)] = true
		}
	}
	return all
}

// tripled is a system whose servers receive two thirds of an object's bytes when it settles.
type tripled struct{ *scripted }

func (n tripled) Stats(ctx context.Context) (h system.Holdings, err error) {
	objects, err := system.All(ctx, n)
	for _, o := range objects {
		if h.Absolute += o.Size; n.settled()[o.Ref] {
			h.Absolute += 2 * o.Size
		}
	}
	return h, err
}

// Bytes that servers receive only when an object settles belong to that object. They neither
// appear in the inventory before the next one nor share the link with it.
func TestOverheadSettlesBetween(t *testing.T) {
	for operation, connections := range map[string]string{"put": "keep", "put-dir": "keep", "fill": "keep",
		"delete": "fresh"} {
		t.Run(operation, func(t *testing.T) {
			synthetic.Virtual(t, func(t *testing.T) {
				what := cell(operation, 1000, func(o *experiment.Overhead) {
					o.Connections, o.Objects, o.Count = connections, 10, 3
				})
				b, n := newScripted(t, nil, system.Options{"a": "10ms", "settle": "7s"}, synthetic.Limits(), what)
				b.runner.(*runner).node = tripled{n}
				y := b.must(what)
				if want := map[string]float64{"put": 3, "put-dir": 3,
					"fill": 3}[operation]; y.M["expansion"] != want {
					t.Errorf("expansion %g, want %g", y.M["expansion"], want)
				}
				for i, op := range y.Ops {
					if i > 0 && operation != "fill" && time.Duration(op.Start-y.Ops[i-1].LastByte) < 6*time.Second {
						t.Errorf("operation %d began %s after the last", i, time.Duration(op.Start-y.Ops[i-1].LastByte))
					}
				}
				if y.Load.Notes != nil || y.M["success_rate"] != 1 {
					t.Errorf("%v, %v", y.Load.Notes, y.M)
				}
			})
		})
	}
}

func TestOverheadSettlesWhatItPrepares(t *testing.T) {
	synthetic.Virtual(t, func(t *testing.T) {
		begun := time.Now()
		newBench(t, system.Options{"settle": "7s"}, synthetic.Limits(), cell("get", 1000), cell("range", 10),
			cell("update", 10))
		if took := time.Since(begun); took != 7*time.Second {
			t.Errorf("preparation took %s", took)
		}
	})
}

// Objects that never settle cost a deadline once, not in each trial, and are no failures.
func TestOverheadGivesUpSettling(t *testing.T) {
	synthetic.Virtual(t, func(t *testing.T) {
		put := cell("put", 1000)
		fill := cell("fill", 1000, func(o *experiment.Overhead) { o.Objects, o.Count = 10, 1 })
		b, n := newScripted(t, nil, system.Options{"a": "10ms"}, synthetic.Limits(), put, fill)
		n.on["settle"] = hang
		for i, c := range []experiment.Cell{put, put, fill, put, fill} {
			begun := time.Now()
			y := b.must(c)
			least, most := synthetic.Limits().Deadline.Std(), synthetic.Limits().Deadline.Std()+time.Second
			if i > 0 {
				least, most = 0, scenario.SettleBriefly+time.Second
			}
			if took := time.Since(begun); took < least || took > most {
				t.Errorf("trial %d took %s", i, took)
			}
			if _, told := y.M["expansion"]; told || y.M["success_rate"] != 1 ||
				!slices.Contains(y.Load.Notes, noteUnsettled) {
				t.Errorf("trial %d: %v, %v", i, y.M, y.Load.Notes)
			}
		}
		// The problem may be temporary.
		delete(n.on, "settle")
		n.calls = nil
		for _, c := range []experiment.Cell{put, fill} {
			if y := b.must(c); y.M["expansion"] != 1 || len(y.Load.Notes) != 0 {
				t.Errorf("settles again: %v, %v", y.M, y.Load.Notes)
			}
		}
		objects, err := system.All(t.Context(), n)
		if err != nil || len(objects) != 30 {
			t.Fatalf("%d objects (%v)", len(objects), err)
		}
		for _, o := range objects {
			if !n.settled()[o.Ref] {
				t.Errorf("%s was counted, and nobody waited for it", o.Ref)
			}
		}
	})
}

// Each read begins cold, including stat, and trials do not time the objects used by prime.
func TestOverheadReadsAreColdAndOfOthers(t *testing.T) {
	for _, operation := range []string{"get", "stat", "fill"} {
		t.Run(operation, func(t *testing.T) {
			synthetic.Virtual(t, func(t *testing.T) {
				what := cell(operation, 1000, func(o *experiment.Overhead) { o.Objects = 10 })
				b, n := newScripted(t, nil, system.Options{"cache": "true"}, synthetic.Limits(), what)
				b.must(what)
				reads := map[string]int{}
				for i, call := range n.calls {
					kind, ref, _ := strings.Cut(call, " ")
					if kind != "get" && kind != "stat" {
						continue
					}
					reads[kind]++
					if i == 0 || n.calls[i-1] != "cool "+ref {
						t.Errorf("%s came after %s", call, n.calls[max(0, i-1)])
					}
				}
				want := map[string]int{operation: 6}
				if operation == "fill" {
					want = map[string]int{"get": 5, "stat": 5}
				}
				for kind, n := range want {
					if reads[kind] != n {
						t.Errorf("%d of %s, want %d", reads[kind], kind, n)
					}
				}
				if operation != "fill" {
					primed := n.calls[1]
					if slices.Contains(n.calls[2:], primed) {
						t.Errorf("%s was primed with and timed: %q", primed, n.calls)
					}
				}
			})
		})
	}
}

// Operations that were cut off are censored, by kind.
func TestOverheadFillCensors(t *testing.T) {
	synthetic.Virtual(t, func(t *testing.T) {
		limits := synthetic.Limits()
		limits.Deadline = experiment.Duration(5500 * time.Millisecond)
		what := cell("fill", 10, func(o *experiment.Overhead) { o.Objects = 10 })
		b, n := newScripted(t, nil, system.Options{"a": "0s"}, limits, what)
		puts := 0
		n.on["put"] = func(ctx context.Context) error {
			puts++
			select {
			case <-time.After(time.Duration(puts) * time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		n.on["get"] = hang
		y := b.must(what)
		// 1 to 5 s, and five longer than 5.5 s.
		if got := y.M["put_p50"]; !synthetic.Near(got, 5) || y.M["duration_p50"] != got {
			t.Errorf("put_p50 is %g", got)
		}
		if _, told := y.M["get_p50"]; told {
			t.Errorf("nothing was fetched: %v", y.M)
		}
		if _, told := y.M["stat_p50"]; !told {
			t.Errorf("no stat_p50: %v", y.M)
		}
	})
}

// counter is a client whose interface counts bytes.
type counter struct {
	testbed.Host
	bytes atomic.Int64
}

func (c *counter) Traffic() (rx, tx float64) { return 0, float64(c.bytes.Load()) }

// Bytes on the wire cover exactly the timed operations, one at a time, or are not reported.
func TestOverheadWireBytes(t *testing.T) {
	for _, c := range []struct {
		operation   string
		concurrency int
		want        float64 // 0: not reported
	}{{"get", 1, 1100}, {"get", 4, 0}, {"put", 1, 1200}, {"put", 4, 0}, {"put-durable", 1, 1207},
		{"put-durable", 4, 0}, {"delete", 4, 0}, {"fill", 1, 0}} {
		synthetic.Virtual(t, func(t *testing.T) {
			what := cell(c.operation, 1000, func(o *experiment.Overhead) { o.Concurrency = c.concurrency })
			wire := &counter{}
			b, n := newScripted(t, wire, nil, synthetic.Limits(), what)
			for call, bytes := range map[string]int64{"get": 1100, "put": 1200, "settle": 7, "cool": 5000} {
				n.on[call] = func(context.Context) error { wire.bytes.Add(bytes); return nil }
			}
			y := b.must(what)
			if got, told := y.M["wire_bytes"]; told != (c.want > 0) || got != c.want {
				t.Errorf("%+v: %g, %v", c, got, told)
			}
		})
	}
}

// Steps around operations have a deadline, too, and their errors name the step.
func TestOverheadPreparationHasDeadlines(t *testing.T) {
	for operation, c := range map[string]struct{ call, want string }{
		"get":     {"cool", "cold: it took longer than 10m0s"},
		"put":     {"stats", "it: ask what its servers hold: it took longer than 10m0s"},
		"put-dir": {"", "it: make a directory: it took longer than 10m0s"},
		"delete":  {"seed", "it: store an object to remove: it took longer than 10m0s"},
	} {
		synthetic.Virtual(t, func(t *testing.T) {
			what := cell(operation, 1000)
			b, n := newScripted(t, nil, nil, synthetic.Limits(), what)
			if n.on[c.call] = hang; c.call == "" {
				n.Change(func(m *mem.Model) { m.Hangs = 1 })
			}
			begun := time.Now()
			_, err := b.trial(t.Context(), what)
			if err == nil || !strings.Contains(err.Error(), c.want) ||
				time.Since(begun) > synthetic.Limits().Deadline.Std()+time.Second {
				t.Errorf("%s: %v after %s", operation, err, time.Since(begun))
			}
		})
	}
}

// A generator that limits a trial is reported: its CPU time fills the time of the operations.
func TestOverheadGeneratorSaysWhenItIsTheLimit(t *testing.T) {
	synthetic.Virtual(t, func(t *testing.T) {
		const each = 60 * time.Millisecond // virtual; CPU is real
		what := cell("put", 1000, func(o *experiment.Overhead) { o.Count = 3 })
		for _, busy := range []bool{true, false} {
			b, n := newScripted(t, nil, nil, synthetic.Limits(), what)
			n.on["put"] = func(context.Context) error {
				for from := timing.SelfCPU(); busy && timing.SelfCPU()-from < each.Seconds(); {
				}
				if !busy {
					time.Sleep(time.Minute)
				}
				time.Sleep(each)
				return nil
			}
			y := b.must(what)
			if slices.Contains(y.Load.Invalid, record.ReasonGeneratorSaturated) != busy {
				t.Errorf("busy %v: %q, %q", busy, y.Load.Invalid, y.Load.Notes)
			}
		}
	})
	for _, c := range []struct {
		cpu, busy      float64
		workers, cores int
		want           bool
	}{
		{0.9, 1, 1, 2, true}, {0.7, 1, 1, 2, false}, {0.09, 0.09, 1, 2, false}, // too short to judge
		{1.5, 4, 4, 2, false}, {1.7, 4, 4, 2, true}, {1.7, 2, 2, 8, true}, {0, 0, 1, 2, false},
	} {
		if got := scenario.Saturated(c.cpu, c.busy, c.workers, c.cores); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
