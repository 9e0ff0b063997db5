package report

import (
	"fmt"
	"strings"
)

// modelFails says where one line does not describe an operation.
func modelFails(r *Report) []Finding {
	bad := Finding{Rule: "model", Tone: Warn, Title: "The cost model does not hold",
		Text: fmt.Sprintf("What is left of these times after A + R·RTT + B·size is more than what repeated trials differ by, and in some cell %s or more.", percent(nearMisfit))}
	near := Finding{Rule: "model-near", Tone: Neutral, Title: "The cost model is not exact",
		Text: fmt.Sprintf("What is left of these times after A + R·RTT + B·size is more than what repeated trials differ by, but in every cell less than %s: A, R and B are good to that.", percent(nearMisfit))}
	grows := Finding{Rule: "segments", Tone: Neutral, Title: "Round trips grow with the size",
		Text: "One number of round trips does not fit all sizes: each further segment, window or block of a large object waits for an answer of its own."}
	none := Finding{Rule: "no-fit", Tone: Neutral, Title: "Not everything could be fitted", Text: "There is too little to tell what these operations cost."}
	untested := Finding{Rule: "model-untested", Tone: Neutral, Title: "Whether the cost model holds is not known",
		Text: "There are too few trials of a cell, or too few cells, to tell a model that misses from trials that differ."}
	for i := range r.Fits {
		f := &r.Fits[i]
		name := f.System + ", " + r.nameOf(f)
		switch {
		case f.model == nil:
			none.Evidence = append(none.Evidence, name+": "+f.Why)
		case !f.tested && !f.Holds:
			untested.Evidence = append(untested.Evidence, name+": "+f.Why)
		case f.near():
			near.Evidence = append(near.Evidence, name+": "+f.Why+"; "+f.misfitWords())
		case !f.Holds:
			bad.Evidence = append(bad.Evidence, name+": "+f.Why+"; "+f.misfitWords())
		}
		if len(f.Rounds) > 1 {
			var steps []string
			for _, s := range f.Rounds {
				steps = append(steps, roundWords(float64(s.R.Value))+" from "+sizeWords(float64(s.From)))
			}
			grows.Evidence = append(grows.Evidence, name+": "+strings.Join(steps, ", "))
		}
	}
	return withEvidence(bad, untested, near, grows, none)
}

// withEvidence keeps the findings that have some.
func withEvidence(all ...Finding) []Finding {
	var out []Finding
	for _, f := range all {
		if f.Evidence != nil {
			out = append(out, f)
		}
	}
	return out
}

// inlined: a time that contains no upload must not pass for a fast one.
func inlined(r *Report) []Finding {
	f := Finding{Rule: "inline", Tone: Neutral, Title: "Some objects never cross the link",
		Text: "These operations ended before an answer could have come, or the link carried nothing to speak of. Such sizes are left out of the fits where larger ones cross, and their times are not compared with those of objects that do cross."}
	for i := range r.Fits {
		if t := &r.Fits[i]; t.Inline != nil {
			f.Evidence = append(f.Evidence, t.System+", "+r.nameOf(t)+": "+t.Inline.words(t.Operation))
		}
	}
	return withEvidence(f)
}

// unequal compares with the baseline for the same absolute bytes.
func unequal(r *Report) []Finding {
	f := Finding{Rule: "same-bytes", Tone: Neutral, Title: "Against " + r.Baseline + " for the same absolute bytes",
		Text: "The time of an operation divided by what the baseline's fit gives for as many bytes as the system sends to its storage nodes: what remains is not the price of redundancy. Geometric mean over cells."}
	for i := range r.Fits {
		t := &r.Fits[i]
		a := t.Against
		if a == nil {
			continue
		}
		what := ""
		if a.Operation != t.Operation {
			what = " (its " + a.Operation + ")"
		}
		s := fmt.Sprintf("%s, %s: %s%s", t.System, r.nameOf(t), showRange(a.Ratio.Value, a.Ratio.Lo, a.Ratio.Hi, "×"), what)
		if base := r.fitOf(task{a.System, a.Operation, t.Connections}); base != nil && base.tested && !base.Holds && !base.near() {
			s += ", by a fit of the baseline that does not hold"
		}
		if a.Least.Where != a.Most.Where {
			s += fmt.Sprintf("; from %s (%s) to %s (%s)", show(float64(a.Least.Value), "×"), a.Least.Where, show(float64(a.Most.Value), "×"), a.Most.Where)
		}
		f.Evidence = append(f.Evidence, s)
	}
	return withEvidence(f)
}
