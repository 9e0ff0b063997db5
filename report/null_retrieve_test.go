package report

import (
	"math"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report/internal/synthetic"
	"github.com/plimsoll-project/plimsoll/scenario"
)

const nullRetrieveFile = `
scenario: retrieve
systems: [nginx, boxo, static]
baseline: nginx
link: {rate: 1Gbit, delay: 1ms}
data: {size: 64MiB}
retrieve: {concurrency: [1, 8, 64], range: 1MiB, requests: 4000}
repetitions: 8
warmup: 0
`

// nullRetrieve: every system is as fast as the others, below its link without
// being far from it.
func nullRetrieve(t testing.TB) nullScenario {
	plan, err := synthetic.Plan(nullRetrieveFile)
	must(t, err)
	return nullScenario{name: "retrieve", run: func(_ testing.TB, seed uint64) *input {
		n := noiseOf(seed, plan.Blocks)
		in := nullInput(plan, scenario.Retrieve{}.Metrics())
		// Per concurrency: what all systems have alike.
		share, ttfb, perGB := map[int]float64{}, map[int]float64{}, n.between(0.2, 5)
		loads := n.each(in)
		for _, c := range plan.Cells {
			share[c.Retrieve.Concurrency], ttfb[c.Retrieve.Concurrency] = n.between(0.76, 0.79), n.between(0.05, 0.18) // of the duration
		}
		for block := range plan.Blocks {
			for _, i := range n.rng.Perm(len(plan.Cells)) {
				c := plan.Cells[i]
				at := c.Retrieve.Concurrency
				rtt, rate := 2*c.Link.Delay.Seconds(), float64(c.Link.Rate)*0.949
				id := int64(len(in.trials) + 1)
				check := record.LinkCheck{Trial: id, From: c.System, To: "client", Emulator: "netem", Congestion: "cubic", WantRTT: rtt, RTT: rtt * n.by(0.003), RTTP99: rtt * 1.04,
					WantRate: rate, Rate: rate * n.by(0.002), Loss: math.NaN(), Lateness: 0.0002, Tolerance: 0.05, OK: true}
				line := check.Rate / 8
				x := line * share[at] * n.common[block] * n.times()
				first := ttfb[at] * 1048576 * float64(at) / x * n.by(0.02)
				in.links = append(in.links, check)
				in.trials = append(in.trials, record.Trial{ID: id, Cell: c.ID, Block: block, State: record.Done, Epoch: costsBegun.Add(time.Duration(id) * time.Minute), Seconds: 4000 * 1048576 / x,
					Outcomes: map[string]int64{"ok": 4000}, Metrics: map[string]float64{"throughput": x, "load_line": line, "load_line_share": x / line, "ttfb_p50": first,
						"duration_p50": 1048576 * float64(at) / x, "success_rate": 1, "ops_rate": x / 1048576, "system_cpu_per_gb": perGB * n.by(0.03), "generator_cpu_per_gb": 0.3 * n.by(0.03),
						"system_rss_peak": 3e7 * n.by(0.01), "generator_rss_peak": 3e7 * n.by(0.01), "others_busy": 0.02 * n.by(0.3)}})
				m := in.trials[id-1].Metrics
				m["busiest_cpu"] = loads[c.ID].of(n, m)
			}
		}
		n.answer(in)
		n.live(in, 10*time.Second)
		return in
	}}
}
