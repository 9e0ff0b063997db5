package overhead

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/internal/synthetic"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/mem"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// bench runs trials of scenario overhead on system mem, in the virtual time of
// the test's bubble.
type bench struct {
	t      *testing.T
	node   *mem.Node
	runner scenario.Runner
	trials int
}

func newBench(t *testing.T, opt system.Options, limits experiment.Limits, cells ...experiment.Cell) *bench {
	t.Helper()
	n := synthetic.MemNode(t, opt)
	return newBenchOn(t, nil, n, n, limits, cells...)
}

// newBenchOn returns a bench on which the scenario sees another node than mem's own.
func newBenchOn(t *testing.T, client testbed.Host, node *mem.Node, seen system.Node, limits experiment.Limits,
	cells ...experiment.Cell) *bench {
	t.Helper()
	site := synthetic.Site(system.Start, seen)
	site.Client, site.Limits = client, limits
	if p := (Scenario{}).Problems(site.Use, mem.System{}.Info(), cells); len(p) > 0 {
		t.Fatal(p)
	}
	runner, err := Scenario{}.Prepare(t.Context(), site, cells)
	must(t, err)
	return &bench{t: t, node: node, runner: runner}
}

// cell returns a cell of an operation; set changes it.
func cell(operation string, size int64, set ...func(*experiment.Overhead)) experiment.Cell {
	o := &experiment.Overhead{
		Operation: operation, Connections: "keep", Concurrency: 1, Count: 5, Time: experiment.Duration(time.Hour),
		RangeOf: 1 << 20, Objects: 100,
	}
	for _, f := range set {
		f(o)
	}
	return experiment.Cell{Data: experiment.Data{Objects: 1, Size: experiment.Bytes(size)}, Overhead: o}
}

func fresh(o *experiment.Overhead) { o.Connections = "fresh" }

func (b *bench) trial(ctx context.Context, c experiment.Cell) (*synthetic.Recorded, error) {
	b.t.Helper()
	b.trials++
	var y synthetic.Recorded
	err := y.Run(ctx, Scenario{}, b.runner, c, uint64(b.trials), scenario.Sink{}, scenario.Usage{})
	return &y, err
}

func (b *bench) must(c experiment.Cell) *synthetic.Recorded {
	b.t.Helper()
	y, err := b.trial(b.t.Context(), c)
	must(b.t, err)
	return y
}

// The configured times of mem's operations are recovered for each operation.
func TestOverheadRecoversKnownTimes(t *testing.T) {
	const a, r, dial, rate, rtt, size = 0.010, 9.0, 3.0, 1e6, 0.014, 50_000.0
	opt := system.Options{"a": "10ms", "r": "9", "dial": "3", "rate": "1000000", "rtt": "14ms", "settle": "3s",
		"cache": "true", "expansion": "1.5"}
	for _, c := range []struct {
		operation   string
		want        float64
		kind        record.OpKind
		reads, puts bool
	}{
		{"put", a + r*rtt + size/rate, record.OpPut, false, true},
		{"put-durable", a + r*rtt + size/rate + 3, record.OpPutDurable, false, true},
		{"put-dir", 2*(a+r*rtt) + size/rate, record.OpPutDir, false, true},
		{"get", a + r*rtt + size/rate, record.OpGet, true, false}, // cold in spite of a cache
		{"range", a + r*rtt + size/rate, record.OpRange, true, false},
		{"stat", a + r*rtt, record.OpStat, false, false},
		{"update", a + r*rtt + size/rate, record.OpUpdate, false, false},
		{"delete", a + r*rtt, record.OpDelete, false, false},
	} {
		for _, connections := range []string{"keep", "fresh"} {
			t.Run(c.operation+"/"+connections, func(t *testing.T) {
				synthetic.Virtual(t, func(t *testing.T) {
					what := cell(c.operation, size, func(o *experiment.Overhead) { o.Connections = connections })
					b := newBench(t, opt, synthetic.Limits(), what)
					y := b.must(what)
					want := c.want
					if connections == "fresh" {
						want += dial * rtt
					}
					if got := y.M["duration_p50"]; !synthetic.Near(got, want) {
						t.Errorf("duration_p50 is %g, want %g", got, want)
					}
					if len(y.Ops) != 5 || y.M["success_rate"] != 1 ||
						!synthetic.Near(y.M["ops_rate"], 1/want) {
						t.Errorf("%d operations, %v", len(y.Ops), y.M)
					}
					for _, op := range y.Ops {
						if op.Kind != c.kind || op.Outcome != record.OK || op.Bytes != op.Length {
							t.Errorf("%+v", op)
						}
						if (op.FirstByte != 0) != c.reads {
							t.Errorf("first byte: %+v", op)
						}
					}
					_, first := y.M["first_byte_p50"]
					_, expanded := y.M["expansion"]
					if first != c.reads || expanded != c.puts {
						t.Errorf("metrics %v", y.M)
					}
					if c.puts && (!synthetic.Near(y.M["expansion"], 1.5) ||
						!synthetic.Near(y.M["absolute_per_op"], 1.5*size) ||
						y.M["inodes_per_object"] != 1) {
						t.Errorf("metrics %v", y.M)
					}
					if d := y.Load.Details; len(d) == 0 || d[0].Kind != record.DetailPhase {
						t.Errorf("no phases: %v", d)
					}
				})
			})
		}
	}
}

