package scenario

import (
	"math"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
)

// measured is a trial of two seconds: an operation that was ok, and one whose
// deadline passed when half of its bytes had come.
func measured(t *testing.T) Measured {
	t.Helper()
	s := record.NewSummary()
	const second, size = int64(time.Second), 1_000_000_000
	err := s.Ops([]record.Op{
		{Kind: record.OpRange, Outcome: record.OK, Length: size, Bytes: size, Start: 1, Intended: 1, FirstByte: second / 2, LastByte: second},
		{Kind: record.OpRange, Outcome: record.Deadline, Class: "in the body", Length: size, Bytes: size / 2, Start: 1, Intended: 1, FirstByte: second / 2, LastByte: 2 * second},
	})
	if err != nil {
		t.Fatal(err)
	}
	return Measured{
		Cell:    experiment.Cell{Retrieve: &experiment.ResolvedRetrieve{Concurrency: 2, Range: size, Connections: "keep"}},
		Summary: s,
		Load:    Load{Seconds: 2, CPU: 3},
		Usage:   Usage{SystemCPU: 6, SystemRSSPeak: math.NaN(), OthersBusy: math.NaN()},
	}
}

// Throughput is of what was asked for and came; what a byte costs is of all that
// came, or a deadline would make a server look expensive.
func TestMeasureBytes(t *testing.T) {
	m := Retrieve{}.Measure(measured(t))
	for key, want := range map[string]float64{
		"success_rate": 1, "throughput": 0.5e9, "ops_rate": 0.5,
		"system_cpu_per_gb": 4, "generator_cpu_per_gb": 2, // 1.5 GB came
	} {
		if got, ok := m[key]; !ok || math.Abs(got-want) > 1e-9*want {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
	for _, key := range []string{"system_rss_peak", "others_busy", "load_line", "offered_rate", "ttfb_p90"} {
		if v, ok := m[key]; ok {
			t.Errorf("%s is %v, though nothing is known of it", key, v)
		}
	}
}

// The rate that a link reached without having one asked for is no limit of it.
func TestLoadLineOfLinksWithoutARate(t *testing.T) {
	const rtt = 0.04
	for name, c := range map[string]struct {
		link experiment.ResolvedLink
		want record.LinkCheck
		line float64 // NaN: none
	}{
		"rate and delay": {experiment.ResolvedLink{Rate: 1e9, Delay: experiment.Duration(20 * time.Millisecond)}, record.LinkCheck{WantRate: 0.95e9, WantRTT: rtt, Rate: 0.96e9, RTT: rtt}, 0.96e9 / 8},
		"delay alone":    {experiment.ResolvedLink{Delay: experiment.Duration(20 * time.Millisecond)}, record.LinkCheck{WantRTT: rtt, Rate: 3e9, RTT: rtt}, 2 * 1e9 / rtt},
		"not shaped":     {experiment.ResolvedLink{}, record.LinkCheck{Rate: 3e9, RTT: 5e-5}, math.NaN()},
	} {
		in := measured(t)
		in.Cell.Link, in.Link = c.link, &c.want
		got, ok := Retrieve{}.Measure(in)["load_line"]
		if ok == math.IsNaN(c.line) || ok && math.Abs(got-c.line) > 1e-9*c.line {
			t.Errorf("%s: load line %v (%v), want %v", name, got, ok, c.line)
		}
	}
}
