package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
)

// judge writes the answer and the verdict.
func (r *Report) judge() {
	r.Answer = r.lens.answers(r)
	r.Verdict = r.verdict()
	if r.Run.Done == 0 {
		return
	}
	if r.finding("drift") {
		m, _ := r.metric(r.lens.steady)
		r.Verdict.Text += " " + capital(m.Name) + " changed during the run (drift)."
		if r.Verdict.Tone == Good || r.Verdict.Tone == Neutral {
			r.Verdict.Tone = Warn
		}
	}
	if r.Run.State == "running" && countGates(r.Gates).state() != RuleFail {
		return // what cannot be told yet need not stay so, nor what passes
	}
	r.Verdict = r.Verdict.holding(r.Gates)
}

// fewValid is the share of valid trials below which a verdict begins with it.
const fewValid = 2.0 / 3

// verdict is one sentence; what spoils everything else comes first.
func (r *Report) verdict() Verdict {
	wrong := map[string]bool{}
	for _, t := range r.Trials {
		if t.Outcomes[record.WrongBytes.String()] > 0 {
			wrong[t.Info.System] = true
		}
	}
	if len(wrong) > 0 && r.syncs != nil {
		return Verdict{"At the right height " + list(r.names(wrong)) + " had another chain.", Bad}
	}
	if len(wrong) > 0 {
		return Verdict{"Wrong bytes were served by " + list(r.names(wrong)) + ".", Bad}
	}
	if r.lens.judge != nil {
		if v := r.lens.judge(r); v != nil {
			return *v
		}
	}
	if r.Run.Valid == 0 {
		if r.Run.Done == 0 {
			return Verdict{"No trial has ended yet.", Neutral}
		}
		if least := r.atLeast(); least != "" && r.Baseline == "" {
			return Verdict{"This machine was the limit in every trial: " + least + ".", Warn}
		}
		return Verdict{"No trial is valid: nothing can be said about the systems.", Bad}
	}
	served, tone := r.served()
	if float64(r.Run.Valid) < fewValid*float64(r.Run.Done) {
		served, tone = fmt.Sprintf("Only %d of %d trials are valid. %s", r.Run.Valid, r.Run.Done, served), Warn
	}
	if found := r.finding("link-not-emulated"); found {
		served, tone = "Links were not emulated: these are numbers of the bare machine. "+served, Bad
	}
	if r.lens.verdict != nil {
		if clause := r.lens.verdict(r); clause != "" {
			served += "; " + clause
		}
	}
	if clause := r.slowerClause(); clause != "" {
		served += "; " + clause
		if tone == Good {
			tone = Neutral
		}
	}
	if r.Baseline == "" {
		if r.Scenario == "retrieve" && r.headline == "throughput" {
			served += ". " + r.aloneVerdict()
		}
		return Verdict{served + ".", tone}
	}
	parts, worse := r.againstBaseline()
	if len(parts) == 0 {
		return Verdict{served + ".", tone}
	}
	if tone == Good && worse {
		tone = Neutral
	}
	return Verdict{served + "; " + strings.Join(parts, "; ") + ".", tone}
}

// againstBaseline says of each system whether it is slower or faster than the baseline;
// worse: one is slower.
func (r *Report) againstBaseline() (parts []string, worse bool) {
	var open, slight []string
	for _, s := range r.Systems {
		o, ok := r.overall(s.Name, r.headline)
		slower, faster, cells := r.decided(s.Name)
		if s.Baseline || !ok && cells == 0 {
			continue
		}
		worse = worse || slower > 0 || o.Better < 0
		switch {
		case slower > 0 && faster > 0:
			parts = append(parts, fmt.Sprintf("%s is slower than %s in %d of %d cells and faster in %d", s.Name, r.Baseline, slower, cells, faster))
		case slower > 0:
			parts = append(parts, fmt.Sprintf("%s is slower than %s%s", s.Name, r.Baseline, ofCells(slower, cells)))
		case faster > 0:
			parts = append(parts, fmt.Sprintf("%s is faster than %s%s", s.Name, r.Baseline, ofCells(faster, cells)))
		case o.Better < 0:
			parts = append(parts, fmt.Sprintf("%s is slower than %s over all cells together", s.Name, r.Baseline))
		case o.Better > 0:
			parts = append(parts, fmt.Sprintf("%s is faster than %s over all cells together", s.Name, r.Baseline))
		case r.slight(s.Name):
			slight = append(slight, s.Name)
		default:
			open = append(open, s.Name)
		}
	}
	if len(slight) > 0 {
		parts = append(parts, fmt.Sprintf("for %s a difference to %s is shown, below the effect floor of %s", list(slight), r.Baseline, percent(EffectFloor)))
	}
	if len(open) > 0 {
		parts = append(parts, fmt.Sprintf("for %s no difference to %s is shown", list(open), r.Baseline))
	}
	return parts, worse
}

