package retrieve

import (
	"math"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/httpload"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
)

const ms = int64(1e6)

func get(outcome record.Outcome, bytes, first, last int64) record.Op {
	return record.Op{Kind: record.OpRange, Outcome: outcome, Length: 100_000, Bytes: bytes, FirstByte: first * ms,
		LastByte: last * ms}
}

// TestMeasure checks the metrics of trials of one second; NaN: left out.
func TestMeasure(t *testing.T) {
	none, one := math.NaN(), []record.Op{get(record.OK, 100_000, 10, 20)}
	cutOff := get(record.Deadline, 70_000, 0, 900)
	link := func(want, rate, rtt float64) *record.LinkCheck {
		return &record.LinkCheck{WantRate: want, WantRTT: rtt, Rate: rate, RTT: max(rtt, 5e-5)}
	}
	fresh := func(in *scenario.Measured) {
		in.Cell.Retrieve.Connections, in.TLS, in.Cell.Retrieve.Concurrency = "fresh", true, 1
	}
	for name, c := range map[string]struct {
		ops  []record.Op
		link *record.LinkCheck
		set  func(*scenario.Measured)
		want map[string]float64
	}{
		"known truth": {ops: []record.Op{
			get(record.OK, 100_000, 10, 20),
			get(record.OK, 100_000, 20, 40),
			get(record.OK, 100_000, 30, 60),
			get(record.Error, 50_000, 5, 6),        // counts against the server, with its bytes received in vain
			get(record.Deadline, 70_000, 50, 900),  // the experiment's limit: in no rate, censored in the times
			get(record.InFlight, 25_000, 100, 990), // its bytes count in the throughput
		}, want: map[string]float64{
			"success_rate":         0.75,
			"throughput":           325_000,
			"ops_rate":             3,
			"system_cpu_per_gb":    0.004 / 445_000e-9, // over all received bytes: those of failures cost as much
			"generator_cpu_per_gb": 0.002 / 445_000e-9,
			"system_rss_peak":      5e6,
			"ttfb_p50":             0.030, // of 10, 20, 30, 50, 100 ms
			"duration_p50":         0.060, // three of five ended by then, two were cut off later
			"ttfb_p90":             none, "ttfb_p99": none, "duration_p90": none, "load_line": none,
			"load_line_share": none, "offered_rate": none, "others_busy": none,
		}},
		// Three of four did not end. Deadlines do not count against the server.
		"a median that was cut off": {ops: []record.Op{one[0], cutOff, cutOff, cutOff},
			want: map[string]float64{"duration_p50": none, "success_rate": 1}},
		"nothing": {set: func(in *scenario.Measured) { in.Load.Seconds = 0 },
			want: map[string]float64{"success_rate": none}},
		// Two connections, each 0.1 s of waiting and 0.1 s of receiving: 1 MB/s, the link's rate.
		"load line": {ops: one, link: link(8e6, 8e6, 0.1),
			want: map[string]float64{"load_line": 1e6, "load_line_share": 0.1}},
		// Three round trips, and two pauses of slow start: 29.2 and 58.4 kB come before the last
		// 12.4 kB.
		"one fresh TLS connection": {ops: one, link: link(8e6, 8e6, 0.1), set: fresh,
			want: map[string]float64{"load_line": 100_000 / 0.5124, "duration_line": 0.5124,
				"duration_line_share": 0.5124 / 0.020, "ttfb_line": 0.3, "ttfb_line_share": 0.3 / 0.010}},
		"open loop": {ops: one, link: link(8e6, 8e6, 0.1), set: func(in *scenario.Measured) {
			fresh(in)
			in.Cell.Retrieve.Arrivals = &experiment.Arrivals{Process: "constant", Rate: 1}
		}, want: map[string]float64{"load_line": none, "duration_line": 0.5124}},
		// Of 10 that were to come in the second, 8 could end: the answers take 200 ms.
		"offered": {ops: slices.Repeat([]record.Op{get(record.OK, 100_000, 10, 200)}, 8), set: func(in *scenario.Measured) {
			in.Cell.Retrieve.Arrivals, in.Load.OfferedRate = &experiment.Arrivals{Process: "constant", Rate: 10}, 10
		}, want: map[string]float64{"achieved_share": 1}},
		// The rate measured over a link without a rate limit is no limit.
		"delay alone": {ops: one, link: link(0, 3e9, 0.04), want: map[string]float64{"load_line": 2 * 100_000 / 0.04}},
		"not shaped":  {ops: one, link: link(0, 3e9, 0), want: map[string]float64{"load_line": none}},
	} {
		s := record.NewSummary()
		must(t, s.Ops(c.ops))
		in := scenario.Measured{Summary: s, Link: c.link, Load: scenario.Load{Seconds: 1, CPU: 0.002},
			Cell: experiment.Cell{Data: experiment.Data{Objects: 1, Size: 1 << 20},
				Retrieve: &experiment.Retrieve{Concurrency: 2, Range: 100_000, Connections: "keep"}},
			Usage: scenario.Usage{SystemCPU: 0.004, SystemRSSPeak: 5e6, OthersBusy: none}}
		if c.set != nil {
			c.set(&in)
		}
		m := Scenario{}.Measure(in)
		for key, w := range c.want {
			if got, ok := m[key]; ok == math.IsNaN(w) || ok && math.Abs(got-w) > 0.002*w {
				t.Errorf("%s: %s is %g (there: %v), want %g", name, key, got, ok, w)
			}
		}
		for key, v := range m {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Errorf("%s: %s is %g", name, key, v)
			}
		}
	}
}

