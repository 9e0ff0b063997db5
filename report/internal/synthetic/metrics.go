package synthetic

import (
	"math"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
)

// Metrics are those of the scenario retrieve that the report knows by key.
func Metrics() []record.Metric {
	return []record.Metric{
		{Key: "achieved_share", Name: "achieved share of the offered load", Unit: "ratio", Better: record.Higher,
			Help: "operations that ended per second, divided by the offered load"},
		{Key: "success_rate", Name: "success rate", Unit: "ratio", Better: record.Higher, Help: "ok of finished"},
		{Key: "ttfb_p50", Name: "time to first byte, median", Unit: "s", Better: record.Lower, Help: "median"},
		{Key: "ttfb_p99", Name: "time to first byte, 99th percentile", Unit: "s", Better: record.Lower,
			Help: "as the median"},
		{Key: "duration_p50", Name: "duration, median", Unit: "s", Better: record.Lower, Help: "median"},
		{Key: "duration_p99", Name: "duration, 99th percentile", Unit: "s", Better: record.Lower,
			Help: "as the median"},
		{Key: "throughput", Name: "throughput", Unit: "B/s", Better: record.Higher,
			Help: "file bytes of ok operations per second"},
		{Key: "ops_rate", Name: "operations per second", Unit: "1/s", Better: record.Higher,
			Help: "ok operations per second"},
		{Key: "load_line", Name: "load line", Unit: "B/s", Better: record.Neither, Help: "the limit"},
		{Key: "load_line_share", Name: "share of the load line", Unit: "ratio", Better: record.Higher,
			Help: "throughput / load line"},
		{Key: "ttfb_line", Name: "load line of the first byte", Unit: "s", Better: record.Neither, Help: "round trips"},
		{Key: "ttfb_line_share", Name: "time to first byte, the load line's share", Unit: "ratio",
			Better: record.Higher, Help: "line / median"},
		{Key: "duration_line", Name: "load line of the duration", Unit: "s", Better: record.Neither,
			Help: "round trips and bytes"},
		{Key: "duration_line_share", Name: "duration, the load line's share", Unit: "ratio", Better: record.Higher,
			Help: "line / median"},
		{Key: "system_cpu_per_gb", Name: "system's CPU per GB", Unit: "s/GB", Better: record.Lower,
			Help: "CPU seconds per 10^9 bytes"},
		{Key: "generator_cpu_per_gb", Name: "generator's CPU per GB", Unit: "s/GB", Better: record.Neither,
			Help: "CPU seconds per 10^9 bytes"},
		{Key: "system_rss_peak", Name: "system's memory, peak", Unit: "B", Better: record.Lower, Help: "peak"},
		{Key: "generator_rss_peak", Name: "generator's memory, peak", Unit: "B", Better: record.Neither, Help: "peak"},
		{Key: "others_busy", Name: "CPU used by others", Unit: "ratio", Better: record.Lower,
			Help: "share of the machine"},
	}
}

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
		if ok, _ := stats.CanTell(s.Count(record.TTFB), q.q); ok {
			m["ttfb_"+q.key] = s.KaplanMeier(record.TTFB, q.q)
		}
		if ok, _ := stats.CanTell(s.Count(record.Duration), q.q); ok {
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
