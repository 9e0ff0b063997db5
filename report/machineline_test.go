package report

import (
	"math"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report/internal/synthetic"
)

// machineMarks are the values of the machine lines that a figure draws.
func machineMarks(t *testing.T, f Figure) (all []float64) {
	t.Helper()
	for _, p := range f.Panels {
		rows, ok := p.Spec["data"].(spec)["values"].([]spec)
		if !ok {
			t.Fatalf("%s has no rows", f.ID)
		}
		for _, row := range rows {
			if row["kind"] == "machine" {
				all = append(all, float64(row["y"].(Num)))
			}
		}
	}
	return all
}

// A figure has the machine line of each cell, also of cells whose trials were all limited
// by the machine: of a rate, what was measured divided by the share of the machine; and
// none where it is far away or was not recorded.
func TestFiguresHaveTheMachineLine(t *testing.T) {
	type figure = func(r *Report) (Figure, string)
	swarm := func(share, thread float64) *Report {
		return swarmTruth{metrics: func(c *experiment.Cell, _ int, m map[string]float64) {
			m["box_cpu"], m["emulator_thread"] = share, thread
			if c.System == "deluge" && share > 0.9 { // one system is left to draw
				m["box_cpu"] = 0.8
			}
		}}.build(t)
	}
	requests := func(share float64) *Report {
		return built(t, synthetic.Run{Blocks: 3, Change: func(_ experiment.Cell, t *record.Trial) { t.Metrics["box_cpu"] = share }})
	}
	speed := func(r *Report) (Figure, string) { return r.speedFigure(), "speed_median" }
	throughput := func(r *Report) (Figure, string) {
		for _, f := range append(r.Figures, *r.Hero) {
			if len(machineMarks(t, f)) > 0 {
				return f, "throughput"
			}
		}
		return Figure{}, "throughput"
	}
	for _, c := range []struct {
		name  string
		r     *Report
		of    figure
		share float64 // 0: no line
	}{
		{"swarm", swarm(0.6, 0.2), speed, 0.6},
		{"swarm, one thread of the emulator", swarm(0.3, 0.8), speed, 0.8},
		{"swarm, limited by the machine", swarm(0.95, 0.2), speed, 0.95},
		{"swarm, idle machine", swarm(0.1, 0.1), speed, 0},
		{"requests", requests(0.7), throughput, 0.7},
		{"requests, not recorded", requests(math.NaN()), throughput, 0},
	} {
		f, metric := c.of(c.r)
		marks, cells := machineMarks(t, f), 0
		for _, cell := range c.r.cells() {
			m, _ := c.r.metric(metric)
			want := c.r.machineLine(cell, m)
			if c.share == 0 {
				continue
			}
			cells++
			share := c.share
			if share > 0.9 && cell.System == "deluge" {
				share = 0.8
			}
			var values []float64
			for _, trial := range c.r.Trials {
				if v, ok := trial.Metrics[metric]; ok && trial.Info == cell && trial.validBut(record.ReasonMachineLimited) {
					values = append(values, v/share)
				}
			}
			if !within(want, middle(values), 1e-9) {
				t.Errorf("%s, %s: %v, want %v", c.name, cell.System, want, middle(values))
			}
		}
		if len(marks) != cells {
			t.Errorf("%s: %d machine lines of %d cells", c.name, len(marks), cells)
		}
	}
}
