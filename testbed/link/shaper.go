package link

// shaper is a rate with a queue before it, as a virtual clock: it knows when the last
// accepted byte will have left, and so needs neither a timer nor a list. A packet of n
// bytes that arrives at t leaves at max(t, busy) + n/rate. Times are nanoseconds; the
// precision of float64 is 1/50 ns after a day and 1 ns after a hundred days.
//
// Arrival times must not decrease.
type shaper struct {
	perByte float64 // ns; 0: unlimited
	limit   float64 // bytes
	busy    float64 // when it becomes idle
	before  float64 // until then it sends what it accepted before the last change
}

// set changes rate (bit/s, 0: unlimited) and queue (bytes). Accepted packets keep their
// departure and do not count against the new queue; later ones leave after them, so the
// order is kept. Setting the current values again changes nothing: the queue stays as
// full as it is.
func (s *shaper) set(rate float64, queue int64) {
	perByte := 0.0
	if rate > 0 {
		perByte = 8e9 / rate
	}
	if perByte == s.perByte && float64(queue) == s.limit {
		return
	}
	s.before = s.busy
	s.perByte, s.limit = perByte, float64(queue)
}

// backlog returns the bytes that wait or are being sent at t.
func (s *shaper) backlog(t int64) float64 {
	if s.perByte == 0 {
		return 0
	}
	return max(0, s.busy-max(float64(t), s.before)) / s.perByte
}

// fit returns how many of a packet's segments, arriving back to back at t, the queue
// accepts: drop-tail in bytes, segment by segment. An idle link accepts at least one,
// however short its queue is.
func (s *shaper) fit(t int64, p packet) int32 {
	if s.perByte == 0 {
		return p.segs
	}
	backlog := s.backlog(t)
	room := s.limit - backlog + 1e-3 // rounding must not cost a segment
	if room >= float64(p.wire()) {
		return p.segs
	}
	n := min(int32(max(room, 0)/float64(p.span(0, 1))), p.segs-1)
	if n == 0 && backlog == 0 {
		n = 1
	}
	return n
}

// take accepts n bytes that arrive at t and returns when the last one leaves.
func (s *shaper) take(t int64, n int64) int64 {
	if s.perByte == 0 && s.busy <= float64(t) {
		return t
	}
	s.busy = max(s.busy, float64(t)) + float64(n)*s.perByte
	return int64(s.busy)
}
