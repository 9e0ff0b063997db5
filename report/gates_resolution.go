package report

import (
	"fmt"
	"math"

	"github.com/plimsoll-project/plimsoll/record"
)

// pollBounds are what polls let know of a cell's number. A time ends with the poll that
// first told so: the truth lies up to the resolution before it, in every trial, and
// no number of trials makes that smaller. What is told exactly has a resolution of 0.
type pollBounds struct {
	resolution   float64                 // seconds
	at           float64                 // the cell's median
	lower, upper func(v float64) float64 // between which the truth behind v lies
}

// toldBy are the times that other numbers of a cell are reciprocals of.
var toldBy = map[string][]string{
	"speed_median": {"time_median"}, "speed_p25": {"time_p75"}, "speed_p75": {"time_p25"},
	"line_median_share": {"time_median"}, "line_share": {"time_last", "sync_time"},
}

// pollBounds are those of a metric in a cell.
func (c *Cell) pollBounds(m record.Metric) pollBounds {
	same := func(v float64) float64 { return v }
	exact := pollBounds{lower: same, upper: same}
	median := func(key string) float64 {
		if s, has := c.Metrics[key]; has && s.N > 0 {
			return float64(s.Median)
		}
		return math.NaN()
	}
	p := pollBounds{resolution: median("resolution"), at: median(m.Key), lower: same, upper: same}
	if !(p.resolution > 0) {
		return exact
	}
	earlier := func(t float64) float64 { return max(0, t-p.resolution) }
	later := func(t float64) float64 { return t + p.resolution }
	// A number v is of is in a trial what a time of is/v is.
	of := func(time float64, change func(float64) float64) func(float64) float64 {
		whole := p.at * time
		if !(whole > 0) || math.IsInf(whole, 0) {
			return same
		}
		return func(v float64) float64 { return whole / change(whole/v) }
	}
	switch m.Key {
	case "time_last", "time_median", "time_p25", "time_p75", "disk_median", "disk_last", "first_byte", "recovery", "sync_time", "chain_time", "first_block":
		p.lower = earlier
	case "net_time", "index_lag": // between two polls
		p.lower, p.upper = earlier, later
	case "block_rate", "byte_rate":
		span := median("chain_time") - median("first_block")
		p.lower, p.upper = of(span, later), of(span, earlier)
	default:
		for _, key := range toldBy[m.Key] {
			if t := median(key); t > 0 {
				p.upper = of(t, earlier)
				return p
			}
		}
		return exact
	}
	return p
}

// stretch is by which factors the truth may lie below and above what was told.
func (p pollBounds) stretch() (down, up float64) {
	if !(p.at > 0) || math.IsInf(p.at, 0) {
		return 1, 1
	}
	return p.lower(p.at) / p.at, p.upper(p.at) / p.at
}

// over is by which factors a ratio of p to base may be smaller and larger.
func (p pollBounds) over(base pollBounds) (down, up float64) {
	down, up = p.stretch()
	below, above := base.stretch()
	return down / above, up / below
}

// toldLate says in a ruling that its interval has the resolution in it.
func toldLate(resolution float64) string {
	return fmt.Sprintf("; the interval has in it that polls tell moments up to %s late", show(resolution, "s"))
}
