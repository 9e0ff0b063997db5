// Package sync contains the scenario sync, which measures how long a fresh node takes until it is
// in sync and can serve, and the effect of each knob on that.
package sync

import (
	_ "embed"
	"strings"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
)

//go:embed view.yaml
var viewText string

// view keeps the tunings that tables computes, for the findings and the verdict.
type view struct{ tunings []*analysis.Tuning }

// View returns the view of the results of sync.
func (Scenario) View() *analysis.View {
	own, v := &view{}, analysis.ParseView(viewText)
	v.Headline = func(*experiment.Plan) string { return "sync_time" }
	v.Arrange, v.Read, v.Tables, v.Verdict = arrange, heights, own.tables, own.verdict
	v.Hold(map[string]func(*analysis.Result) []analysis.Case{"never-served": neverServed,
		"effects-limits": own.limits, "useless-peers": uselessPeers})
	return v
}

// knob reports whether the operator of a node can choose a factor. The other factors are
// conditions: links, chain, kinds of peers, faults.
func knob(path string) bool {
	return path == "sync.storage" || path == "sync.peers" || strings.HasPrefix(path, "sync.vary.")
}

// arrange compares each configuration with the default: the first of the same system under the
// same conditions.
func arrange(f *analysis.Frame) {
	f.Baseline = ""
	begun := map[string]bool{}
	for _, c := range f.Cells {
		c.Pair = c.System
		for _, x := range c.Factors {
			if x.Path != "system" && !knob(x.Path) {
				c.Pair += " " + x.Path + "=" + x.Value
			}
		}
		c.Baseline = !begun[c.Pair]
		begun[c.Pair] = true
	}
}

// mostPoints limits the points of a trial's series.
const mostPoints = 200

// heights returns the height of the chain over time.
func heights(t *analysis.Trial, facts *record.Reader) (out analysis.Facts, err error) {
	var points []analysis.Point
	for m := range scenario.Sound(facts.Marks(t.ID), &err) {
		if n := float64(m.Verified); len(points) == 0 || n != points[len(points)-1].Value {
			points = append(points, analysis.Point{At: m.End.Seconds(), Value: n})
		}
	}
	if len(points) > 0 {
		out.Series = []analysis.Series{{Trial: t, Metric: "height", Points: analysis.Thin(points, mostPoints)}}
		out.Metrics = scenario.Definitions(definitions, "height")
	}
	return out, err
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
