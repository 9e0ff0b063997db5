package scenario

import "math"

// LoadLine is the physical limit of a closed loop of transfers over one link:
// the throughput in file bytes per second that no implementation can exceed.
//
// Each of n connections asks for size bytes, waits trips round trips of rtt
// seconds during which none of its own bytes arrive, and then receives at its
// share of the link. n connections together carry at most the link's payload
// rate, and at most what n such cycles can carry when each had the link for
// itself:
//
//	min(rate, n · size / (trips · rtt + size / rate))
//
// rate is in payload bytes per second, as measured through the link before the
// cell. TCP's slow start is left out: it is a property of the protocol's
// implementation, not of the link, so a short transfer on a fresh connection
// stays below this line. rate is +Inf when the link has none of its own: the
// round trips alone are the limit then, and without them there is none (NaN).
// rate ≤ 0 means it was not measured (NaN).
func LoadLine(n int, size, rate, rtt, trips float64) float64 {
	if rate <= 0 || n <= 0 || size <= 0 {
		return math.NaN()
	}
	cycle := trips*rtt + size/rate
	if cycle <= 0 {
		return math.NaN()
	}
	return math.Min(rate, float64(n)*size/cycle)
}

// RoundTrips counts the round trips before the first byte of an answer can
// arrive: one for the request, one more for a fresh TCP connection, and one
// more for a fresh TLS 1.3 session (RFC 8446, section 2).
func RoundTrips(fresh, tls bool) float64 {
	trips := 1.0
	if fresh {
		trips++
		if tls {
			trips++
		}
	}
	return trips
}
