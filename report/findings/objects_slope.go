package findings

import (
	"fmt"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// Filling is the time of one operation while objects are added to a system.
type Filling struct {
	Name     string // system and operation
	Where    string // the factors of its cells; empty: there is nothing to name
	Known    int    // trials whose time is known
	Cut      int    // trials with so many operations cut off that it is not
	From, To int64  // objects stored, fewest and most
	Took     float64
	Slope    Value // seconds per 1,000 objects (Theil–Sen); N 0: there is none
	Shown    bool  // it is not 0, corrected for all slopes of the report
}

// ObjectsSlope says whether an operation takes longer the more objects there are.
func ObjectsSlope(all []Filling) []Finding {
	up := Finding{Rule: "objects-slope", Tone: Warn, Title: "It slows down with the number of objects",
		Text: "The time of an operation rises with the number of objects that the servers hold: the slope over trials (Theil–Sen), with its interval, shown also after correction for all slopes."}
	flat := Finding{Rule: "objects-flat", Tone: Neutral, Title: "No operation is shown to slow down with the number of objects",
		Text: "The slope over trials (Theil–Sen) is not shown to be above 0, corrected for all slopes: within what was stored, the servers do not slow down by more than the upper end of its interval."}
	cut := Finding{Rule: "objects-cut", Tone: Warn, Title: "Some times with many objects are not known",
		Text: "In these trials so many operations were cut off (deadline, end of the trial) that their median is beyond what was watched. They are left out of the slope; being the slow ones, they make it too flat."}
	for _, f := range all {
		where := ""
		if f.Where != "" {
			where = " (" + f.Where + ")"
		}
		if f.Cut > 0 {
			s := fmt.Sprintf("%s: %s left out", f.Name, words.Plural(int64(f.Cut), "trial", "trials"))
			if f.Known > 0 {
				s += fmt.Sprintf(", %s in the slope", words.Plural(int64(f.Known), "other is", "others are"))
			}
			cut.Evidence = append(cut.Evidence, s+where)
		}
		if f.Slope.N == 0 || f.Cut > 0 && !f.Shown {
			continue // no slope among those that are left says nothing
		}
		s := fmt.Sprintf("%s: %s per 1,000 objects, from %s to %s objects; median %s%s", f.Name, f.Slope.words("s"), words.Count(f.From), words.Count(f.To), words.Show(f.Took, "s"), where)
		if f.Shown && f.Slope.Mid > 0 {
			up.Evidence = append(up.Evidence, s)
		} else {
			flat.Evidence = append(flat.Evidence, s)
		}
	}
	return withEvidence(up, cut, flat)
}
