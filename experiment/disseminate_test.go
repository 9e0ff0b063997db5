package experiment

import (
	"fmt"
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

func TestDisseminateEstimate(t *testing.T) {
	cell := func(set ...string) CellEstimate {
		t.Helper()
		return mustPlan(t, swarm, set...).Cells[0].Estimate
	}
	near := nearly(t, 0.01)
	// 80 Mbit at 100 Mbit/s on the wire, twice; 8 × 10 MB made and read back at 200 MB/s.
	plain := cell()
	near("one trial", plain.Seconds, 2*0.85+0.4)
	near("one leecher", plain.Operation, 2*0.85)
	near("bytes", plain.Bytes, 7*10e6)
	if plain.Limit != "link" {
		t.Errorf("limited by %q", plain.Limit)
	}
	near("half the rate up", cell("link.up=50Mbit").Operation, 2*plain.Operation)
	near("slow leechers", cell("disseminate.slow=1%", "disseminate.slow_down=10Mbit").Operation, 10*plain.Operation)
	// No links: the machine moves all bytes.
	free := cell("link.rate=unlimited")
	near("without a rate", free.Operation, 70e6/swarmRate)
	if free.Limit != "machine" {
		t.Errorf("limited by %q", free.Limit)
	}
	for set, more := range map[string]float64{
		"disseminate.join={wave: 3, every: 5s}":                               10,
		"disseminate.join={poisson: 0.5/s}":                                   14,
		"disseminate.fresh=true":                                              8,
		"disseminate.faults=[{crash: leechers, count: 2, at: 10%, for: 20s}]": 20,
		"disseminate.faults=[{crash: seeders, at: 50%}]":                      30, // the stall
		"disseminate.faults=[{cut: nodes, count: 2, at: 50%, for: 5s}, " +
			"{crash: leechers, count: 1, at: 60%, for: 10s}]": 15,
		"disseminate.faults=[{rate: 10Mbit, at: 50%}]":                       0.5 * 9 * plain.Operation,
		"disseminate.faults=[{rate: 1Gbit, at: 50%}]":                        0,
		"disseminate.faults=[{crash: seeders, at: 0%}]":                      30,
		"disseminate.faults=[{crash: seeders, at: 1s}]":                      30,
		"disseminate.faults=[{crash: seeders, at: 5m}]":                      0, // all are done
		"disseminate.faults=[{crash: leechers, count: 1, at: 5m, for: 20s}]": 0,
	} {
		near(set, cell(set).Seconds, plain.Seconds+more)
	}
	// Nobody is waited for beyond the deadline.
	if got := cell("disseminate.faults=[{rate: 1kbit, at: 1%}]", "limits.deadline=1m").Seconds; got > 61 {
		t.Errorf("%g s beside a deadline of a minute", got)
	}
	// Nodes live through all trials: 8 s to start them, however many trials.
	for _, reps := range []int{2, 20} {
		p := mustPlan(t, swarm, fmt.Sprintf("repetitions=%d", reps), "disseminate.nodes=2,8", "link.rate=unlimited",
			"data.size=1B")
		if got := p.Estimate.Seconds - float64(2*(reps+1))*aroundTrial; got < 7.9 || got > 8.1 {
			t.Errorf("%d repetitions: %g s beside the trials", reps, got)
		}
	}
}

// Where nobody passes anything on, the seeders send it all: the time grows with
// the leechers of each.
func TestBaselineEstimate(t *testing.T) {
	cell := func(set ...string) CellEstimate {
		t.Helper()
		return mustPlan(t, swarm, append(set, "systems=fanout")...).Cells[0].Estimate
	}
	one := cell("disseminate.nodes=2").Operation
	for set, times := range map[string]float64{
		"disseminate={nodes: 8}":             7,
		"disseminate={nodes: 32}":            31,
		"disseminate={nodes: 8, seeders: 4}": 1,
		"disseminate={nodes: 9, seeders: 4}": 2, // one of them has two
		"link={rate: 100Mbit, up: 50Mbit}":   14,
		"link={rate: 100Mbit, up: 200Mbit}":  3.5,
	} {
		if got := cell(set).Operation; math.Abs(got-times*one) > 0.01*got {
			t.Errorf("%s: %g s, want %g times %g s", set, got, times, one)
		}
	}
	// 80 Mbit of payload at 100 Mbit/s on the wire, and a little more.
	if one < 0.85 || one > 0.85*1.5 {
		t.Errorf("one leecher takes %g s", one)
	}
	p := mustPlan(t, swarm, "systems=mesh,fanout", "data.size=1GB", "disseminate.nodes=32", "limits.deadline=30m")
	if got := strings.Join(p.Warnings(), "|"); !strings.Contains(got, "in 1 cell (c002) an operation is expected to "+
		"take longer than its deadline") {
		t.Errorf("31 GB at 100 Mbit/s in half an hour: %q", got)
	}
}
