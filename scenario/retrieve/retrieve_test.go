package retrieve

import (
	"math"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/httpload"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
)

const ms = int64(1e6)

// measured builds a trial of one second from operations.
func measured(t *testing.T, ops []record.Op) scenario.Measured {
	t.Helper()
	s := record.NewSummary()
	must(t, s.Ops(ops))
	return scenario.Measured{
		Cell: experiment.Cell{
			Data:     experiment.Data{Objects: 1, Size: 1 << 20},
			Retrieve: &experiment.Retrieve{Concurrency: 2, Range: 100_000, Connections: "keep"},
		},
		Summary: s, Load: scenario.Load{Seconds: 1, CPU: 0.002},
		Usage: scenario.Usage{SystemCPU: 0.004, SystemRSSPeak: 5e6, OthersBusy: math.NaN()},
	}
}

func get(outcome record.Outcome, bytes, first, last int64) record.Op {
	return record.Op{Kind: record.OpRange, Outcome: outcome, Length: 100_000, Bytes: bytes, FirstByte: first * ms,
		LastByte: last * ms}
}

func TestMeasureKnownTruth(t *testing.T) {
	m := Scenario{}.Measure(measured(t, []record.Op{
		get(record.OK, 100_000, 10, 20),
		get(record.OK, 100_000, 20, 40),
		get(record.OK, 100_000, 30, 60),
		get(record.Error, 50_000, 5, 6),        // counts against the server, its bytes for nothing
		get(record.Deadline, 70_000, 50, 900),  // our limit: in no rate, censored in the times
		get(record.InFlight, 25_000, 100, 990), // work of this window all the same
	}))
	want := map[string]float64{
		"success_rate":         0.75,
		"throughput":           325_000,
		"ops_rate":             3,
		"system_cpu_per_gb":    0.004 / 445_000e-9, // of all bytes that came: those for nothing cost as much
		"generator_cpu_per_gb": 0.002 / 445_000e-9,
		"system_rss_peak":      5e6,
		"ttfb_p50":             0.030, // of 10, 20, 30, 50, 100 ms
		"duration_p50":         0.060, // three of five have ended by then, two were cut off later
	}
	for key, w := range want {
		if got, ok := m[key]; !ok || math.Abs(got-w) > 0.002*w {
			t.Errorf("%s is %g (there: %v), want %g", key, got, ok, w)
		}
	}
	for _, key := range []string{"ttfb_p90", "ttfb_p99", "duration_p90", "load_line", "load_line_share", "offered_rate",
		"others_busy", "generator_rss_peak0"} {
		if v, ok := m[key]; ok {
			t.Errorf("%s is %g; it should be left out", key, v)
		}
	}
}

func TestMeasureRefusesAMedianThatWasCutOff(t *testing.T) {
	m := Scenario{}.Measure(measured(t, []record.Op{
		get(record.OK, 100_000, 10, 20),
		get(record.Deadline, 70_000, 0, 900), get(record.Deadline, 70_000, 0, 900),
		get(record.Deadline, 70_000, 0, 900),
	}))
	if v, ok := m["duration_p50"]; ok {
		t.Errorf("three of four operations never ended, and the median duration is %g s", v)
	}
	if m["success_rate"] != 1 {
		t.Errorf("deadlines count against the server: success rate %g", m["success_rate"])
	}
}

func TestMeasureAgainstTheLoadLine(t *testing.T) {
	in := measured(t, []record.Op{get(record.OK, 100_000, 10, 20)})
	in.Link = &record.LinkCheck{WantRate: 8e6, WantRTT: 0.1, Rate: 8e6, RTT: 0.1} // 1 MB/s of payload, 100 ms
	m := Scenario{}.Measure(in)
	// Two connections, each 0.1 s of waiting and 0.1 s of receiving: 1 MB/s, the link's rate.
	if m["load_line"] != 1e6 || math.Abs(m["load_line_share"]-0.1) > 1e-9 {
		t.Errorf("load line %g B/s, share %g; want 1e6 and 0.1", m["load_line"], m["load_line_share"])
	}
	in.Cell.Retrieve.Connections, in.TLS, in.Cell.Retrieve.Concurrency = "fresh", true, 1
	// Three round trips, and two more in which slow start waits: 29.2 and 58.4 kB come
	// before the last 12.4 kB.
	m = Scenario{}.Measure(in)
	for key, want := range map[string]float64{"load_line": 100_000 / 0.5124, "duration_line": 0.5124,
		"duration_line_share": 0.5124 / 0.020, "ttfb_line": 0.3, "ttfb_line_share": 0.3 / 0.010} {
		if math.Abs(m[key]-want) > 0.002*want {
			t.Errorf("one fresh TLS connection: %s is %g, want %g", key, m[key], want)
		}
	}
	in.Cell.Retrieve.Arrivals = &experiment.Arrivals{Process: "constant", Rate: 1}
	m = Scenario{}.Measure(in)
	if v, ok := m["load_line"]; ok {
		t.Errorf("an open loop has a load line of %g", v)
	}
	if m["duration_line"] != 0.5124 {
		t.Errorf("its operations have a load line of %g s", m["duration_line"])
	}
}

func TestMeasureOfNothing(t *testing.T) {
	in := measured(t, nil)
	in.Load.Seconds = 0
	for key, v := range (Scenario{}).Measure(in) {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			t.Errorf("%s is %g", key, v)
		}
		if key == "success_rate" {
			t.Error("no operation, yet a success rate")
		}
	}
}

// The rate that a link reached without having one asked for is no limit of it.
func TestLoadLineOfLinksWithoutARate(t *testing.T) {
	const rtt = 0.04
	for name, c := range map[string]struct {
		link record.LinkCheck
		line float64 // NaN: none
	}{
		"delay alone": {record.LinkCheck{WantRTT: rtt, Rate: 3e9, RTT: rtt}, 2 * 100_000 / rtt},
		"not shaped":  {record.LinkCheck{Rate: 3e9, RTT: 5e-5}, math.NaN()},
	} {
		in := measured(t, []record.Op{get(record.OK, 100_000, 10, 20)})
		in.Link = &c.link
		got, ok := Scenario{}.Measure(in)["load_line"]
		if ok == math.IsNaN(c.line) || ok && math.Abs(got-c.line) > 1e-9*c.line {
			t.Errorf("%s: load line %v (%v), want %v", name, got, ok, c.line)
		}
	}
}

// Whole objects that cannot come to every connection within the stall limit warm up nothing.
func TestTooLongToWarm(t *testing.T) {
	for _, c := range []struct {
		size, rate float64
		undivided  bool
		want       bool
	}{
		{100e6, 1e6, true, true}, {5e6, 1e6, true, false}, {-1, 1e6, true, true},
		{100e6, 1e6, false, false}, {100e6, 0, true, false}, {-1, math.Inf(1), true, false}, {100e6, 1e9, true, false},
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
