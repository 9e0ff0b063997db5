package report

import (
	"fmt"
	"strings"

	"github.com/plimsoll-project/plimsoll/record"
)

// judge writes the answer and the verdict.
func (r *Report) judge() {
	r.Answer = r.answers()
	r.Verdict = r.verdict()
}

// verdict is one sentence; what spoils everything else comes first.
func (r *Report) verdict() Verdict {
	wrong := map[string]bool{}
	for _, t := range r.Trials {
		if t.Outcomes[record.WrongBytes.String()] > 0 {
			wrong[t.Info.System] = true
		}
	}
	if len(wrong) > 0 {
		return Verdict{"Wrong bytes were served by " + list(r.names(wrong)) + ".", Bad}
	}
	if r.Run.Valid == 0 {
		if r.Run.Done == 0 {
			return Verdict{"No trial has ended yet.", Neutral}
		}
		return Verdict{"No trial is valid: nothing can be said about the systems.", Bad}
	}
	served, tone := r.served()
	if r.Baseline == "" {
		return Verdict{served + ". There is no baseline, so nothing is compared.", tone}
	}
	var slower, faster, open []string
	for _, s := range r.Systems {
		if s.Baseline {
			continue
		}
		switch o, ok := r.overall(s.Name, r.headline); {
		case !ok:
		case o.Better < 0:
			slower = append(slower, s.Name)
		case o.Better > 0:
			faster = append(faster, s.Name)
		default:
			open = append(open, s.Name)
		}
	}
	var parts []string
	if len(slower) > 0 {
		parts = append(parts, fmt.Sprintf("%s %s slower than %s", list(slower), isAre(slower), r.Baseline))
	}
	if len(faster) > 0 {
		parts = append(parts, fmt.Sprintf("%s %s faster", list(faster), isAre(faster))+" than "+r.Baseline)
	}
	if len(open) > 0 {
		parts = append(parts, fmt.Sprintf("for %s no difference to %s is shown", list(open), r.Baseline))
	}
	if len(parts) == 0 {
		return Verdict{served + ".", tone}
	}
	if tone == Good && len(slower) > 0 {
		tone = Neutral
	}
	return Verdict{served + "; " + strings.Join(parts, "; ") + ".", tone}
}

// served says in a clause how reliable the systems were.
func (r *Report) served() (string, Tone) {
	type counts struct{ ok, of int64 }
	each := map[string]counts{}
	ok, of, censored := int64(0), int64(0), int64(0)
	for _, c := range r.Cells {
		ok, of, censored = ok+c.Success.OK, of+c.Success.Of, censored+c.Success.Censored
		e := each[c.System]
		each[c.System] = counts{e.ok + c.Success.OK, e.of + c.Success.Of}
	}
	switch {
	case of == 0:
		return "No operation finished", Bad
	case ok == of && censored == 0:
		return "Every request was served", Good
	case ok == of:
		return "No request failed, though " + count(censored) + " were cut off by the experiment's own limits", Neutral
	}
	var failing []string
	for _, s := range r.Systems {
		if e := each[s.Name]; e.ok < e.of {
			failing = append(failing, fmt.Sprintf("%s failed %s of %s", s.Name, count(e.of-e.ok), plural(e.of, "request", "requests")))
		}
	}
	return list(failing), Warn
}

// answers say what the run shows of each system, the baseline first.
func (r *Report) answers() []Answer {
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
		say := ""
		switch {
		case !compared:
			say = fmt.Sprintf("%s %s", verb, show(float64(hi.Metrics[r.headline].Median), m.Unit))
			if lo != hi {
				say = fmt.Sprintf("%s from %s (%s) to %s (%s)", verb, show(float64(lo.Metrics[r.headline].Median), m.Unit), r.shape.where(lo),
					show(float64(hi.Metrics[r.headline].Median), m.Unit), r.shape.where(hi))
			}
		case !o.Shown:
			say = fmt.Sprintf("shows no difference to %s over all cells: %s", r.Baseline, showRange(o.Value, o.Lo, o.Hi, "×"))
		default:
			say = fmt.Sprintf("%s %s what %s does, over all cells", verb, showRange(o.Value, o.Lo, o.Hi, "×"), r.Baseline)
		}
		if compared && o.Least.Where != o.Most.Where {
			say += fmt.Sprintf("; from %s (%s) to %s (%s)", show(float64(o.Least.Value), "×"), o.Least.Where, show(float64(o.Most.Value), "×"), o.Most.Where)
		}
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

func isAre(names []string) string {
	if len(names) == 1 {
		return "is"
	}
	return "are"
}
