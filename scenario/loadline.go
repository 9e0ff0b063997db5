package scenario

import (
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
)

// Path is a verified link as a transfer meets it.
type Path struct {
	Rate float64 // payload bytes per second; +Inf: the link has no limit of its own
	RTT  float64 // seconds; 0: no delay was asked for
}

// PathOf takes a path from what was measured through an emulated link just before
// a trial; ok is false where there is none that would limit anything.
//
// What a link reaches that has no rate of its own, and how long an answer takes
// over one without a delay, is the machine's doing and no limit of the link. Both
// are left out, so that nothing is called a limit that a moment of luck can beat.
func PathOf(check *record.LinkCheck) (p Path, ok bool) {
	if check == nil {
		return Path{}, false
	}
	p.Rate = math.Inf(1)
	if check.WantRate > 0 {
		if check.Rate <= 0 {
			return Path{}, false
		}
		p.Rate = check.Rate / 8
	}
	if check.WantRTT > 0 {
		p.RTT = check.RTT
	}
	return p, check.WantRate > 0 || p.RTT > 0
}

// TCP's window on a connection that has just been opened (RFC 6928): so many
// segments may be under way before the first acknowledgement, and each round trip
// at most doubles them (RFC 5681, section 3.1; a segment sent for each one that
// arrived, and one more). With timestamps a segment carries less than this.
const (
	initialSegments = 10
	segmentPayload  = 1460 // bytes
)

// Warmup is how many bytes each of n kept connections fetches before the clock starts,
// so that TCP's window is then at least its share of what fills the path, twice: it
// grows by what is acknowledged. A window that holds a whole answer is enough, so no
// more than an answer is asked for.
func (p Path) Warmup(n int) int64 {
	const least, all = initialSegments * segmentPayload, 64 << 20
	fills := 2 * p.Rate * p.RTT
	if math.IsNaN(fills) { // no limit, and no delay
		fills = 0
	}
	return int64(max(least, min(fills, all)/float64(n)))
}

// Request is one transfer of bytes in answer to a request, or with it.
type Request struct {
	Size  float64 // bytes
	Fresh bool    // on a TCP connection of its own, opened for it
	TLS   bool    // which begins with a handshake of TLS
}

// Wait is the least time, in seconds, from the start of a request until a first
// byte of its answer can be there.
//
// One round trip is the request's, one more a fresh TCP connection's, and one more a fresh
// TLS 1.3 session's (RFC 8446, section 2).
func (p Path) Wait(q Request) float64 {
	switch {
	case q.Fresh && q.TLS:
		return 3 * p.RTT
	case q.Fresh:
		return 2 * p.RTT
	}
	return p.RTT
}

// Time is the least time, in seconds, from the start of a request to its last byte:
//
//	trips · rtt + size / rate
//
// and on a fresh connection the pauses of slow start: the server may send no more
// than its window and then waits for the first acknowledgement, a round trip after
// it began, until twice the window fills the path. The window has doubled once more
// when the handshake of TLS went before. Loss, delayed acknowledgements and headers
// only make it longer; a larger initial window than Linux's would make it shorter.
func (p Path) Time(q Request) float64 {
	paused, left := 0.0, q.Size
	if q.Fresh && p.RTT > 0 {
		window := float64(initialSegments * segmentPayload)
		if q.TLS {
			window *= 2
		}
		for left > window && window/p.Rate < p.RTT {
			paused += p.RTT
			left -= window
			window *= 2
		}
	}
	return p.Wait(q) + paused + left/p.Rate
}

// LoadLine is the physical limit of a closed loop of transfers over one link:
// the throughput in file bytes per second that no implementation can exceed.
//
// n connections together carry at most the link's payload rate, and at most what n
// cycles can carry when each had the link for itself:
//
//	min(rate, n · size / time)
//
// with the time of one transfer as above. It is NaN where nothing is limited.
func (p Path) LoadLine(n int, q Request) float64 {
	cycle := p.Time(q)
	if n <= 0 || q.Size <= 0 || math.IsNaN(cycle) || cycle <= 0 {
		return math.NaN()
	}
	return math.Min(p.Rate, float64(n)*q.Size/cycle)
}

// OverTLS reports whether a system's options say that it is reached over https.
func OverTLS(use experiment.SystemUse) bool {
	return use.With["tls"] == "true" || slices.ContainsFunc([]string{"url", "urls", "endpoint"},
		func(key string) bool { return strings.HasPrefix(strings.TrimSpace(use.With[key]), "https:") })
}
