package main

import (
	"math"
	"slices"
	"testing"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
)

// The round trips of an HTTP GET are known: one on an open connection, one more
// for TCP, one more for TLS 1.3.
const roundTripsExperiment = `
scenario: overhead
systems:
  - static
  - {name: static-https, use: static, with: {tls: true, h2: false}}
link: {delay: [2.5ms, 20ms]}
data: {size: 100B}
overhead: {operation: get, connections: [keep, fresh], count: 12, time: 3s}
where: ["system == static || overhead.connections == fresh"]
repetitions: 1
limits: {deadline: 5s}
`

// TestKnownRoundTrips measures them over emulated links of 5 to 40 ms of round
// trip. Disturbances of a busy machine only ever add time, so the lower quartile
// of a cell's operations stands for it, and the slope of time against the round
// trip that the link check measured is the number of round trips.
func TestKnownRoundTrips(t *testing.T) { // not beside other tests: they take its CPU
	s := startRun(t, roundTripsExperiment)
	s.endsMeasured()
	r := readRun(t, s.dir)
	links, err := r.Links()
	must(t, err)
	measured := map[float64][]float64{} // round trips by the one asked for
	for _, l := range links {
		measured[l.WantRTT] = append(measured[l.WantRTT], l.RTT)
	}
	times := map[string]map[float64][]float64{} // seconds by the round trip asked for
	for _, trial := range r.trials {
		if slices.Contains(trial.Notes, record.NoteNotEmulated) {
			t.Skip("links are not emulated on this machine")
		}
		c := r.cell(trial)
		what := c.System + " " + c.Overhead.Connections
		if times[what] == nil {
			times[what] = map[float64][]float64{}
		}
		rtt := 2 * c.Link.Delay.Seconds()
		for op, err := range r.Ops(trial.ID) {
			must(t, err)
			if op.Outcome != record.OK {
				t.Errorf("%s over %g ms: %s %s", what, rtt*1e3, op.Outcome, op.Class)
			}
			times[what][rtt] = append(times[what][rtt], float64(op.LastByte-op.Start)/1e9)
		}
		if trial.Metrics["wire_bytes"] <= 100 {
			t.Errorf("%s: %g bytes on the wire for 100 of the object", what, trial.Metrics["wire_bytes"])
		}
		if trial.State == record.Done && !slices.ContainsFunc(trial.Details,
			func(d record.Detail) bool { return d.Kind == record.DetailRSSPeak && d.Value > 1e6 }) {
			t.Errorf("%s: the server's memory is missing: %v", what, trial.Details)
		}
	}
	for what, want := range map[string]float64{"static keep": 1, "static fresh": 2, "static-https fresh": 3} {
		var x, y []float64
		for rtt, took := range times[what] {
			slices.Sort(took)
			x, y = append(x, stats.Median(measured[rtt])), append(y, took[len(took)/4])
		}
		if len(x) != 2 {
			t.Errorf("%s: %d round trips were measured", what, len(x))
			continue
		}
		got := stats.Slope(x, y)
		t.Logf("%s: R = %.3f", what, got)
		if math.Abs(got-want) > 0.05*want {
			t.Errorf("%s takes %.3f round trips, want %g (seconds by round trip: %v, %v)", what, got, want, x, y)
		}
	}
}
