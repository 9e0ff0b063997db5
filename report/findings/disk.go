package findings

import (
	"fmt"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

const (
	// diskLag is the share of the time by which a disk may lag behind the last verified
	// byte: a page cache and a last flush are within it.
	diskLag = 0.10
	// lagPolls is how many gaps between polls a lag must be: both ends of it are told
	// by polls.
	lagPolls = 2
)

// Written is when the last leecher of one cell had everything: medians, in seconds.
type Written struct {
	Where      string
	Verified   float64
	OnDisk     float64
	Resolution float64 // of both, the longest gap between polls
}

// DiskLags says where verified was not yet kept.
func DiskLags(cells []Written) []Finding {
	f := Finding{Rule: "disk-lags", Tone: Neutral, Title: "Files were complete on disk later than verified",
		Text: "The last leecher had verified everything well before all was on its disk. Times here are those of verified bytes, for all systems alike; who needs the file waits longer."}
	for _, c := range cells {
		if c.OnDisk > (1+diskLag)*c.Verified && c.OnDisk-c.Verified > lagPolls*c.Resolution {
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s: verified after %s, on disk after %s", c.Where, words.Show(c.Verified, "s"), words.Show(c.OnDisk, "s")))
		}
	}
	return withEvidence(f)
}
