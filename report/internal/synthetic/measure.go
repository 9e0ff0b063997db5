package synthetic

import (
	"math"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
)

// Measure is what the scenario computes of a trial, from its own summary.
func Measure(s *record.Summary, seconds, line float64) map[string]float64 {
	c := s.Counts()
	m := map[string]float64{"throughput": float64(c.OKBytes) / seconds,
		"ops_rate":     float64(c.Outcomes[record.OK]) / seconds,
		"success_rate": float64(c.Outcomes[record.OK]) / float64(c.Finished()), "load_line": line}
	m["load_line_share"] = m["throughput"] / line
	for _, q := range []struct {
		key string
		q   float64
	}{{"p50", 0.5}, {"p99", 0.99}} {
		if s.Count(record.TTFB) >= stats.PercentileN(q.q) {
			m["ttfb_"+q.key] = s.KaplanMeier(record.TTFB, q.q)
		}
		if s.Count(record.Duration) >= stats.PercentileN(q.q) {
			m["duration_"+q.key] = s.KaplanMeier(record.Duration, q.q)
		}
	}
	for k, v := range m {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			delete(m, k)
		}
	}
	return m
}
