// Package sync is the question how long a fresh node takes until it is in sync and can
// serve, and what each knob buys.
package sync

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
)

// times are missing where the node never came to them: longer than what was watched,
// or slower than any.
var times = []string{"sync_time", "chain_time", "net_time", "first_block", "index_lag", "block_rate", "byte_rate"}

// view keeps what is computed once of a frame: findings and verdict follow the tables.
type view struct{ tunings []*tuning }

// View is how the numbers of sync are read.
func View() *analysis.View {
	v := &view{}
	return &analysis.View{
		Scenario:  "sync",
		Question:  "How long until a fresh node is in sync and can serve?",
		Operation: [2]string{"fresh node", "fresh nodes"},
		Headline:  func(*experiment.Plan) string { return "sync_time" },
		Compared: []string{"sync_time", "chain_time", "first_block", "net_time", "block_rate", "byte_rate",
			"wire_bytes", "overhead",
			"system_cpu", "node_rss_peak", "disk_written", "commits"},
		Numbers: []string{"sync_time", "first_block", "block_rate"},
		Columns: []analysis.Column{
			{Metric: "sync_time", Head: "until it serves", Narrow: true},
			{Metric: analysis.RatioColumn, Head: "ratio to default", Narrow: true},
			{Metric: "first_block", Head: "first block", Narrow: true}, {Metric: "net_time", Head: "after it"},
			{Metric: "block_rate", Head: "blocks/s"}, {Metric: "line_share", Head: "of the load line"}},
		Resources: []analysis.Column{
			{Metric: "system_cpu", Head: "CPU of the node"}, {Metric: "replay_cpu", Head: "CPU of the replay"},
			{Metric: "node_rss_peak", Head: "memory"},
			{Metric: "disk_written", Head: "written to disk"}, {Metric: "write_amplification",
				Head: "written per chain byte"}, {Metric: "commits", Head: "commits"},
			{Metric: "box_cpu", Head: "CPU of the machine"}, {Metric: "others_busy", Head: "CPU of others"},
			{Metric: "resolution", Head: "resolution of times"}},
		LoadLine: "The load line is the longer of two times: that of the chain's bytes over the links, and that of " +
			"a replay of the same blocks without a network.",
		Figures: []analysis.Figure{
			{ID: "time", Kind: analysis.Bars, Metric: "sync_time", Line: "line", Title: "Time until the node serves",
				Caption: "Median over trials with its 95 % interval, one bar for each configuration. The mark is " +
					"the load line."},
			{ID: "ratio", Kind: analysis.Bars, Metric: analysis.RatioColumn, Title: "Ratio to the default",
				Caption: "Time relative to the default configuration in the same block; below 1 is faster."},
			{ID: "height", Kind: analysis.OverTime, Metric: "height", Title: "Height over time",
				Caption: "Blocks that the fresh node has, by the end of the poll that saw them."},
			{ID: "rate", Kind: analysis.Bars, Metric: "block_rate", Title: "Block rate",
				Caption: "Blocks per second between the first block and the last."},
			{ID: "resources", Kind: analysis.Bars, Metric: "system_cpu", More: []string{"node_rss_peak"},
				Title:   "Resources of the node",
				Caption: "CPU seconds and peak memory until it serves.", Folded: true},
		},
		Polled: map[string]analysis.Polled{
			"sync_time": {}, "chain_time": {}, "first_block": {}, "net_time": {Between: true},
			"index_lag":  {Between: true},
			"block_rate": {Between: true, Inverse: []string{"chain_time", "first_block"}},
			"byte_rate":  {Between: true, Inverse: []string{"chain_time", "first_block"}},
			"line_share": {Inverse: []string{"sync_time"}}},
		Censored: func(t record.Trial, metric string) bool {
			return slices.Contains(times, metric) && t.Outcomes[record.OK.String()] == 0 && len(t.Outcomes) > 0
		},
		Prepare: outcome,
		Success: func(trials []*analysis.Trial, conf float64) analysis.Proportion {
			return analysis.ShareInTime(trials, false, conf)
		},
		Arrange: arrange,
		Read:    heights,
		Tables:  v.tables,
		Verdict: v.verdict,
		Rules: []analysis.Rule{
			{ID: "never-served", Replaces: []string{"failures", "deadlines"}, Rank: analysis.Failure,
				Tone:   analysis.Bad,
				Holds:  neverServed,
				Title:  `Nodes never served ({{plural .Total "trial" "trials"}})`,
				Each:   `{{.Name}}: {{.N}} of {{plural .Of "trial" "trials"}}{{.Text}}`,
				Advice: `Read the node's log of such a trial; allow more time (limits) if it still got blocks.`},
			{ID: "effects-limits", Rank: analysis.Notable, Tone: analysis.Neutral, Holds: v.limits,
				Title:  `Limits of these effects`,
				Each:   `{{.Name}}: {{.Text}}`,
				Advice: `Repeat more often, or run the combinations that are missing.`},
			{ID: "useless-peers", Rank: analysis.Slow, Tone: analysis.Warn, Holds: uselessPeers,
				Title:  `Connected peers delivered nothing`,
				Each:   `{{.Name}}: {{percent .Value}} of the connections were useful`,
				Advice: `Find out why: they may be silent, on another network, or never asked.`},
		},
	}
}