// served says in a clause how reliable the systems were.
func (r *Report) served() (string, Tone) {
	type counts struct{ ok, of int64 }
	each := map[string]counts{}
	ok, of, late := int64(0), int64(0), int64(0)
	for _, c := range r.Cells {
		ok, of, late = ok+c.Success.OK, of+c.Success.Of, late+c.late()
		e := each[c.System]
		each[c.System] = counts{e.ok + c.Success.OK, e.of + c.Success.Of}
	}
	if of == 0 {
		return "No operation finished", Bad
	}
	if behind, open := r.behind(); len(behind) > 0 {
		return fmt.Sprintf("The offered load was not kept up with%s", ofCells(len(behind), open)), Bad
	}
	var silent []string
	for _, s := range r.Systems {
		if each[s.Name].of == 0 {
			silent = append(silent, s.Name)
		}
	}
	if len(silent) > 0 {
		return "Nothing is known of " + list(silent) + ", of which no " + r.lens.operation[0] + " was measured", Warn
	}
	empty, spoiled := 0, 0
	for _, c := range r.Cells {
		switch {
		case c.Success.Of > 0 || c.Skipped >= c.Planned:
		case c.Valid == 0 && c.Invalid > 0:
			spoiled++
		default:
			empty++
		}
	}
	if spoiled > 0 && empty == 0 {
		return fmt.Sprintf("%d of %d cells have no valid trial", spoiled, len(r.Cells)), Warn
	}
	if empty > 0 {
		return fmt.Sprintf("In %d of %d cells no %s finished in a valid trial", empty, len(r.Cells), r.lens.operation[0]), Warn
	}
	switch {
	case ok == of && late == 0:
		return "Every " + r.lens.operation[0] + " was served", Good
	case ok == of:
		return "No " + r.lens.operation[0] + " failed, though " + count(late) + " passed the experiment's own deadline or were starved by the link", Neutral
	}
	var failing []string
	for _, s := range r.Systems {
		if e := each[s.Name]; e.ok < e.of {
			failing = append(failing, fmt.Sprintf("%s failed %s of %s", s.Name, count(e.of-e.ok), plural(e.of, r.lens.operation[0], r.lens.operation[1])))
		}
	}
	return list(failing), Warn
}

// few reports whether blocks are too few to claim a difference.
func (o *Overall) few() bool {
	if o.Least.Where == o.Most.Where { // a single cell
		return o.N < fewestPairs
	}
	return o.N < stats.LeastBlocks
}

// words are the ratio with its interval. An interval that excludes 1 says that there
// is a difference, so it is left out where the test does not agree.
func (o *Overall) words() string {
	if !o.Shown && (o.Lo > 1 || o.Hi < 1) {
		return show(float64(o.Value), "×")
	}
	return showRange(o.Value, o.Lo, o.Hi, "×")
}

// notShown says why over all cells no difference is shown.
func (o *Overall) notShown() string {
	switch {
	case o.few():
		return " (" + plural(int64(o.N), "block", "blocks") + ", too few to show a difference)"
	case o.Least.Value < 1 && o.Most.Value > 1:
		return " (a difference is not shown: cells lie on both sides of 1×)"
	}
	return " (a difference is not shown)"
}

// spread says in which cells a ratio is lowest and highest; empty: there is one.
func (o *Overall) spread() string {
	if o.Least.Where == o.Most.Where {
		return ""
	}
	return fmt.Sprintf("; from %s (%s) to %s (%s)", show(float64(o.Least.Value), "×"), o.Least.Where, show(float64(o.Most.Value), "×"), o.Most.Where)
}

