// Package disseminate is the question how fast content spreads from seeders to leechers,
// with churn and faults.
package disseminate

import (
	"fmt"
	"slices"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/experiment/gate"
	"github.com/plimsoll-project/plimsoll/record"
)

// times are missing in trials whose leechers did not come to them: longer than what was
// watched, or slower than any.
var times = []string{"time_last", "time_median", "time_p25", "time_p75", "disk_median", "disk_last", "first_byte",
	"speed_median", "speed_p25", "speed_p75"}

// View is how the numbers of disseminate are read.
func View() *analysis.View {
	return &analysis.View{
		Scenario:  "disseminate",
		Question:  "How fast does content spread from seeders to leechers?",
		Operation: [2]string{"leecher", "leechers"},
		Headline:  func(*experiment.Plan) string { return "time_median" },
		Axis: []string{"disseminate.nodes", "data.size", "disseminate.seeders", "link.rate", "link.up", "link.delay",
			"disseminate.slow"},
		Compared: []string{"time_median", "time_last", "speed_median", "disk_last", "first_byte", "overhead",
			"system_cpu_per_gb", "node_rss_peak"},
		Numbers: []string{"time_median", "time_last", "ok_rate"},
		Columns: []analysis.Column{
			{Metric: "time_median", Head: "half of them", Narrow: true},
			{Metric: analysis.RatioColumn, Head: "ratio", Narrow: true},
			{Metric: "time_last", Head: "the last", Narrow: true}, {Metric: "line", Head: "load line"},
			{Metric: "line_share", Head: "the last, of the line"},
			{Metric: "speed_median", Head: "speed, median"}, {Metric: "disk_last", Head: "all on disk"},
			{Metric: "ok_rate", Head: "done", Narrow: true},
			{Metric: "overhead", Head: "link bytes per content byte"}},
		Resources: []analysis.Column{
			{Metric: "system_cpu", Head: "system CPU"}, {Metric: "system_cpu_per_gb", Head: "per GB"},
			{Metric: "node_rss_peak", Head: "memory, largest node"},
			{Metric: "harness_cpu", Head: "CPU of plimsoll"}, {Metric: "emulator_cpu",
				Head: "CPU of the links' emulator"},
			{Metric: "others_busy", Head: "CPU of others"}, {Metric: "resolution", Head: "resolution of times"}},
		LoadLine: "The load line is the least time in which all copies fit through the seeders' up-links, the " +
			"slowest down-link and all up-links together (the fluid bound). It is of trials without faults whose " +
			"leechers start together.",
		Figures: []analysis.Figure{
			{ID: "leechers", Kind: analysis.Distribution, Metric: leecherTime, Title: "Leechers that have everything",
				Caption: "Share of the leechers that had all content verified, by the time since their release. " +
					"Leechers that never finished are never reached."},
			{ID: "time-median", Kind: analysis.Against, Metric: "time_median", Line: "line_median",
				Title:   "Half of the leechers have everything",
				Caption: "Median over trials with its 95 % interval."},
			{ID: "time-last", Kind: analysis.Against, Metric: "time_last", Line: "line",
				Title:   "The last leecher has everything",
				Caption: "Median over trials with its 95 % interval."},
			{ID: "ratio", Kind: analysis.Bars, Metric: analysis.RatioColumn, Title: "Ratio to the baseline",
				Caption: "Time of half of the leechers relative to the baseline in the same block. Intervals that " +
					"cross 1 are not significant."},
			{ID: "speed", Kind: analysis.Against, Metric: "speed_median", Line: "speed_line", Title: "Download speed",
				Caption: "Content bytes per second of the median leecher."},
			{ID: "sharing", Kind: analysis.Against, Metric: "seeder_share", More: []string{"overhead"},
				Title: "Who sends, and how much",
				Caption: "Share of all bytes that the seeders sent, and bytes on the leechers' links for each byte " +
					"of content."},
			{ID: "progress", Kind: analysis.OverTime, Metric: verified, Title: "Verified content over time",
				Folded: true,
				Caption: "Share of the leechers' content that is verified, since the release, by the end of the " +
					"poll that saw it."},
			{ID: "timeline", Kind: analysis.Timeline, Title: "Node by node", Folded: true,
				Caption: "One trial of each cell, from the release: waiting for the first byte, fetching, until all " +
					"is on disk; with faults and what happened to nodes."},
			{ID: "resources", Kind: analysis.Against, Metric: "system_cpu_per_gb", More: []string{"node_rss_peak"},
				Title: "Resources of the system", Folded: true,
				Caption: "CPU seconds of all nodes per GB delivered, and peak memory of the largest node."},
		},
		Polled: map[string]analysis.Polled{
			"time_last": {}, "time_median": {}, "time_p25": {}, "time_p75": {}, "disk_median": {}, "disk_last": {},
			"first_byte": {}, "recovery": {},
			"speed_median": {Inverse: []string{"time_median"}}, "speed_p25": {Inverse: []string{"time_p75"}},
			"speed_p75": {Inverse: []string{"time_p25"}}, "line_median_share": {Inverse: []string{"time_median"}},
			"line_share": {Inverse: []string{"time_last"}}},
		Censored: func(t record.Trial, metric string) bool {
			all := int64(0)
			for _, n := range t.Outcomes {
				all += n
			}
			return slices.Contains(times, metric) && t.Outcomes[record.OK.String()] < all
		},
		Success: func(trials []*analysis.Trial, conf float64) analysis.Proportion {
			return analysis.ShareInTime(trials, true, conf)
		},
		Goals:  goals,
		Read:   read,
		Tables: tables,
		Rules:  rules,
	}
}

