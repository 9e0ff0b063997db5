package findings

import (
	"fmt"

	"github.com/plimsoll-project/plimsoll/validity"
)

// BeyondSlack is that of [validity.Beyond].
const BeyondSlack = validity.BeyondSlack

// Lined is one measure of a cell beside its load line.
type Lined struct {
	Where     string    // the cell, in words
	Measure   string    // what is held against the line: "throughput"
	Shares    []float64 // load line over time, or rate over load line, of each trial that nothing else speaks against
	Tolerance float64   // of the link: it was verified to that share
}

// Beyond finds trials that did what their links cannot. One is enough: nothing can be
// faster than physics by chance.
func Beyond(all []Lined) []Finding {
	return beyond(all, Finding{Rule: "beyond-line", Tone: Bad, Title: "Faster than the links can be",
		Text: "These trials were beyond their load line by more than the link's tolerance. The link was not what was measured before the trial, bytes went another way or were never sent, or the measurement is wrong. All trials of these cells are left out (beyond-line).",
		Try:  "Run these cells again. If they are as fast again, see whether the system compresses, remembers what it has read, or reaches its peer without the emulated link."})
}

// AcceptedBeyond finds load tests that accepted objects faster than their links carry
// them, of systems that do not say when an object has arrived: that alone proves no
// error, for what is accepted need not have been sent.
func AcceptedBeyond(all []Lined) []Finding {
	return beyond(all, Finding{Rule: "accepted-beyond-line", Tone: Warn, Title: "Objects were accepted faster than the link carries them",
		Text: "The system had not sent these objects when it accepted them: they wait on this side of the link, in a buffer or on a disk, or went another way. The file bandwidth is that of accepting, not of storing.",
		Try:  "Store more than its buffers hold, and take the bandwidth of the servers, by upload.poll, for that of storing."})
}

func beyond(all []Lined, f Finding) []Finding {
	for _, l := range all {
		n, most := 0, 0.0
		for _, share := range l.Shares {
			if validity.Beyond(share, l.Tolerance) {
				n++
				most = max(most, share)
			}
		}
		if n > 0 {
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %s of %d of %d trials, at up to %.0f %% of the line", l.Where, l.Measure, n, len(l.Shares), 100*most))
		}
	}
	if f.Evidence == nil {
		return nil
	}
	return []Finding{f}
}