// Every fault has its outcome within the limits.
func TestOverheadOutcomes(t *testing.T) {
	limits := synthetic.Limits()
	soon := synthetic.Limits()
	soon.Deadline = experiment.Duration(2 * time.Second)
	for name, c := range map[string]struct {
		operation string
		fault     func(*mem.Model)
		limits    experiment.Limits
		want      record.Outcome
		class     string
		within    time.Duration // limit of one operation
	}{
		"error": {"get", func(m *mem.Model) { m.Errors = 1 }, limits, record.Error, mem.ErrInjected.Error(),
			time.Second},
		"silent get":   {"get", func(m *mem.Model) { m.Hangs = 1 }, limits, record.Stalled, "", 30 * time.Second},
		"silent put":   {"put", func(m *mem.Model) { m.Hangs = 1 }, limits, record.Stalled, "", 30 * time.Second},
		"silent stat":  {"stat", func(m *mem.Model) { m.Hangs = 1 }, limits, record.Deadline, "", 10 * time.Minute},
		"deadline":     {"get", func(m *mem.Model) { m.Hangs = 1 }, soon, record.Deadline, "", 2 * time.Second},
		"slow":         {"put", func(m *mem.Model) { m.Rate = 1000 }, soon, record.Deadline, "", 2 * time.Second},
		"corrupt":      {"get", func(m *mem.Model) { m.Corrupt = 1 }, limits, record.WrongBytes, "", time.Second},
		"corrupt part": {"range", func(m *mem.Model) { m.Corrupt = 1 }, limits, record.WrongBytes, "", time.Second},
		"truncated":    {"get", func(m *mem.Model) { m.Truncate = 1 }, limits, record.Truncated, "", time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synthetic.Virtual(t, func(t *testing.T) {
				what := cell(c.operation, 20_000, func(o *experiment.Overhead) { o.Count = 2 })
				b := newBench(t, nil, c.limits, what)
				b.node.Change(c.fault)
				y := b.must(what)
				if len(y.Ops) != 2 {
					t.Fatalf("%d operations", len(y.Ops))
				}
				for _, op := range y.Ops {
					if op.Outcome != c.want || op.Class != c.class || time.Duration(op.LastByte-op.Start) > c.within {
						t.Errorf("got %+v, want %s %q within %s", op, c.want, c.class, c.within)
					}
				}
				if rate, ok := y.M["success_rate"]; c.want.Finished() != ok || rate != 0 {
					t.Errorf("success rate %v, %v", rate, ok)
				}
				if _, ok := y.M["expansion"]; ok {
					t.Error("expansion of objects that were not stored")
				}
			})
		})
	}
}

// If an object cannot be made cold, its read is no measurement.
func TestOverheadColdOrNotAtAll(t *testing.T) {
	synthetic.Virtual(t, func(t *testing.T) {
		what := cell("get", 1000)
		b := newBench(t, system.Options{"cache": "true"}, synthetic.Limits(), what)
		b.node.Change(func(m *mem.Model) { m.Warm = true })
		y, err := b.trial(t.Context(), what)
		if !errors.Is(err, system.ErrWarm) || len(y.Ops) != 0 {
			t.Errorf("%v, %d operations", err, len(y.Ops))
		}
	})
}

