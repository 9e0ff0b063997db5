// Package sync contains the scenario sync, which measures how long a fresh node takes until it is
// in sync and can serve, and the effect of each knob on that.
package sync

import (
	"cmp"
	_ "embed"
	"strings"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/words"
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
	v.SetConditions(map[string]func(*analysis.Result) []analysis.Case{"never-served": neverServed,
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
	for m := range scenario.UntilError(facts.Marks(t.ID), &err) {
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

// limits finds limitations of the effects of knobs: effects that are confounded because of lost
// trials, and models that do not describe the trials.
func (v *view) limits(*analysis.Result) (cases []analysis.Case) {
	for _, t := range v.tunings {
		for _, w := range t.Warnings {
			cases = append(cases, analysis.Case{Name: cmp.Or(t.Name, "effects"), Text: w})
		}
	}
	return cases
}

// tables returns the best configurations and the effects of the knobs.
func (v *view) tables(f *analysis.Frame) []analysis.Table {
	v.tunings = analysis.Tune(f, "sync_time", knob)
	best, effects := f.View.Head("best"), f.View.Head("effects")
	for _, t := range v.tunings {
		for _, e := range t.Effects {
			kind := [...]string{1: "main", 2: "interaction"}[len(e.Factors)]
			effects.Add(t.Name, e.Name, kind, analysis.Estimate(e.Ratio), e.PHolm, e.Result())
		}
		if t.Best == nil || len(t.Factors) == 0 {
			continue
		}
		var tied []string
		for _, c := range t.Tied {
			tied = append(tied, t.Levels(c))
		}
		gain := analysis.Text(t.NoGain())
		if gain.Text == "" {
			gain = analysis.Estimate(t.Gain)
		}
		best.Add(t.Name, t.Levels(t.Best), gain, strings.Join(tied, "; "))
	}
	return []analysis.Table{best, effects}
}

// verdictWords is the template for the best configuration of a system under a set of conditions.
const verdictWords = "{{with .Where}}{{.}}: {{end}}{{if .Time}}{{.Best}} is fastest: {{.Time}} of the default's time" +
	"{{else if .Why}}{{.Best}} is fastest; {{.Why}}{{else}}no configuration is significantly faster than the " +
	"default{{end}}{{range $i, $e := .Effects}}{{if $i}},{{else}}; over all configurations{{end}} {{.}} the " +
	"time{{end}}"

// verdict names the best configuration of each system and set of conditions.
func (v *view) verdict(r *analysis.Result) *analysis.Verdict {
	tone := analysis.Neutral
	var parts []string
	for _, t := range v.tunings {
		if t.Best == nil {
			continue
		}
		said := map[string]any{"Where": t.Name, "Best": t.Levels(t.Best)}
		if t.Gain.N > 0 && t.Gain.Hi < 1 {
			tone, said["Time"] = analysis.Good, words.Range(t.Gain.Mid, t.Gain.Lo, t.Gain.Hi, "×")
		} else {
			if t.Best != t.Base {
				said["Why"] = t.NoGain()
			}
			said["Effects"] = mainEffects(t) // without them, the verdict would contradict the effects table
		}
		parts = append(parts, analysis.Fill(verdictWords, said))
	}
	if len(parts) == 0 {
		return nil
	}
	text := words.Capital(strings.Join(parts, "; ")) + "."
	if r.Found("never-served") {
		text += " In some trials the node never served."
		tone = analysis.Bad
	}
	return &analysis.Verdict{Text: text, Tone: tone}
}

// mainEffects describes the knobs with an effect over all configurations.
func mainEffects(t *analysis.Tuning) (all []string) {
	for _, e := range t.Effects {
		if len(e.Factors) == 1 && e.Result().Tone != "" {
			all = append(all, e.Name+" takes "+words.Range(e.Ratio.Mid, e.Ratio.Lo, e.Ratio.Hi, "×"))
		}
	}
	return all
}
