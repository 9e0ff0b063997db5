package experiment

import (
	"strings"
	"testing"
)

// A plan says which of its gates its trials cannot decide.
func TestGateWarnings(t *testing.T) {
	const held = `scenario: retrieve
systems: [nginx, boxo]
data: {size: 1MiB}
retrieve: {concurrency: [1, 8], requests: 100}
gates: [p95(ttfb) < 200ms, success >= 98% where concurrency == 8, no worse than BASE by 5%]
`
	const few = "with 4 repetitions nothing can be decided of `p95(ttfb) < 200ms`, `no worse than BASE by 5%`"
	for _, c := range []struct {
		set  []string
		want string // empty: no warning
	}{
		{nil, ""},
		{[]string{"repetitions=4"}, few},
		{[]string{"repetitions=4", "gates=success > 90%"}, ""},
		{[]string{"repetitions=4", "gates=throughput within 5% of nginx"}, "`throughput within 5% of nginx`: the interval"},
		{[]string{"repetitions=5", "gates=success >= 99.9%"}, "it takes 5031 operations of a cell without a failure to show, and c001 has 500 (100 requests × 5 repetitions)"},
		{[]string{"repetitions=5", "gates=success >= 99%"}, "it takes 503 operations"},
		{[]string{"repetitions=5", "gates=success >= 98.99%"}, ""}, // 497 operations,
		{[]string{"gates=success >= 100%"}, "no number of operations shows that all would succeed"},
		{[]string{"gates=success < 50%"}, ""},
		{[]string{"retrieve.requests=", "retrieve.duration=5s", "gates=success >= 99.9%"}, ""}, // how many is not known
		{[]string{"retrieve.requests=", "retrieve.duration=5s", "link.rate=100Mbit", "repetitions=5", "gates=success >= 99.9%"}, "operations of a cell without a failure to show, and c001 has"},
		{[]string{"retrieve.requests=", "retrieve.duration=5s", "link.rate=100Mbit", "repetitions=5", "gates=success >= 90%"}, ""},
		{[]string{"retrieve.requests=8", "gates=p99(ttfb) < 1s"}, "a trial needs 100 operations for this percentile, and one of c001 has 8"},
		{[]string{"retrieve.requests=100", "gates=p99(ttfb) < 1s"}, ""},
		{[]string{"retrieve.requests=8", "gates=median(ttfb) < 1s"}, ""},
		{[]string{"link.rate=100Mbit", "gates=throughput > 13MB/s"}, "the link of c001 carries 12.5 MB/s at most"},
		{[]string{"link.rate=100Mbit", "gates=throughput > 12MB/s"}, ""},
		{[]string{"link.rate=100Mbit", "gates=throughput < 13MB/s"}, ""},
		{[]string{"gates=offered_rate > 1/s"}, "c001 has no `retrieve.arrivals`"},
	} {
		got := strings.Join(warningsOf(mustPlan(t, held, c.set...)), "; ")
		if !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%v: %q, want %q", c.set, got, c.want)
		}
	}
}
