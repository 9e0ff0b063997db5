package findings

import (
	"fmt"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// muchSpread is the share of the median time by which starts may lie apart: less is
// within what trials differ by.
const muchSpread = 0.05

// Release is how the leechers of one cell began that were released at one barrier:
// medians, in seconds.
type Release struct {
	Where  string
	Spread float64 // from the first start to the last
	Took   float64 // time of half of the leechers
}

// StartSpread names cells whose leechers did not start together.
func StartSpread(cells []Release) []Finding {
	f := Finding{Rule: "start-spread", Tone: Warn, Title: "Leechers did not start together",
		Text: "They were released at one barrier, but the last began so much later than the first that it matters for their times, which count from the release."}
	for _, c := range cells {
		if c.Took > 0 && c.Spread > muchSpread*c.Took {
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %s apart, with a median time of %s", c.Where, words.Show(c.Spread, "s"), words.Show(c.Took, "s")))
		}
	}
	return withEvidence(f)
}
