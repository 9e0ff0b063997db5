package scenario

import (
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
)

// Path holds the properties of a verified link that limit a transfer.
type Path struct {
	Rate float64 // payload bytes per second; +Inf: the link has no rate limit
	RTT  float64 // seconds; 0: the link has no configured delay
}

// PathOf returns the path measured through an emulated link just before a trial; ok is false if
// the link limits nothing.
//
// The rate measured over a link without a rate limit, and the round trip over one without a
// delay, depend on the machine and are no limits of the link. Both are left out, so that no
// "limit" can be beaten by chance.
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

// TCP's initial window (RFC 6928): the number of segments that may be in flight before the first
// acknowledgement. Each round trip at most doubles it (RFC 5681, section 3.1: each acknowledged
// segment allows another one in its stead, and one more). With timestamps, a segment carries
// less than segmentPayload.
const (
	initialSegments = 10
	segmentPayload  = 1460 // bytes
)

// Warmup returns how many bytes each of n kept connections fetches before the clock starts. The
// window grows by the acknowledged bytes, so that it is then at least twice the connection's
// share of the bytes that fill the path. A window that holds a whole answer is enough, so
// callers fetch at most one answer.
func (p Path) Warmup(n int) int64 {
	const least, all = initialSegments * segmentPayload, 64 << 20
	fills := 2 * p.Rate * p.RTT
	if math.IsNaN(fills) { // neither a rate limit nor a delay
		fills = 0
	}
	return int64(max(least, min(fills, all)/float64(n)))
}

// Request is one transfer of bytes in a request or in its answer.
type Request struct {
	Size  float64 // bytes
	Fresh bool    // on a TCP connection that is opened for it
	TLS   bool    // a fresh connection begins with a TLS handshake
}

// Wait returns the least time, in seconds, from the start of a request to the first byte of its
// answer.
//
// The request takes one round trip, a fresh TCP connection one more, and a fresh TLS 1.3 session
// another one (RFC 8446, section 2).
func (p Path) Wait(q Request) float64 {
	switch {
	case q.Fresh && q.TLS:
		return 3 * p.RTT
	case q.Fresh:
		return 2 * p.RTT
	}
	return p.RTT
}

// Time returns the least time, in seconds, from the start of a request to its last byte:
//
//	trips · rtt + size / rate
//
// and, on a fresh connection, the pauses of slow start: the server sends one window and then
// waits for the first acknowledgement, one round trip after it began, until the window fills the
// path. After a TLS handshake, the initial window has doubled once. Loss, delayed
// acknowledgements and headers only lengthen the time; a larger initial window than Linux's
// would shorten it.
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

// LoadLine returns the physical limit of a closed loop of transfers over one link: the
// throughput in file bytes per second that no implementation can exceed.
//
// n connections together carry at most the link's payload rate, and at most the bytes of n
// cycles as if each had the link to itself:
//
//	min(rate, n · size / time)
//
// with the time of one transfer from Time. It is NaN if nothing is limited.
func (p Path) LoadLine(n int, q Request) float64 {
	cycle := p.Time(q)
	if n <= 0 || q.Size <= 0 || math.IsNaN(cycle) || cycle <= 0 {
		return math.NaN()
	}
	return math.Min(p.Rate, float64(n)*q.Size/cycle)
}

// OverTLS reports whether a system's options make it reachable over https.
func OverTLS(use experiment.SystemUse) bool {
	return use.With["tls"] == "true" || slices.ContainsFunc([]string{"url", "urls", "endpoint"},
		func(key string) bool { return strings.HasPrefix(strings.TrimSpace(use.With[key]), "https:") })
}
