package findings

import (
	"fmt"
	"math"
	"strings"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// Redundant is what is known of how often a system kept what it was given.
type Redundant struct {
	Name     string
	Asked    float64 // times, n/k of the code
	Copies   float64 // times, by the bytes on its servers, padding taken out; NaN: not known
	PerFile  float64 // bytes on the servers for each object
	Metadata bool    // what is kept beside small pieces explains all that is more
	// What the system told of its files at each poll, seconds since the test began;
	// NaN: nothing.
	At, Mean, Most []float64
	// Waited: the last object was accepted longer ago than it may take to come to its
	// full redundancy.
	Waited bool
}

const (
	// muchRedundancy is how far it may be above what was asked for: a piece that is
	// sent to one server more is no waste while another is slow.
	muchRedundancy = 1.1
	// fullRedundancy is what counts as all that was asked for; systems round.
	fullRedundancy = 0.99
	// tellingPolls is how many polls must have told a redundancy.
	tellingPolls = 5
)

// Redundancy says where more is kept than was asked for, by the bytes or by the
// system's word, and where what was asked for was never seen.
func Redundancy(all []Redundant) []Finding {
	above := Finding{Rule: "more-than-asked", Tone: Warn, Title: "More was stored than padding and redundancy explain",
		Text: "Absolute bytes are file bytes, padded to whole units, times the redundancy. These are more, or the system itself told of a higher mean redundancy: pieces that were sent again, repairs that were not needed, or servers that were paid for what they do not keep.",
		Try:  "Watch an upload of a single object: when does its redundancy pass what was asked for? A repair that begins before the upload has ended, or a slow server whose piece goes to a second one, look like this."}
	small := Finding{Rule: "small-objects", Tone: Neutral, Title: "Small objects take more than their redundancy",
		Text: "Beside each piece a server keeps metadata (headers, hash trees, checksums), which weigh where objects are small: here they explain what is more. Pieces that were sent again or repairs would look the same; larger objects tell them apart.",
		Try:  "Store larger objects beside these: what is kept beside each piece stays, a redundancy that is too high does not."}
	never := Finding{Rule: "redundancy-never", Tone: Warn, Title: "The redundancy that was asked for was never seen",
		Text: fmt.Sprintf("At no poll was the mean redundancy that the system tells at %s of what was asked for, though the last object was accepted longer ago than upload.settle: what counts as stored can bear the loss of fewer servers than was paid for.", words.Percent(fullRedundancy)),
		Try:  "See whether there are as many servers as the code has pieces, and whether they take more data; allow more time (upload.settle)."}
	for i := range all {
		r := &all[i]
		if !(r.Asked > 0) {
			continue
		}
		t := r.told()
		bytes, said := r.Copies > muchRedundancy*r.Asked, t.row >= tellingPolls
		if bytes || said {
			var parts []string
			if bytes {
				parts = append(parts, fmt.Sprintf("%s× instead of %s×; %s for each object", words.Digits(r.Copies, 3), words.Digits(r.Asked, 3), words.Show(r.PerFile, "B")))
			}
			if said {
				parts = append(parts, fmt.Sprintf("the mean that the system told was up to %s× instead of %s×, and too high for %s of the %s that were watched (n = %s)", words.Digits(t.mean, 3), words.Digits(r.Asked, 3), words.Show(t.above/3600, "h"), words.Show(t.whole/3600, "h"), words.Plural(int64(t.polls), "poll", "polls")))
			}
			if t.most > 0 {
				parts = append(parts, fmt.Sprintf("the highest redundancy that it told of an object is %s×", words.Digits(t.most, 3)))
			}
			s := r.Name + ": " + strings.Join(parts, "; ")
			if r.Metadata && !said {
				small.Evidence = append(small.Evidence, s)
			} else {
				above.Evidence = append(above.Evidence, s)
			}
		}
		if r.Waited && t.polls >= tellingPolls && t.mean < fullRedundancy*r.Asked {
			never.Evidence = append(never.Evidence, fmt.Sprintf("%s: %s× at most and %s× at the end, of %s× (n = %s)", r.Name, words.Digits(t.mean, 3), words.Digits(t.last, 3), words.Digits(r.Asked, 3), words.Plural(int64(t.polls), "poll", "polls")))
		}
	}
	var out []Finding
	for _, f := range []Finding{above, never, small} {
		if f.Evidence != nil {
			out = append(out, f)
		}
	}
	return out
}

// toldOf is what a system told over all polls.
type toldOf struct {
	polls        int     // that told a mean
	row          int     // most in a row with a mean too high
	mean, last   float64 // highest and latest mean
	most         float64 // highest of an object; 0: not told
	above, whole float64 // seconds with a mean too high, and altogether
}

func (r *Redundant) told() (t toldOf) {
	row, before := 0, -1
	for i, m := range r.Mean {
		if i < len(r.Most) && r.Most[i] > t.most {
			t.most = r.Most[i]
		}
		if math.IsNaN(m) {
			continue
		}
		t.polls++
		t.mean, t.last = max(t.mean, m), m
		high := m > muchRedundancy*r.Asked
		if before >= 0 {
			d := r.At[i] - r.At[before]
			t.whole += d
			if high && row > 0 {
				t.above += d
			}
		}
		if row++; !high {
			row = 0
		}
		t.row, before = max(t.row, row), i
	}
	return t
}
