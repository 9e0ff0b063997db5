package report

import (
	"math"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
)

const nullOverheadFile = `
scenario: overhead
systems:
  - {use: tahoe, with: {needed: 2, total: 3}}
  - sftp
baseline: sftp
link: {rate: 100Mbit, delay: [0s, 5ms, 20ms]}
data: {size: [1kB, 100kB, 10MB]}
overhead: {operation: [put, get, fill], objects: 1000, longest: 5m}
where:
  - overhead.operation != fill || data.size == 1kB && link.delay == 0s
repetitions: 6
warmup: 0
`

// nullOverhead: both systems cost the same, by one line for all sizes; memory and
// the number of objects are of no consequence.
func nullOverhead(t testing.TB) nullScenario {
	plan := costs{file: nullOverheadFile}.plan(t)
	return nullScenario{name: "overhead", has: map[string]string{
		"memory-flat good":     "it is flat",
		"objects-flat neutral": "it is flat",
		"rtt-bound neutral":    "small objects wait for round trips",
		"waiting neutral":      "the smallest wait for what every operation costs",
		"same-bytes neutral":   "a comparison that is made in every run",
	}, run: func(_ testing.TB, seed uint64) *input {
		n := noiseOf(seed, plan.Blocks)
		in := nullInput(plan, scenario.Overhead{}.Metrics())
		cost := map[string]truth{}
		for _, op := range []string{"put", "get"} {
			cost[op] = truth{n.between(0.003, 0.05), float64(1 + n.rng.IntN(6)), n.between(5e6, 8e6)}
		}
		stored, loads := map[string]float64{}, n.each(in)
		for block := range plan.Blocks {
			for _, i := range n.rng.Perm(len(plan.Cells)) {
				c := plan.Cells[i]
				id := int64(len(in.trials) + 1)
				trial, check := nullCost(n, c, cost, stored, n.common[block])
				trial.Metrics["busiest_cpu"] = loads[c.ID].of(n, trial.Metrics)
				trial.ID, trial.Block, trial.Cell, trial.Epoch, check.Trial = id, block, c.ID, costsBegun.Add(time.Duration(id)*time.Minute), id
				in.trials, in.links = append(in.trials, trial), append(in.links, check)
			}
		}
		n.live(in, 10*time.Second)
		return in
	}}
}

func nullCost(n *nullNoise, c experiment.Cell, cost map[string]truth, stored map[string]float64, common float64) (record.Trial, record.LinkCheck) {
	want := 2 * c.Link.Delay.Seconds()
	rtt := max(want, 0.0003) * n.by(0.003)
	check := record.LinkCheck{From: c.System, To: "client", Emulator: "netem", Congestion: "cubic", WantRTT: want, RTT: rtt, RTTP99: rtt * 1.1, WantRate: 95e6, Rate: 95e6 * n.by(0.002),
		Loss: math.NaN(), Lateness: 0.0002, Tolerance: 0.05, OK: true}
	size, op := float64(c.Data.Size), c.Overhead.Operation
	fill := op == "fill"
	if fill {
		op = "put"
	}
	k := cost[op]
	took := (k.a + k.rounds*rtt + size/k.rate) * common * n.times()
	trial := record.Trial{State: record.Done, Seconds: 5 * took, Outcomes: map[string]int64{"ok": 5}, Metrics: map[string]float64{"success_rate": 1, "duration_p50": took, "throughput": size / took,
		"wire_bytes": 1.03*size + 3000, "system_cpu_per_op": 0.01 * n.by(0.05), "others_busy": 0.01}}
	if op == "get" {
		trial.Metrics["first_byte_p50"] = max(took-size/k.rate, rtt)
		return trial, check
	}
	trial.Metrics["expansion"], trial.Metrics["absolute_per_op"], trial.Metrics["disk_per_byte"] = 1, size, math.Ceil(size/4096)*4096/size
	for name, rest := range map[string]float64{"client-1": 87e6, "storage-1": 85e6} {
		for kind, v := range map[string]float64{record.DetailRSSStart: rest, record.DetailPSSStart: 0.6 * rest, record.DetailRSSRest: rest * n.by(0.0005), record.DetailPSSRest: 0.6 * rest * n.by(0.0005),
			record.DetailRSSPeak: (rest + 2e5) * n.by(0.0005)} {
			trial.Details = append(trial.Details, record.Detail{Kind: kind, Name: c.System + "/" + name, Value: v})
		}
	}
	if fill {
		trial.Outcomes["ok"] = 1000
		stored[c.System] += 1000
		trial.Metrics["stored_objects"], trial.Metrics["entries_per_object"], trial.Metrics["inodes_per_object"] = stored[c.System]-500, 6, 9
		for key, at := range map[string]float64{"put_p50": k.a + k.rounds*rtt, "get_p50": 0.02, "stat_p50": 0.004} {
			trial.Metrics[key] = at * common * n.times()
		}
	}
	return trial, check
}
