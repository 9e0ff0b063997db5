package studylog

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
)

// measure computes those metrics of the scenario disseminate that a log tells:
// times of the trial's leechers, each since its own request.
func measure(ops []record.Op, size int64) map[string]float64 {
	m := map[string]float64{}
	put := func(key string, v float64) {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			m[key] = v
		}
	}
	first := slices.Clone(ops) // until the first byte, as if that were the whole
	var last, earliest, latest float64
	ok, finished := 0, 0
	for i, op := range ops {
		first[i].Outcome = record.InFlight
		if op.FirstByte > 0 {
			first[i].Outcome, first[i].LastByte = record.OK, op.FirstByte
		}
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
		put("time_"+key, quantile(ops, q))
		if t := quantile(ops, 1-q); !math.IsInf(t, 0) { // the faster, the shorter
			put("speed_"+key, float64(size)/t)
		}
	}
	put("first_byte", quantile(first, .5))
	put("ok_rate", float64(ok)/float64(finished))
	put("start_spread", latest-earliest)
	return m
}

func seconds(ns int64) float64 { return time.Duration(ns).Seconds() }

// quantile is the least time by which the share q of the leechers was complete,
// by Kaplan and Meier: those that were not are cut off when they were last seen.
// Infinite when it was not reached.
func quantile(ops []record.Op, q float64) float64 {
	sorted := slices.Clone(ops)
	took := func(op record.Op) int64 { return op.LastByte - op.Intended }
	slices.SortFunc(sorted, func(a, b record.Op) int {
		return cmp.Or(cmp.Compare(took(a), took(b)), cmp.Compare(a.Outcome, b.Outcome)) // OK comes first
	})
	longer := 1.0
	for i, op := range sorted {
		if op.Outcome != record.OK {
			continue
		}
		longer *= 1 - 1/float64(len(sorted)-i)
		if 1-longer >= q-1e-9 {
			return seconds(took(op))
		}
	}
	return math.Inf(1)
}
