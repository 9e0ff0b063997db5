package findings

import (
	"fmt"
	"math"
	"strings"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// Fresh is what is known of the time of the fresh nodes of one cell. NaN: not known.
type Fresh struct {
	Where      string
	Time       float64 // seconds until it serves
	Resolution float64 // seconds between the polls that tell it
	// The replay: the same program with the same blocks from a local file.
	Replay float64 // seconds; 0 or NaN: there was none, or the link takes longer
	Share  float64 // the load line as a share of the time
	// Peers.
	Peers    int
	Timeouts float64
	Again    float64 // requests in vain, timeouts among them
	Useful   float64 // share of the peers that delivered a block
	Most     float64 // share of the blocks that came from one
}

// overReplay is how many times the time of a sync a replay may take before it was
// disturbed: it does the same work, without the waiting.
const overReplay = 1.1

// Disturbed reports whether the node was faster than its own work from a local file
// by more than noise.
func (n *Fresh) Disturbed() bool { return n.Replay > 0 && n.Share > overReplay }

// ReplayDisturbed: a replay that others disturbed is no bound.
func ReplayDisturbed(cells []Fresh) []Finding {
	f := Finding{Rule: "replay-disturbed", Tone: Warn, Title: "Faster than the replay",
		Text: "The nodes were faster than the same program with the same blocks from a local file and without a network. The replay was disturbed, by other work on the machine or its disk: its time is no load line, and nothing is said of what these are bound by."}
	for i := range cells {
		if n := &cells[i]; n.Disturbed() {
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s: serves after %s, the replay took %s", n.Where, words.Show(n.Time, "s"), words.Show(n.Replay, "s")))
		}
	}
	return withEvidence(f)
}

// UselessPeers names requests in vain, and peers that gave nothing: one is worth a
// word, as each is a wait.
func UselessPeers(cells []Fresh) []Finding {
	f := Finding{Rule: "useless-peers", Tone: Neutral, Title: "Timeouts and useless peers",
		Text: "Medians over trials. A peer is useful when it delivered a block; a request that timed out is asked again elsewhere, and the wait for it is lost."}
	for i := range cells {
		n := &cells[i]
		var parts []string
		if n.Timeouts > 0 {
			parts = append(parts, words.Plural(int64(math.Round(n.Timeouts)), "timeout", "timeouts"))
		}
		if n.Again > 0 {
			parts = append(parts, words.Plural(int64(math.Round(n.Again)), "request", "requests")+" in vain, timeouts among them")
		}
		if n.Useful < 1 {
			parts = append(parts, words.Percent(n.Useful)+" of the peers useful")
		}
		if parts == nil {
			continue
		}
		if n.Most > 0 && n.Peers > 1 {
			parts = append(parts, fmt.Sprintf("%s of the blocks from one peer", words.Percent(n.Most)))
		}
		f.Evidence = append(f.Evidence, n.Where+": "+strings.Join(parts, ", "))
	}
	return withEvidence(f)
}

// CoarseSyncs: a time is as exact as the polls that tell it.
func CoarseSyncs(cells []Fresh) []Finding {
	f := Finding{Rule: "coarse", Tone: Warn, Title: "Times are coarse",
		Text: "The polls that tell the times lie far apart for what they measure: a time may be too long by as much, and never too short."}
	for i := range cells {
		if n := &cells[i]; n.Resolution > CoarseGap*n.Time {
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %s between polls, %s until it serves", n.Where, words.Show(n.Resolution, "s"), words.Show(n.Time, "s")))
		}
	}
	return withEvidence(f)
}
