package siasim

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// uplink is what files go through to the hosts, one after another.
type uplink struct {
	bw   Bandwidth
	tail float64 // what it will have carried when all that is queued is through
}

// carried is what it could have carried until t, in bytes.
func (u *uplink) carried(t time.Duration, stalls []Window) float64 {
	var spans [][2]time.Duration
	for _, w := range stalls {
		to := w.From + w.For
		if w.For == 0 {
			to = t
		}
		if w.From < t {
			spans = append(spans, [2]time.Duration{w.From, min(to, t)})
		}
	}
	slices.SortFunc(spans, func(a, b [2]time.Duration) int { return cmp.Compare(a[0], b[0]) })
	sum, from := u.whole(t), time.Duration(0)
	for _, w := range spans {
		if a, b := max(w[0], from), w[1]; b > a {
			sum -= u.whole(b) - u.whole(a)
			from = b
		}
	}
	return sum
}

// whole is the integral of the bandwidth from 0 to t.
func (u *uplink) whole(t time.Duration) float64 {
	x := max(t, 0).Seconds()
	if u.bw.Decay <= 0 {
		return u.bw.Start * x
	}
	d := u.bw.Decay.Seconds()
	return u.bw.Floor*x + (u.bw.Start-u.bw.Floor)*d*-math.Expm1(-x/d)
}

// horizon is where the search for a moment ends.
const horizon = 10 * 365 * 24 * time.Hour

// reaches is the first moment from now on at which so much will have been
// carried; false: not in ten years, as things are.
func (u *uplink) reaches(bytes float64, now time.Duration, stalls []Window) (time.Duration, bool) {
	if u.carried(now, stalls) >= bytes {
		return now, true
	}
	lo, hi := now, now+horizon
	if u.carried(hi, stalls) < bytes {
		return 0, false
	}
	for hi-lo > 1 {
		if mid := lo + (hi-lo)/2; u.carried(mid, stalls) >= bytes {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi, true
}

// at is the bandwidth at a moment, in bytes/s.
func (u *uplink) at(t time.Duration) float64 {
	if u.bw.Decay <= 0 {
		return u.bw.Start
	}
	return u.bw.Floor + (u.bw.Start-u.bw.Floor)*math.Exp(-float64(t)/float64(u.bw.Decay))
}