// slight reports whether a system is shown to differ from the baseline, somewhere or
// over all cells, and nowhere by the effect floor.
func (r *Report) slight(system string) bool {
	o, ok := r.overall(system, r.headline)
	if ok && o.Better != 0 {
		return false
	}
	shown := ok && o.Shown
	for _, c := range r.Cells {
		if q, has := c.Ratios[r.headline]; has && c.System == system {
			if q.Better != 0 {
				return false
			}
			shown = shown || q.Shown
		}
	}
	return shown
}

// finding reports whether a rule found something.
func (r *Report) finding(rule string) bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Rule == rule })
}

// comparisons say of each system how it compares with the baseline, over all
// cells; the baseline first.
func (r *Report) comparisons() []Answer {
	out := []Answer{}
	m, ok := r.metric(r.headline)
	if !ok {
		return out
	}
	verb := map[string]string{"throughput": "delivers", "duration_p50": "takes"}[r.headline]
	for _, s := range r.Systems {
		lo, hi := r.extremes(s.Name)
		if lo == nil {
			continue
		}
		o, compared := r.overall(s.Name, r.headline)
		worse, better, _ := r.decided(s.Name)
		say := ""
		switch {
		case !compared:
			say = fmt.Sprintf("%s %s", verb, show(float64(hi.Metrics[r.headline].Median), m.Unit))
			if lo != hi {
				say = fmt.Sprintf("%s from %s (%s) to %s (%s)", verb, show(float64(lo.Metrics[r.headline].Median), m.Unit), r.shape.where(lo),
					show(float64(hi.Metrics[r.headline].Median), m.Unit), r.shape.where(hi))
			}
		case !o.Shown && worse+better == 0 && o.few():
			say = fmt.Sprintf("%s %s what %s does in %s, too few to tell them apart", verb, show(float64(o.Value), "×"), r.Baseline, plural(int64(o.N), "block", "blocks"))
		case !o.Shown && worse+better == 0 && !r.slight(s.Name):
			say = fmt.Sprintf("cannot be told apart from %s: %s over all cells, from %s", r.Baseline, o.words(), plural(int64(o.N), "block", "blocks"))
		default:
			say = fmt.Sprintf("%s %s what %s does, over all cells", verb, o.words(), r.Baseline)
			switch {
			case !o.Shown:
				say += o.notShown()
			case o.Better == 0:
				say += " (shown, below the effect floor of " + percent(EffectFloor) + ")"
			}
		}
		if compared {
			say += o.spread()
		}
		say += r.slowerWords(s.Name)
		out = append(out, Answer{s.Name, say + "."})
	}
	return out
}

// extremes are a system's cells with the lowest and the highest r.headline.
func (r *Report) extremes(system string) (lo, hi *Cell) {
	for _, c := range r.cells() {
		m, ok := c.Metrics[r.headline]
		if c.System != system || !ok {
			continue
		}
		if lo == nil || m.Median < lo.Metrics[r.headline].Median {
			lo = c
		}
		if hi == nil || m.Median > hi.Metrics[r.headline].Median {
			hi = c
		}
	}
	return lo, hi
}

func (r *Report) overall(system, metric string) (Overall, bool) {
	for _, o := range r.Overall {
		if o.System == system && o.Metric == metric {
			return o, true
		}
	}
	return Overall{}, false
}

// names lists the systems in a set, in plan order.
func (r *Report) names(set map[string]bool) []string {
	var out []string
	for _, s := range r.Systems {
		if set[s.Name] {
			out = append(out, s.Name)
		}
	}
	return out
}

// decided counts a system's cells in which a difference to the baseline is shown
// and above the effect floor.
func (r *Report) decided(system string) (worse, better, cells int) {
	for _, c := range r.Cells {
		q, ok := c.Ratios[r.headline]
		if c.System != system || !ok {
			continue
		}
		cells++
		switch {
		case q.Better < 0:
			worse++
		case q.Better > 0:
			better++
		}
	}
	return worse, better, cells
}

func ofCells(n, of int) string {
	switch {
	case of == 1:
		return ""
	case n == of:
		return " in every cell"
	}
	return fmt.Sprintf(" in %d of %d cells", n, of)
}
