package analysis

import (
	"cmp"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
)

// Verdict is the main result in words.
type Verdict struct {
	Text string `json:"text"`
	Tone Tone   `json:"tone"`
}

// fewValid is the share of valid trials below which a verdict begins with that share.
const fewValid = 2.0 / 3

// verdict compares each system with the baseline, after reporting what invalidates the comparison.
func (r *Result) verdict() Verdict {
	say := func(key string, data map[string]any) string { return Fill(texts().Verdict[key], data) }
	if corrupt, found := find(r.Findings, func(f Finding) bool { return f.Rule == "wrong-bytes" }); found {
		r.inVerdict(corrupt.Rule)
		return Verdict{say("corrupt", map[string]any{"Systems": words.List(corrupt.Systems)}), Bad}
	}
	if r.Run.Done == 0 {
		return Verdict{say("none", nil), Neutral}
	}
	tone := Good
	var parts []string
	add := func(t Tone, text string) {
		parts, tone = append(parts, text), graver(tone, t)
	}
	r.gateVerdict(add)
	if r.Run.Valid == 0 {
		var names, known []string
		for _, s := range r.Systems {
			if text := r.atLeast(s); text != "" {
				known = append(known, text)
			} else {
				names = append(names, s.Name)
			}
		}
		add(Bad, say("invalid", map[string]any{"Systems": words.List(names)}))
		r.failedVerdict(add)
		parts = append(parts, known...)
		return Verdict{strings.Join(parts, " "), tone}
	}
	if float64(r.Run.Valid) < fewValid*float64(r.Run.Done) {
		add(Warn, say("few", map[string]any{"Valid": r.Run.Valid, "Done": r.Run.Done}))
	}
	if r.Found("link-not-emulated") {
		add(Bad, say("bare", nil))
		r.inVerdict("link-not-emulated")
	}
	if own := r.View.Verdict; own != nil {
		if v := own(r); v != nil {
			add(v.Tone, v.Text)
			return Verdict{strings.Join(parts, " "), tone}
		}
	}
	dead := r.failedVerdict(add)
	for _, s := range r.Systems {
		if s.Baseline || dead[s.Name] || dead[r.Baseline] {
			continue
		}
		if r.Baseline == "" {
			if text := r.aloneWords(s); text != "" {
				add(Good, text)
				if more := r.atLeast(s); more != "" {
					add(Warn, more)
				}
			} else {
				m, _ := r.Frame.Metric(r.Headline)
				add(Bad, say("never", map[string]any{"System": s.Name, "Metric": m.Name}))
			}
			continue
		}
		add(r.comparison(s))
	}
	if m, _ := r.Frame.Metric(r.Headline); r.Found("drift") {
		add(Warn, say("drift", map[string]any{"Metric": words.Capital(m.Name)}))
		r.inVerdict("drift")
	}
	return Verdict{strings.Join(parts, " "), tone}
}

// failedVerdict adds how many operations of each system failed, and returns the systems without any
// success, which are not compared. Without a valid trial it counts those of invalid ones.
func (r *Result) failedVerdict(add func(t Tone, text string)) (dead map[string]bool) {
	dead = map[string]bool{}
	for _, s := range r.Systems {
		var ok, of int64
		for _, c := range r.Cells {
			if c.System == s.Name {
				ok, of = ok+c.Success.OK, of+c.Success.Of
			}
		}
		for _, t := range r.Frame.Trials {
			if r.Run.Valid == 0 && t.Info.System == s.Name && !t.Warmup {
				oks, ended, _ := t.finished(r.View.InTime)
				ok, of = ok+oks, of+ended
			}
		}
		dead[s.Name] = ok == 0 && of > 0
		if ok < of {
			add(Warn, Fill(texts().Verdict["failed"], map[string]any{"Systems": s.Name, "Failed": of - ok, "Of": of,
				"One": r.View.Operation[0], "Many": r.View.Operation[1]}))
			r.inVerdict("failures")
		}
	}
	return dead
}

// inVerdict marks the finding of a rule as included in the verdict.
func (r *Result) inVerdict(rule string) {
	for i, f := range r.Findings {
		r.Findings[i].InVerdict = f.InVerdict || f.Rule == rule
	}
}

// compared counts a system's cells by the result of their headline ratios.
type compared struct {
	Worse, Better, Cells int
	small, pairs         int  // significant but below the effect floor; largest number of pairs of a cell
	cut                  bool // some trials are censored in the headline
}

func (r *Result) compared(s System) (n compared) {
	for _, c := range r.Cells {
		if c.System == s.Name || c.Baseline {
			n.cut = n.cut || Censored(r.Frame.Of(c, r.Headline)) > 0
		}
		q, ok := c.Ratios[r.Headline]
		if c.System != s.Name || !ok {
			continue
		}
		n.Cells, n.pairs = n.Cells+1, max(n.pairs, q.N)
		switch {
		case q.Better < 0:
			n.Worse++
		case q.Better > 0:
			n.Better++
		case q.Significant:
			n.small++
		}
	}
	return n
}