func TestOverheadBounds(t *testing.T) {
	synthetic.Virtual(t, func(t *testing.T) {
		put := func(count int, time time.Duration) experiment.Cell {
			return cell("put", 1, func(o *experiment.Overhead) { o.Count, o.Time = count, experiment.Duration(time) })
		}
		b := newBench(t, system.Options{"a": "1s"}, synthetic.Limits())
		for _, c := range []struct {
			count int
			time  time.Duration
			want  int
		}{{3, time.Hour, 3}, {100, 4500 * time.Millisecond, 5}, {100, time.Millisecond, 1}} {
			if y := b.must(put(c.count, c.time)); len(y.Ops) != c.want ||
				!synthetic.Near(y.Load.Seconds, float64(c.want)) {
				t.Errorf("count %d, time %s: %d operations in %g s", c.count, c.time, len(y.Ops), y.Load.Seconds)
			}
		}
		many := cell("put", 1, func(o *experiment.Overhead) { o.Concurrency = 4 })
		if y := b.must(many); len(y.Ops) != 20 || !synthetic.Near(y.Load.Seconds, 5) ||
			!synthetic.Near(y.M["ops_rate"], 4) || slices.ContainsFunc(y.Load.Details, func(d record.Detail) bool {
			return d.Kind == record.DetailPhase
		}) {
			t.Errorf("four at once: %d operations in %g s, %v, %v", len(y.Ops), y.Load.Seconds, y.M,
				y.Load.Details)
		}
		if h, err := b.node.Stats(t.Context()); err != nil || h.Objects != 0 {
			t.Errorf("%d objects are left (%v)", h.Objects, err)
		}
	})
}

// Objects of fill remain; a new deployment begins without objects.
func TestOverheadFill(t *testing.T) {
	synthetic.Virtual(t, func(t *testing.T) {
		fill := cell("fill", 2000, func(o *experiment.Overhead) { o.Objects, o.Count, o.Concurrency = 100, 7, 3 })
		opt := system.Options{"a": "10ms", "rate": "200000", "expansion": "3.3"}
		b := newBench(t, opt, synthetic.Limits(), fill)
		for trial := range 3 {
			y := b.must(fill)
			kinds := map[record.OpKind]int{}
			for _, op := range y.Ops {
				kinds[op.Kind]++
				if op.Outcome != record.OK {
					t.Errorf("%+v", op)
				}
			}
			if kinds[record.OpPut] != 100 || kinds[record.OpGet] != 21 || kinds[record.OpStat] != 21 {
				t.Errorf("operations: %v", kinds)
			}
			m := y.M
			if m["stored_objects"] != float64(50+100*trial) || !synthetic.Near(m["put_p50"], 0.02) ||
				!synthetic.Near(m["get_p50"], 0.02) || !synthetic.Near(m["stat_p50"], 0.01) ||
				m["duration_p50"] != m["put_p50"] {
				t.Errorf("trial %d: %v", trial, m)
			}
			if !synthetic.Near(m["expansion"], 3.3) || m["entries_per_object"] != 1 ||
				!synthetic.Near(m["disk_per_byte"], 8192.0/2000) {
				t.Errorf("trial %d: %v", trial, m)
			}
		}
		if h, err := b.node.Stats(t.Context()); err != nil || h.Objects != 300 {
			t.Errorf("%d objects (%v)", h.Objects, err)
		}
		if y := newBench(t, opt, synthetic.Limits(), fill).must(fill); y.M["stored_objects"] != 50 {
			t.Errorf("brought up anew: %v", y.M)
		}
	})
}

// Stored content is always new: a system that already has the content would have nothing to do.
func TestOverheadContentIsFresh(t *testing.T) {
	synthetic.Virtual(t, func(t *testing.T) {
		fill := cell("fill", 64, func(o *experiment.Overhead) { o.Concurrency, o.Count = 4, 1 })
		b := newBench(t, nil, synthetic.Limits(), fill)
		for range 5 {
			put := map[uint32]bool{}
			for _, op := range b.must(fill).Ops {
				if op.Kind == record.OpPut {
					put[op.Object] = true
				}
			}
			if len(put) != 100 {
				t.Errorf("100 puts are of %d objects", len(put))
			}
		}
		objects, err := system.All(t.Context(), b.node)
		if err != nil || len(objects) != 500 {
			t.Fatalf("%d objects, %v", len(objects), err)
		}
		seen := map[string]bool{}
		for _, o := range objects {
			var text strings.Builder
			must(t, b.node.Get(t.Context(), o.Ref, &text))
			seen[text.String()] = true
		}
		if len(seen) != 500 {
			t.Errorf("500 objects have %d contents", len(seen))
		}
	})
}

