package report

import (
	"math"
	"strings"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
)

// summaryOf is the median of a cell's trials with its exact interval, or with
// the range of the trials where these are too few for an interval.
func summaryOf(xs []float64, blocks []int) Summary {
	s := Summary{N: len(xs), values: xs, blocks: blocks}
	i := stats.MedianCI(xs, Confidence)
	s.Median, s.Lo, s.Hi, s.Confidence, s.Exact = Num(i.Mid), Num(i.Lo), Num(i.Hi), i.Conf, i.Bounded()
	if !i.Bounded() {
		s.Lo, s.Hi = unknown, unknown
		s.Confidence = 0
		if len(xs) > 1 {
			s.Lo, s.Hi = Num(minimum(xs)), Num(maximum(xs))
			s.Confidence = 1 - math.Pow(2, float64(1-len(xs)))
		}
	}
	return s
}

func minimum(xs []float64) float64 {
	m := xs[0]
	for _, x := range xs {
		m = min(m, x)
	}
	return m
}

func maximum(xs []float64) float64 {
	m := xs[0]
	for _, x := range xs {
		m = max(m, x)
	}
	return m
}

// beyond is how many operations must lie beyond a percentile for it to be
// shown: one alone would make it the extreme of a single bad moment.
const beyond = 5

// supported reports whether a trial has the operations that a percentile needs.
func supported(key string, t record.Trial) bool {
	at := strings.LastIndex(key, "_p")
	if at < 0 || at+3 > len(key) {
		return true
	}
	q := 0.0
	for _, d := range key[at+2:] {
		if d < '0' || d > '9' {
			return true
		}
		q = q*10 + float64(d-'0')
	}
	for q >= 1 {
		q /= 100
	}
	return float64(t.Outcomes[record.OK.String()])*(1-q) >= beyond || q <= 0.5
}
