package report

import (
	"math"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
)

const nullSwarmFile = `
scenario: disseminate
systems: [deluge, boxo]
baseline: deluge
link: {rate: 100Mbit, delay: 10ms}
data: {size: 8MiB}
disseminate: {nodes: [4, 8], seeders: [1, 2]}
repetitions: 8
warmup: 0
`

// nullDisseminate: both systems spread alike, at some three quarters of the line.
func nullDisseminate(t testing.TB) nullScenario {
	truth := swarmTruth{file: nullSwarmFile, pace: map[string]float64{"deluge": 1, "boxo": 1}}
	plan := truth.plan(t)
	return nullScenario{name: "disseminate", has: map[string]string{
		"goal-open neutral": "the noise leaves it open: no claim that it is missed",
	}, run: func(_ testing.TB, seed uint64) *input {
		n := noiseOf(seed, plan.Blocks)
		in := nullInput(plan, scenario.Disseminate{}.Metrics())
		// Neither near the line nor far from it, whatever the noise.
		pace := n.between(1.26, 1.34)
		s, loads := truth, n.each(in)
		s.leechers = func(_ *experiment.Cell, _ int, _ float64, all []leech) {
			times := pace * n.times()
			for i := range all {
				all[i].took *= times * n.by(0.02)
			}
		}
		s.metrics = func(c *experiment.Cell, _ int, m map[string]float64) {
			for _, key := range []string{"first_byte", "start_spread", "system_cpu", "system_cpu_per_gb", "node_rss_peak", "others_busy"} {
				m[key] *= n.by(0.1)
			}
			m["overhead"], m["duplicates"] = 1.06*n.by(0.005), 1.01*n.by(0.005)
			loads[c.ID].of(n, m)
		}
		s.seeders = func(_ *experiment.Cell, sent []float64) {
			for i := range sent {
				sent[i] = n.by(0.1) // once the content
			}
		}
		ops, marks := map[int64][]record.Op{}, map[int64][]record.Mark{}
		for block := range plan.Blocks {
			for _, i := range n.rng.Perm(len(plan.Cells)) {
				id := int64(len(in.trials) + 1)
				var t record.Trial
				t, ops[id], marks[id] = s.made(&plan.Cells[i], block, n.common[block], n.rng)
				nodesBusy(&t, lastEnd(ops[id]), loads[plan.Cells[i].ID].busiest*n.by(0.1))
				in.trials = append(in.trials, asKept(t, id, plan.Cells[i].ID, block, ops[id]))
			}
		}
		in.ops, in.marks = streamed(ops), streamed(marks)
		n.live(in, 10*time.Second)
		return in
	}}
}

// asKept is a trial as the recorder would give it back.
func asKept(t record.Trial, id int64, cell string, block int, ops []record.Op) record.Trial {
	t.ID, t.Cell, t.Block, t.State, t.Epoch = id, cell, block, record.Done, costsBegun.Add(time.Duration(id)*time.Minute)
	t.Outcomes = map[string]int64{}
	for _, op := range ops {
		t.Outcomes[op.Outcome.String()]++
	}
	return t
}

// nodesBusy makes the busiest node of a trial keep so many CPUs busy while it lasted.
func nodesBusy(t *record.Trial, took, cpus float64) {
	most := 0.0
	for _, d := range t.Details {
		if d.Kind == record.DetailNodeCPU {
			most = max(most, d.Value)
		}
	}
	for i := range t.Details {
		if d := &t.Details[i]; d.Kind == record.DetailNodeCPU {
			d.Value *= cpus * took / most
		}
	}
}

// lastEnd is when the last operation of a trial ended, in seconds since all were
// released.
func lastEnd(ops []record.Op) float64 {
	first, last := int64(math.MaxInt64), int64(0)
	for _, op := range ops {
		first, last = min(first, op.Intended), max(last, op.LastByte)
	}
	return seconds(last - first)
}
