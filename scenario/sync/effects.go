package sync

import (
	"cmp"
	"strings"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/internal/words"
)

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
