package findings

import (
	"fmt"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// fewRequests is how many requests of each connection a trial needs before the one
// that its end cuts off matters little: at most a tenth of one in so many.
const fewRequests = 10

// Looped is a closed-loop cell that a duration ends.
type Looped struct {
	Where string
	Ended int64 // requests that ended, of all its valid trials
	Cut   int64 // requests that were under way when a trial ended: one of each connection
}

// ShortTrials names cells whose trials are short. As many requests are under way at
// the end as there are connections. They count with the bytes that had come, a
// waiting one with none, so the throughput of a short trial moves in steps of a
// request, the same in every trial.
func ShortTrials(cells []Looped) []Finding {
	f := Finding{Rule: "short-trials", Tone: Neutral, Title: "Trials are short",
		Text: "Fewer than ten requests of each connection ended within a trial. What its end cuts off counts with the bytes that had come, so these throughputs move in steps of a request: they are a little low, and their intervals narrower than the truth."}
	for _, c := range cells {
		if c.Cut == 0 {
			continue
		}
		if each := float64(c.Ended) / float64(c.Cut); each < fewRequests {
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %s requests of each connection in a trial", c.Where, words.Digits(each, 2)))
		}
	}
	return withEvidence(f)
}
