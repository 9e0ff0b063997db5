package report

import "fmt"

// memoryGrows says whether a process keeps more of a larger object.
func memoryGrows(r *Report) []Finding {
	yes := Finding{Rule: "memory-grows", Tone: Warn, Title: "Memory grows with the file",
		Text: "The peak of these processes during one upload rises with the size of the object: the slope over trials (Theil–Sen), with its interval."}
	no := Finding{Rule: "memory-flat", Tone: Good, Title: "Memory does not grow with the file",
		Text: "The peak of these processes during one upload does not rise by more than a tenth of each further file byte. Only trials before which nothing larger was handled tell that, or how little the largest upload had above rest."}
	for i := range r.Memory {
		m := &r.Memory[i]
		s := fmt.Sprintf("%s, %s: %s of memory for each file byte, up to %s; peak %s", m.System, m.Process,
			m.growthWords(), sizeWords(float64(m.OneSize)), show(float64(m.One.Value), "B"))
		switch m.Grows {
		case "yes":
			yes.Evidence = append(yes.Evidence, s)
		case "no":
			no.Evidence = append(no.Evidence, s)
		}
	}
	return withEvidence(yes, no)
}

// slowsDown says whether an operation takes longer the more objects there are.
func slowsDown(r *Report) []Finding {
	up := Finding{Rule: "objects-slope", Tone: Warn, Title: "It slows down with the number of objects",
		Text: "The time of an operation rises with the number of objects that the servers hold: the slope over trials (Theil–Sen), with its interval, shown also after correction for all slopes."}
	flat := Finding{Rule: "objects-flat", Tone: Neutral, Title: "No operation is shown to slow down with the number of objects",
		Text: "The slope over trials (Theil–Sen) is not shown to be above 0, corrected for all slopes: within what was stored, the servers do not slow down by more than the upper end of its interval."}
	cut := Finding{Rule: "objects-cut", Tone: Warn, Title: "Some times with many objects are not known",
		Text: "In these trials so many operations were cut off (deadline, end of the trial) that their median is beyond what was watched. They are left out of the slope; being the slow ones, they make it too flat."}
	for _, t := range r.Trends {
		if t.Cut > 0 {
			s := fmt.Sprintf("%s, %s: %s left out", t.System, t.Operation, plural(int64(t.Cut), "trial", "trials"))
			if t.N > 0 {
				s += fmt.Sprintf(", %s in the slope", plural(int64(t.N), "other is", "others are"))
			}
			if t.Where != "" {
				s += " (" + t.Where + ")"
			}
			cut.Evidence = append(cut.Evidence, s)
		}
		if !t.Slope.Lo.Known() || t.Cut > 0 && !t.Shown {
			continue // no slope among those that are left says nothing
		}
		s := fmt.Sprintf("%s, %s: %s per 1,000 objects, from %s to %s objects; median %s", t.System, t.Operation, slopeWords(t.Slope), count(int64(t.From)), count(int64(t.To)), show(float64(t.Median), "s"))
		if t.Where != "" {
			s = fmt.Sprintf("%s (%s)", s, t.Where)
		}
		if t.Shown && t.Slope.Value > 0 {
			up.Evidence = append(up.Evidence, s)
		} else {
			flat.Evidence = append(flat.Evidence, s)
		}
	}
	return withEvidence(up, cut, flat)
}

func slopeWords(e Estimate) string { return showRange(e.Value, e.Lo, e.Hi, "s") }

// growthWords is how much of each file byte a process keeps.
func (m *Memory) growthWords() string {
	switch {
	case m.Growth.Value.Known() && m.AtLeast:
		return "at least " + showRange(m.Growth.Value, m.Growth.Lo, m.Growth.Hi, "B")
	case m.Growth.Value.Known():
		return showRange(m.Growth.Value, m.Growth.Lo, m.Growth.Hi, "B")
	case m.AtMost.Known():
		return "at most " + show(float64(m.AtMost), "B")
	}
	return "–"
}
