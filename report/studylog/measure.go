package studylog

import (
	"math"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
)

// measure computes those metrics of the scenario disseminate that a log contains:
// times of the trial's leechers, each since its own request.
func measure(ops []record.Op, size int64) map[string]float64 {
	m := map[string]float64{}
	put := func(key string, v float64) {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			m[key] = v
		}
	}
	var fetch, first []stats.Lifetime
	var last, earliest, latest float64
	ok, finished := 0, 0
	for i, op := range ops {
		// No leecher of a log has failed for good: those that are not complete were
		// watched until they were last seen.
		l := stats.Lifetime{Time: seconds(op.LastByte - op.Intended), Happened: op.Outcome == record.OK}
		fetch = append(fetch, l)
		if op.FirstByte > 0 {
			l = stats.Lifetime{Time: seconds(op.FirstByte - op.Intended), Happened: true}
		}
		first = append(first, l)
		if op.Outcome.Finished() {
			finished++
		}
		last = max(last, seconds(op.LastByte-op.Intended))
		if op.Outcome == record.OK {
			ok++
		} else {
			last = math.Inf(1)
		}
		at := seconds(op.Start)
		if i == 0 || at < earliest {
			earliest = at
		}
		latest = max(latest, at)
	}
	put("time_last", last)
	for key, q := range map[string]float64{"p25": .25, "median": .5, "p75": .75} {
		put("time_"+key, stats.ProductLimit(fetch, q))
		if t := stats.ProductLimit(fetch, 1-q); !math.IsInf(t, 0) { // the faster, the shorter
			put("speed_"+key, float64(size)/t)
		}
	}
	put("first_byte", stats.ProductLimit(first, .5))
	put("ok_rate", float64(ok)/float64(finished))
	put("start_spread", latest-earliest)
	return m
}

func seconds(ns int64) float64 { return time.Duration(ns).Seconds() }
