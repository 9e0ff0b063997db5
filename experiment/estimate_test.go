package experiment

import (
	"math"
	"strings"
	"testing"
)

const swarm = `
scenario: disseminate
systems: [mesh]
link: {rate: 100Mbit}
data: {size: 10MB}
disseminate: {nodes: 8}
`

// Estimates follow the physics of simple cases, within a few per cent.
func TestEstimates(t *testing.T) {
	const (
		retrieve = "scenario: retrieve\nsystems: [nginx]\ndata: {size: 100MB}\n"
		overhead = "scenario: overhead\nsystems: [nginx]\nlink: {rate: 10Mbit}\ndata: {size: 1MB}\n" +
			"overhead: {count: 5}\n"
		upload  = "scenario: upload\nsystems: [nginx]\ndata: {size: 1MB}\nlink: {up: 10Mbit, down: 100Mbit}\n"
		payload = 1448.0 / 1538
		chain   = 1000 * (175 + 10*550)
	)
	for _, c := range []struct {
		file, sets     string
		seconds, bytes any // nil: not checked
	}{
		{retrieve, "link.rate=1Gbit; retrieve={requests: 10, concurrency: 10}", 8 / payload, 1e9},
		{retrieve, "link.delay=50ms; retrieve={requests: 100, range: 1kB}", 10.0, 1e5},
		{retrieve, "link.delay=50ms; retrieve={requests: 100, range: 1kB, connections: fresh}", 20.0, nil},
		{retrieve, "link.rate=8Mbit; retrieve={duration: 3s}", 3.0, 3e6 * payload},
		{retrieve, "link.rate=8Mbit; retrieve={range: 100kB, duration: 10s, arrivals: {rate: 100/s}}", 10.0,
			1e7 * payload},
		// Ten round trips, five times, and the operation that opens the connections.
		{overhead, "link.delay=100ms; data.size=1B", 6 * (10*0.2 + guessedWork), 6.0},
		{overhead, "", 6 * (0.8/payload + guessedWork), 6e6},
		{upload, "", 0.08 / payload, 1e6}, // over the server's downlink
		// The content is spread in twice the load line, and made and read back at 200 MB/s.
		{swarm, "", 2*0.8/payload + 0.4, 7e7},
		{swarm, "link.up=50Mbit", 4*0.8/payload + 0.4, nil},
		{swarm, "link.rate=unlimited", 70e6/swarmRate + 0.4, nil},
		{swarm, "disseminate.join={wave: 3, every: 5s}", 2*0.8/payload + 10.4, nil},
		{swarm, "disseminate.join={poisson: 0.5/s}", 2*0.8/payload + 14.4, nil},
		{swarm, "disseminate.faults=[{crash: seeders, at: 50%}]", 2*0.8/payload + 30.4, nil}, // the stall
		{swarm, "disseminate.faults=[{crash: leechers, at: 50%, for: 20s}]", 2*0.8/payload + 20.4, nil},
		{swarm, "systems=fanout", servedSlack*7*0.8/payload + 0.4, nil}, // the seeder sends everything
		{following, "", startFollow + followWork*1000*0.0022 + aroundSync, float64(chain)},
		{following, "link.rate=1Mbit", startFollow + chain*8e-6/payload + aroundSync, nil},
		{following, "sync.speeds={list: [500kbit]}; sync.trouble=[{silent: 1}, {stranger: 1}]",
			startFollow + chain*8e-6/payload + aroundSync, nil},
		{following, "sync.speeds={list: [500kbit]}; sync.trouble=[{slow: 1, rate: 100kbit}, {slow: 1, rate: 400kbit}]",
			startFollow + chain*8e-6/1.5/payload + aroundSync, nil},
		{following, "link.rate=1kbit", 600 + aroundSync, nil}, // limits.deadline
	} {
		var sets []string
		if c.sets != "" {
			sets = strings.Split(c.sets, "; ")
		}
		e := mustPlan(t, c.file, sets...).Cells[0].Estimate
		near := func(what string, got float64, want any) {
			if x, is := want.(float64); is && math.Abs(got-x) > 0.05*x {
				t.Errorf("%s%s: %s %g, want about %g", c.file, c.sets, what, got, x)
			}
		}
		near("seconds", e.Seconds, c.seconds)
		near("bytes", e.Bytes, c.bytes)
	}
	// Nodes live through all trials: 8 s to start them, independent of the number of trials.
	p := mustPlan(t, swarm, "repetitions=20", "disseminate.nodes=2,8", "link.rate=unlimited", "data.size=1B")
	if got := p.Estimate.Seconds - 2*21*aroundTrial; math.Abs(got-8) > 0.1 {
		t.Errorf("%g s beside the trials", got)
	}
}
