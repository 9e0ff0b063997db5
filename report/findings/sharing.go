package findings

import (
	"fmt"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// nearlyAll is the share of all bytes from which on seeders do all the work: with it
// ten leechers more have the use of one leecher's link.
const nearlyAll = 0.90

// Sharing is who sent the bytes of one cell's swarm.
type Sharing struct {
	Where             string
	Seeders, Leechers int
	BySeeders         float64 // share of all bytes, median
}

// NoSharing names swarms whose leechers pass nothing on: such a swarm is none.
func NoSharing(cells []Sharing) []Finding {
	f := Finding{Rule: "no-sharing", Tone: Warn, Title: "Leechers pass hardly anything on",
		Text: "Nearly all bytes came from the seeders although there were several leechers: more leechers will take proportionally longer."}
	for _, c := range cells {
		if c.BySeeders > nearlyAll && c.Leechers > 1 {
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %s of all bytes were sent by %s", c.Where, words.Percent(c.BySeeders), words.Plural(int64(c.Seeders), "seeder", "seeders")))
		}
	}
	return withEvidence(f)
}
