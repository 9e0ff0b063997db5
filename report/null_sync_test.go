package report

import (
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
)

// nullSync: no knob does anything.
func nullSync(t testing.TB) nullScenario {
	truth := syncTruth{}
	plan := truth.plan(t)
	return nullScenario{name: "sync", has: map[string]string{
		"best neutral":          "one has the least time, and no gain is shown",
		"risks neutral":         "what the way to it costs, without a gain that is shown",
		"as-good neutral":       "all are as good",
		"no-gain neutral":       "no knob gains anything",
		"cannot-tell neutral":   "that an effect is not excluded is no claim of one",
		"compute-bound neutral": "at four fifths of the replay's line",
	}, run: func(_ testing.TB, seed uint64) *input {
		n := noiseOf(seed, plan.Blocks)
		in := nullInput(plan, scenario.Sync{}.Metrics())
		// Not near its lines, nor far from them: the link needs 1 s, the replay 2 s, and noise must not bring a
		// node near to twice that.
		level := n.between(2.4, 2.5)
		s := syncTruth{truth: func(*experiment.Cell) float64 { return level }}
		s.node = func(_ *experiment.Cell, _ int, f *newcomer) {
			f.first = 0.1 * f.serve * n.by(0.05)
			f.chain = f.first + (f.serve-f.first)*0.95
		}
		loads := n.each(in)
		s.metrics = func(c *experiment.Cell, m map[string]float64) {
			for _, key := range []string{"node_rss_peak", "disk_written", "write_amplification", "others_busy"} {
				m[key] *= n.by(0.05)
			}
			m["system_cpu"] = loads[c.ID].of(n, m) * m["sync_time"]
			m["overhead"] = 1.06 * n.by(0.005)
		}
		ops, marks := map[int64][]record.Op{}, map[int64][]record.Mark{}
		for block := range plan.Blocks {
			for _, i := range n.rng.Perm(len(plan.Cells)) {
				id := int64(len(in.trials) + 1)
				var t record.Trial
				t, ops[id], marks[id] = s.made(&plan.Cells[i], block, n.common[block]*n.times())
				in.trials = append(in.trials, asKept(t, id, plan.Cells[i].ID, block, ops[id]))
			}
		}
		in.ops, in.marks = streamed(ops), streamed(marks)
		n.live(in, 10*time.Second)
		return in
	}}
}