// says returns the key of the sentence about these cells, and o over all of them.
func (n compared) says(o Overall) (key string, tone Tone) {
	switch {
	case n.Worse > 0 && n.Better > 0:
		return "mixed", Neutral
	case n.Worse > 0 && n.Cells > 1:
		return "slower", Neutral
	case n.Better > 0 && n.Cells > 1:
		return "faster", Good
	case n.Worse > 0 || o.Better < 0:
		return "slower1", Neutral
	case n.Better > 0 || o.Better > 0:
		return "faster1", Good
	case n.small > 0 || o.Significant:
		return "small", Good
	case n.Cells == 0 && n.cut:
		return "cut", Warn
	case n.pairs < FewestPairs:
		return "fewer", Neutral
	}
	return "same", Good
}

// comparison returns the sentence that compares a system with the baseline.
func (r *Result) comparison(s System) (Tone, string) {
	o, _ := r.OverallOf(s.Name, r.Headline)
	overall := ""
	if o.Significant {
		overall = words.Range(float64(o.Value), float64(o.Lo), float64(o.Hi), "×")
	}
	n := r.compared(s)
	key, tone := n.says(o)
	return tone, Fill(texts().Verdict[key], map[string]any{"System": s.Name, "Baseline": r.Baseline, "Worse": n.Worse,
		"Better": n.Better, "Cells": n.Cells, "Overall": overall, "Pairs": FewestPairs})
}

// aloneWords describes a system in a run without a baseline: its best cell.
func (r *Result) aloneWords(s System) string {
	m, _ := r.Frame.Metric(r.Headline)
	var best *Cell
	cells := 0
	for _, c := range r.Cells {
		v, ok := c.Metrics[m.Key]
		if c.System != s.Name || !ok {
			continue
		}
		cells++
		if best == nil || (v.Median < best.Metrics[m.Key].Median) == (m.Better == record.Lower) {
			best = c
		}
	}
	if best == nil {
		return ""
	}
	v, where := best.Metrics[m.Key], ""
	if cells > 1 {
		where = r.Frame.Layout.Where(best)
	}
	return Fill(texts().Verdict["alone"],
		map[string]any{"System": s.Name, "Metric": m.Name, "Where": where, "From": r.overlapsFrom(best, m.Key),
			"Value": words.Range(float64(v.Median), float64(v.Lo), float64(v.Hi), m.Unit)})
}

// overlapsFrom returns the lowest level of concurrency from which all exact intervals of a rate,
// up to the highest level, overlap with that of the best cell; otherwise empty.
func (r *Result) overlapsFrom(best *Cell, metric string) string {
	axis, at := r.Frame.Layout.Axis, r.Frame.Layout.At
	if metric != r.View.Rate || axis == nil || !strings.HasSuffix(axis.Path, ".concurrency") {
		return ""
	}
	var levels []*Cell // the highest first
	for _, c := range r.Cells {
		_, ok := c.Metrics[metric]
		if ok && c.System == best.System && r.Frame.Layout.PanelOf(c) == r.Frame.Layout.PanelOf(best) {
			levels = append(levels, c)
		}
	}
	slices.SortFunc(levels, func(a, b *Cell) int { return cmp.Compare(at(b), at(a)) })
	apart := slices.IndexFunc(levels, func(c *Cell) bool {
		v := c.Metrics[metric]
		return !v.Exact || !best.Metrics[metric].Exact || v.Hi < best.Metrics[metric].Lo
	})
	if apart >= 0 {
		levels = levels[:apart]
	}
	if len(levels) < 2 || !slices.Contains(levels, best) {
		return ""
	}
	x, _ := levels[len(levels)-1].Factor(axis.Path)
	return x.Label + " " + x.Text()
}

// onlySlow are validity reasons that can only have made a system slower.
var onlySlow = []string{record.ReasonGeneratorSaturated, record.ReasonMachineLimited, record.ReasonBoxBusy}

// atLeast describes, in a run without a baseline, the rates of trials that are invalid only
// because this machine was too slow, if they exceed those of all valid trials.
func (r *Result) atLeast(s System) string {
	m, _ := r.Frame.Metric(r.Headline)
	if m.Key != r.View.Rate || r.Baseline != "" {
		return ""
	}
	rates := map[*Cell][]float64{}
	for _, t := range r.Frame.Trials {
		if v, ok := t.Metrics[m.Key]; ok && t.Info.System == s.Name && t.ValidBut(onlySlow...) {
			rates[t.Info] = append(rates[t.Info], v)
		}
	}
	var best *Cell
	most := 0.0
	for _, c := range r.Cells {
		if len(rates[c]) == 0 {
			continue
		}
		rate := stats.Median(rates[c])
		if v, ok := c.Metrics[m.Key]; ok { // valid trials
			rate = float64(v.Median)
		}
		if rate > most {
			best, most = c, rate
		}
	}
	if best == nil || best.Valid > 0 {
		return ""
	}
	return Fill(texts().Verdict["atleast"],
		map[string]any{"System": s.Name, "Metric": m.Name, "Where": r.Frame.Layout.Where(best),
			"Value": words.Show(most, m.Unit)})
}

// graver returns the worse of two tones.
func graver(a, b Tone) Tone {
	order := []Tone{Good, Neutral, Warn, Bad}
	return order[max(slices.Index(order, a), slices.Index(order, b))]
}