// There is no warm-up if whole objects cannot reach every connection within the stall limit.
func TestTooLongToWarm(t *testing.T) {
	for _, c := range []struct {
		size, rate float64
		undivided  string
		want       bool
	}{
		{100e6, 1e6, "a stream", true}, {5e6, 1e6, "a stream", false}, {-1, 1e6, "a stream", true},
		{100e6, 1e6, "", false}, {100e6, 0, "a stream", false}, {-1, math.Inf(1), "a stream", false},
		{100e6, 1e9, "a stream", false},
	} {
		spec := httpload.Spec{Concurrency: 4, Stall: 30 * time.Second,
			Objects: []httpload.Object{{Size: 1}, {Size: int64(c.size), Undivided: c.undivided}}}
		if got := tooLongToWarm(spec, c.rate); (got != "") != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A load that begins 0.8 s after the epoch transfers a kilobyte per ms for four seconds: each whole
// second shows this rate, and the partial first and last seconds are no points.
func TestThroughputOverTime(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	run, err := record.Create(dir, []byte("{}"), map[string]string{"plimsoll": "test"}, Scenario{}.Metrics())
	must(t, err)
	w, err := run.Begin("c001", 0, false, time.Now())
	must(t, err)
	warm := record.Op{Kind: record.OpWarmup, Bytes: 1000, FirstByte: 1, LastByte: ms}
	must(t, w.Ops([]record.Op{warm}))
	for at := int64(800); at < 4800; at++ {
		must(t, w.Ops([]record.Op{{Bytes: 1000, Start: at * ms, FirstByte: at*ms + 1, LastByte: (at + 1) * ms}}))
	}
	must(t, w.End(record.Trial{Seconds: 4}))
	must(t, run.Close())
	r, err := record.Open(dir)
	must(t, err)
	defer r.Close()
	trials, err := r.Trials()
	must(t, err)
	cell := &analysis.Cell{Plan: experiment.Cell{Retrieve: &experiment.Retrieve{}}}
	facts, err := read(&analysis.Trial{Trial: trials[0], Info: cell}, r)
	must(t, err)
	points := facts.Series[0].Points
	if len(points) != 3 {
		t.Fatalf("points %+v", points)
	}
	for i, p := range points {
		if math.Abs(p.Value/1e6-1) > 0.002 || math.Abs(p.At-float64(i)-0.7) > 1e-9 {
			t.Errorf("point %d is %+v", i, p)
		}
	}
}