func TestOverheadEndsWithItsContext(t *testing.T) {
	synthetic.Virtual(t, func(t *testing.T) {
		what := cell("put", 1000, fresh)
		b := newBench(t, system.Options{"a": "20s"}, synthetic.Limits(), what)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		y, err := b.trial(ctx, what)
		if !errors.Is(err, context.DeadlineExceeded) || y.Took != 30*time.Second {
			t.Errorf("%v after %s", err, y.Took)
		}
		if len(y.Ops) != 2 || y.Ops[0].Outcome != record.OK || y.Ops[1].Outcome != record.Cancelled {
			t.Errorf("%+v", y.Ops)
		}
	})
}

func TestPickSharesObjects(t *testing.T) {
	for _, c := range []struct{ objects, workers int }{{1, 1}, {5, 1}, {4, 4}, {10, 4}} {
		owner := map[int]int{}
		for worker := range c.workers {
			for n := -1; n < 30; n++ {
				i := pick(c.objects+c.workers, c.workers, worker, n)
				if i < 0 || i >= c.objects+c.workers || (i >= c.objects) != (n < 0) {
					t.Fatalf("%+v: worker %d, %d: %d", c, worker, n, i)
				}
				if other, taken := owner[i]; taken && other != worker {
					t.Fatalf("%+v: object %d has two workers", c, i)
				}
				owner[i] = worker
			}
		}
		if len(owner) != c.objects+c.workers {
			t.Errorf("%+v: %s objects are used", c, strconv.Itoa(len(owner)))
		}
	}
}

