// Package disseminate contains the scenario disseminate, which measures how fast content spreads
// from seeders to leechers, with churn and faults.
package disseminate

import (
	_ "embed"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
)

//go:embed view.yaml
var viewText string

// View returns the view of the results of disseminate.
func (Scenario) View() *analysis.View {
	v := analysis.ParseView(viewText)
	v.Headline = func(*experiment.Plan) string { return "time_median" }
	v.Read, v.Tables = read, tables
	v.Hold(map[string]func(*analysis.Result) []analysis.Case{"leechers-unfinished": leechersUnfinished,
		"partial-faults": partialFaults, "start-spread": spreadStart, "no-sharing": noSharing,
		"slow-recovery": slowRecovery})
	return v
}

// wanted reports whether a leecher with this outcome had to finish: the experiment did not end
// it on purpose.
func wanted(o record.Outcome) bool { return o != record.Cancelled && o != record.InFlight }

const (
	nearlyAll  = 0.90 // share of all bytes from seeders above which leechers do not share
	muchSpread = 0.05 // largest spread of starts, as a share of the median time
)

func spreadStart(r *analysis.Result) []analysis.Case {
	return r.Cases(func(c *analysis.Cell, x *analysis.Case) bool {
		apart, took := c.Metrics["start_spread"], c.Metrics["time_median"]
		x.Value, x.Limit = apart.Median, took.Median
		return c.Plan.Disseminate.Join.Together() && apart.N > 0 && took.N > 0 && apart.Median > muchSpread*took.Median
	})
}

// noSharing finds cells in which seeders send nearly all bytes. It omits raw baselines, whose
// leechers pass nothing on by design.
func noSharing(r *analysis.Result) []analysis.Case {
	alone := map[string]bool{}
	for _, s := range r.Frame.Plan.Experiment.Systems {
		alone[s.Name] = s.SeedersOnly
	}
	return r.Cases(func(c *analysis.Cell, x *analysis.Case) bool {
		s := c.Metrics["seeder_share"]
		x.Value = s.Median
		return s.N > 0 && s.Median > nearlyAll && c.Plan.Disseminate.Nodes-c.Plan.Disseminate.Seeders > 1 &&
			!alone[c.System]
	})
}