// wanted reports whether the system had to bring a leecher of this outcome to its end:
// it was not taken away on purpose.
func wanted(o record.Outcome) bool { return o != record.Cancelled && o != record.InFlight }

// goals are those of disseminate.gate: both times within a share of the baseline's.
func goals(f *analysis.Frame) []gate.Rule {
	if f.Baseline == "" || len(f.Cells) == 0 || !(f.Cells[0].Plan.Disseminate.Gate > 0) {
		return nil
	}
	within := f.Cells[0].Plan.Disseminate.Gate
	var all []gate.Rule
	for _, key := range []string{"time_median", "time_last"} {
		if _, ok := f.Metric(key); ok {
			all = append(all, gate.Rule{Text: fmt.Sprintf("%s within %s of %s", key, within, f.Baseline), Metric: key,
				Kind:  gate.Within,
				Share: float64(within), System: f.Baseline})
		}
	}
	return all
}

const (
	nearlyAll  = 0.90 // of all bytes from which on seeders do all the work
	muchSpread = 0.05 // of the median time by which starts may lie apart
)

var rules = []analysis.Rule{
	{ID: "leechers-unfinished", Rank: analysis.Failure, Tone: analysis.Bad, Replaces: []string{"failures", "deadlines"},
		Holds:  leechersUnfinished,
		Title:  `Leechers did not get everything: {{.Systems}}`,
		Each:   `{{.Name}}: {{.N}} of {{.Of}} ({{.Text}})`,
		Advice: `They count as slower than any other. See how they ended, and the logs of such a trial.`},
	{ID: "partial-faults", Rank: analysis.Unreliable, Tone: analysis.Warn, Holds: partialFaults,
		Title:  `The fault did not happen in full in every trial`,
		Each:   `{{.Name}}: {{.Text}} in {{.N}} of {{plural .Of "trial" "trials"}}`,
		Advice: `These cells mix trials with the fault and without. Use larger contents, or an earlier fault.`},
	{ID: "start-spread", Rank: analysis.Unreliable, Tone: analysis.Warn, Holds: spreadStart,
		Title:  `Leechers did not start together: {{.Systems}}`,
		Each:   `{{.Name}}: {{show .Value "s"}} apart, with a median time of {{show .Limit "s"}}`,
		Advice: `Times count from the release. Use larger contents, or fewer nodes on this machine.`},
	{ID: "no-sharing", Rank: analysis.Slow, Tone: analysis.Warn, Holds: noSharing,
		Title:  `Leechers pass on almost nothing: {{.Systems}}`,
		Each:   `{{.Name}}: seeders sent {{percent .Value}} of all bytes`,
		Advice: `More leechers will take proportionally longer. Look at how the system chooses whom to ask.`},
	{ID: "slow-recovery", Rank: analysis.Slow, Tone: analysis.Warn, Holds: slowRecovery,
		Title:  `Nodes recover slowly after a fault: {{.Systems}}`,
		Each:   `{{.Name}}: {{.Text}}`,
		Advice: `Look at timeouts and reconnection in the logs of such a trial.`},
}

func spreadStart(r *analysis.Result) []analysis.Case {
	return r.Cases(func(c *analysis.Cell, x *analysis.Case) bool {
		apart, took := c.Metrics["start_spread"], c.Metrics["time_median"]
		x.Value, x.Limit = apart.Median, took.Median
		return c.Plan.Disseminate.Join.Together() && apart.N > 0 && took.N > 0 && apart.Median > muchSpread*took.Median
	})
}

// noSharing leaves raw baselines out, whose leechers pass nothing on by design.
func noSharing(r *analysis.Result) []analysis.Case {
	alone := map[string]bool{}
	for _, s := range r.Frame.Plan.Experiment.Systems {
		alone[s.Name] = s.Alone
	}
	return r.Cases(func(c *analysis.Cell, x *analysis.Case) bool {
		s := c.Metrics["seeder_share"]
		x.Value = s.Median
		return s.N > 0 && s.Median > nearlyAll && c.Plan.Disseminate.Nodes-c.Plan.Disseminate.Seeders > 1 &&
			!alone[c.System]
	})
}