// The load line covers the bytes that crossed the link; if they are unknown, there is none.
func TestOverheadLines(t *testing.T) {
	const size = 1e6
	base := func(op, connections string, wire, expansion float64) map[string]float64 {
		var details []record.Detail
		if wire > 0 {
			details = append(details, scenario.Fact(scenario.LoadWire, wire))
		}
		held := map[string]float64{"absolute": expansion * size, "bytes": size, "objects": 1}
		for name, v := range held {
			if expansion > 0 {
				details = append(details, record.Detail{Kind: record.DetailHeldBefore, Name: name},
					record.Detail{Kind: record.DetailHeldAfter, Name: name, Value: v})
			}
		}
		sum := record.NewSummary()
		if err := sum.Ops([]record.Op{{Kind: record.OpPut, Length: size, Bytes: size, FirstByte: 300e6,
			LastByte: 2e9}}); err != nil {
			t.Fatal(err)
		}
		return Scenario{}.Measure(scenario.Measured{Cell: experiment.Cell{Data: experiment.Data{Size: size},
			Overhead: &experiment.Overhead{Operation: op, Connections: connections, Concurrency: 1}},
			Summary: sum, Ops: slices.Values([]record.Op{}), Load: scenario.Load{Details: details},
			Usage: scenario.Usage{SystemCPU: math.NaN(), SystemRSSPeak: math.NaN(), OthersBusy: math.NaN()},
			Link:  &record.LinkCheck{WantRate: 8e6, Rate: 8e6, WantRTT: 0.1, RTT: 0.1}})
	}
	for _, c := range []struct {
		name, op, connections string
		wire, expansion       float64 // 0: not counted
		line, first           float64 // 0: none
	}{
		{"a read", "get", "keep", 1.05e6, 0, 1.1, 0.1},
		{"on a fresh connection", "get", "fresh", 1.05e6, 0, 1.2, 0.2},
		{"a write with the redundancy made here", "put", "keep", 1.6e6, 1.5, 1.6, 0.1},
		{"made by the servers", "put", "keep", 1.05e6, 1.5, 1.1, 0.1},
		{"accepted before it crossed", "put", "keep", 2e4, 1.5, 0, 0},
		{"nobody counted", "put", "keep", 0, 0, 0, 0},
		{"no bytes to move", "stat", "keep", 700, 0, 0.1, 0.1},
		{"answered here", "stat", "keep", 60, 0, 0, 0},
	} {
		m := base(c.op, c.connections, c.wire, c.expansion)
		for key, want := range map[string]float64{"line": c.line, "first_byte_line": c.first} {
			if got, has := m[key]; has != (want > 0) || math.Abs(got-want) > 1e-9 {
				t.Errorf("%s: %s %v (%v), want %v", c.name, key, got, has, want)
			}
		}
		if c.line > 0 && math.Abs(m["line_share"]-c.line/m["duration_p50"]) > 1e-9 {
			t.Errorf("%s: share %v", c.name, m["line_share"])
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// All missing abilities of a system or its options are reported together before anything is stored,
// with the conditions that leave out the cells.
func TestProblems(t *testing.T) {
	always := map[string]string{"connections": "fresh"} // a system without persistent connections cannot keep any
	for _, c := range []struct {
		name     string
		identity map[string]string
		cells    []experiment.Cell
		want     []string // in the problem, and in the hint to each
	}{
		{"what it can", nil, []experiment.Cell{cell("put", 1), cell("get", 1), cell("fill", 1)}, nil},
		{"operations", nil, []experiment.Cell{cell("get", 1), cell("stat", 1), cell("stat", 2), cell("delete", 1)},
			[]string{"which the operation stat needs", "system != it || overhead.operation != stat",
				"which the operation delete needs", "system != it || overhead.operation != delete"}},
		{"durable", nil, []experiment.Cell{cell("put-durable", 1)}, []string{"durable", "overhead.operation != put-durable"}},
		{"directory", nil, []experiment.Cell{cell("put-dir", 1)}, []string{"directory", "!= put-dir"}},
		{"fresh", nil, []experiment.Cell{cell("put", 1, fresh)}, []string{"fresh",
			"system != it || overhead.connections != fresh"}},
		{"fresh anyway", always, []experiment.Cell{cell("put", 1, fresh)}, nil},
		{"keep", always, []experiment.Cell{cell("put", 1, fresh), cell("put", 1)}, []string{"connections: keep",
			"system != it || overhead.connections != keep", "connections: keep", "override: {connections: fresh}"}},
		{"no write", nil, []experiment.Cell{cell("get", 0)}, []string{"may not write", "allow: [write]"}},
	} {
		synthetic.Virtual(t, func(t *testing.T) {
			n := synthetic.MemNode(t, nil)
			site := synthetic.Site(system.Start, onlyNode{n})
			site.Cluster = synthetic.Cluster{Node: onlyNode{n}, Details: c.identity}
			_, err := scenario.Prepare(t.Context(), Scenario{}, system.Info{}, site, c.cells)
			var unfit *scenario.PreconditionError
			if errors.As(err, &unfit) != (c.want != nil) || err != nil && synthetic.Objects(t, n) > 0 {
				t.Fatalf("%s: %v, %d objects were stored", c.name, err, synthetic.Objects(t, n))
			}
			for i := 0; i < len(c.want); i += 2 {
				if !strings.Contains(unfit.Error(), c.want[i]) || !strings.Contains(unfit.Hint(), c.want[i+1]) {
					t.Errorf("%s: %v; %s", c.name, unfit, unfit.Hint())
				}
			}
			if told := (Scenario{}).Problems(site.Use, system.Info{Can: system.Abilities(onlyNode{n})}, c.cells); c.identity ==
				nil && len(told) != len(c.want)/2 {
				t.Errorf("%s: before it runs: %v", c.name, told)
			}
		})
	}
	// Where no operation is possible, no condition on the cells helps.
	told := Scenario{}.Problems(synthetic.Site(system.Start, nil).Use, system.Info{Can: []string{"spread"}},
		[]experiment.Cell{cell("get", 1), cell("stat", 1)})
	if len(told) != 1 || told[0].Hint != "take it out of the experiment" {
		t.Errorf("a system without put: %v", told)
	}
}

// Prepares agrees with Prepare.
func TestPrepares(t *testing.T) {
	synthetic.Virtual(t, func(t *testing.T) {
		four := func(o *experiment.Overhead) { o.Concurrency = 4 }
		cells := []experiment.Cell{
			cell("get", 1000), cell("stat", 1000, four), cell("get", 3000), cell("range", 10), cell("range", 20),
			cell("update", 500, four),
			cell("put", 1<<30), cell("delete", 1<<30),
		}
		objects, bytes := Scenario{}.Prepares(cells)
		if objects != 8+2+2+4 || bytes != 8*1000+2*3000+2<<20+4*500 {
			t.Errorf("%d objects, %d bytes", objects, bytes)
		}
		n := synthetic.MemNode(t, nil)
		if _, err := (Scenario{}).Prepare(t.Context(), synthetic.Site(system.Start, n), cells); err != nil {
			t.Fatal(err)
		}
		if h, err := n.Stats(t.Context()); err != nil || h.Objects != objects || h.Absolute != bytes {
			t.Errorf("%+v, %v", h, err)
		}
	})
}