// knob reports whether a factor is one that whoever runs a node can choose. The others
// are the conditions: links, chain, peers, faults.
func knob(path string) bool {
	return path == "sync.storage" || path == "sync.peers" || strings.HasPrefix(path, "sync.vary.")
}

// defaults are the values of the default configuration: the first of every knob as the
// experiment lists them, also where `where` leaves out the cells that have them all.
func defaults(f *analysis.Frame) map[string]string {
	listed := map[string]string{}
	for _, path := range []string{"sync.storage", "sync.peers"} {
		var levels []any
		if json.Unmarshal(f.Plan.Experiment.Factors[path], &levels) == nil && len(levels) > 0 {
			listed[path] = fmt.Sprint(levels[0])
		}
	}
	if s := f.Plan.Experiment.Sync; s != nil {
		for name, v := range s.Vary {
			listed["sync.vary."+name] = v.Levels[0].Value
		}
	}
	first := map[string]string{}
	for _, c := range f.Cells {
		for _, x := range c.Factors {
			if _, seen := first[x.Path]; !seen || x.Value == listed[x.Path] {
				first[x.Path] = x.Value
			}
		}
	}
	return first
}

// arrange compares each configuration with the default of the same system under the
// same conditions.
func arrange(f *analysis.Frame) {
	first := defaults(f)
	f.Baseline = ""
	for _, c := range f.Cells {
		c.Baseline = true
		c.Pair = c.System
		for _, x := range c.Factors {
			switch {
			case knob(x.Path):
				c.Baseline = c.Baseline && x.Value == first[x.Path]
			case x.Path != "system":
				c.Pair += " " + x.Path + "=" + x.Value
			}
		}
	}
}

// outcome makes one operation of each trial: the way until the node serves.
func outcome(t *record.Trial, facts *record.Reader) error {
	if t.State != record.Done {
		return nil
	}
	var last *record.Op
	for op, err := range facts.Ops(t.ID) {
		if err != nil {
			return err
		}
		if op.Kind == record.OpServe || op.Kind == record.OpSync && last == nil {
			last = &op
		}
	}
	if last == nil {
		return nil
	}
	t.Outcomes, t.Classes = map[string]int64{last.Outcome.String(): 1}, map[string]int64{last.Class: 1}
	delete(t.Classes, "")
	return nil
}

// mostPoints is how many points of a trial are drawn.
const mostPoints = 200

// heights is the height of the chain over time.
func heights(t *analysis.Trial, facts *record.Reader) (analysis.Facts, error) {
	var points []analysis.Point
	for m, err := range facts.Marks(t.ID) {
		if err != nil {
			return analysis.Facts{}, err
		}
		if n := float64(m.Verified); len(points) == 0 || n != points[len(points)-1].Value {
			points = append(points, analysis.Point{At: m.End.Seconds(), Value: n})
		}
	}
	if len(points) == 0 {
		return analysis.Facts{}, nil
	}
	return analysis.Facts{
		Series:  []analysis.Series{{Trial: t, Metric: "height", Points: analysis.Thin(points, mostPoints)}},
		Metrics: scenario.Definitions(definitions)["height"]}, nil
}

func neverServed(r *analysis.Result) []analysis.Case {
	return r.Cases(func(c *analysis.Cell, x *analysis.Case) bool {
		for o, n := range c.Outcomes {
			x.Of += n
			if o != record.OK.String() {
				x.N += n
			}
		}
		if s := c.Plan.Sync; s != nil && len(s.Faults)+len(s.Trouble) > 0 {
			x.Text = ", with faults or useless peers"
		}
		return x.N > 0
	})
}

// fewUseful is the share of connections below which peers were useless.
const fewUseful = 0.5

func uselessPeers(r *analysis.Result) []analysis.Case {
	return r.Cases(func(c *analysis.Cell, x *analysis.Case) bool {
		s, ok := c.Metrics["useful_share"]
		x.Value = s.Median
		return ok && s.Median < fewUseful
	})
}
