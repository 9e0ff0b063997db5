package disseminate

import (
	_ "embed"
	"math"
	"slices"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/nodes"
	"github.com/plimsoll-project/plimsoll/stats"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

//go:embed metrics.txt
var definitions string

// Metrics implements Scenario. The unit is the trial: its leechers are summarized first.
func (Scenario) Metrics() []record.Metric {
	return append(scenario.Definitions(definitions, "disseminate"), scenario.Machine()...)
}

// lifetime returns how long a leecher took until a moment (0: not reached). A failed leecher
// would never have reached it, and counts as slower than all others. A leecher that the
// experiment cut off is censored: it took longer than it was observed.
func lifetime(op record.Op, moment int64) stats.Lifetime {
	since := func(at int64) float64 { return float64(at-op.Intended) / 1e9 }
	switch {
	case moment > 0:
		return stats.Lifetime{Time: since(moment), Happened: true, N: 1}
	case op.Outcome.ServerFailure():
		return stats.Lifetime{Time: math.Inf(1), N: 1}
	}
	return stats.Lifetime{Time: since(op.LastByte), N: 1}
}

// hadAll returns when an operation had all, or 0.
func hadAll(op record.Op) int64 {
	if op.Outcome != record.OK {
		return 0
	}
	return op.LastByte
}

// leecherOps returns the operations of the leechers in the order of the nodes.
func leecherOps(in *scenario.Measured) []record.Op {
	return slices.SortedStableFunc(in.Ops, func(a, b record.Op) int { return int(a.Worker) - int(b.Worker) })
}

// swarmTimes puts the metrics of the leechers' results.
func swarmTimes(ops []record.Op, m map[string]float64, put func(string, float64)) {
	var whole, first []stats.Lifetime
	var all, ok, finished int
	last := 0.0
	for _, op := range ops {
		whole = append(whole, lifetime(op, hadAll(op)))
		first = append(first, lifetime(op, op.FirstByte))
		if op.Outcome.Finished() || op.Outcome == record.Deadline {
			finished++
		}
		if op.Outcome == record.Cancelled {
			continue // ended by the experiment
		}
		all++
		if op.Outcome == record.OK {
			ok++
			last = max(last, float64(op.LastByte-op.Intended)/1e9)
		}
	}
	if ok == all && all > 0 {
		put("time_last", last)
	}
	put("ok_rate", float64(ok)/float64(finished))
	put("time_median", stats.ProductLimit(whole, 0.5))
	put("time_p25", stats.ProductLimit(whole, 0.25))
	put("time_p75", stats.ProductLimit(whole, 0.75))
	if half := m["time_median"]; half > 0 {
		put("speed_median", float64(ops[0].Length)/half)
	}
	put("first_byte", stats.ProductLimit(first, 0.5))
}

// TimesOf returns the metrics of the operations of leechers alone.
func TimesOf(ops []record.Op) map[string]float64 {
	m := map[string]float64{}
	swarmTimes(ops, m, scenario.Numbers(m))
	return m
}

// swarmPolls puts the metrics of starting and polling the leechers.
func swarmPolls(in *scenario.Measured, put func(string, float64)) {
	known := func(kind string) []float64 { return slices.DeleteFunc(in.EachDetail(kind), math.IsNaN) }
	if called := known(record.DetailCalled); len(called) > 0 {
		put("start_spread", slices.Max(called)-slices.Min(called))
	}
	if gaps := known(record.DetailGap); len(gaps) > 0 {
		put("resolution", slices.Max(gaps))
	}
	put("stalls", in.LoadDetail(scenario.LoadStalls))
}

// swarmLines puts the load lines and their ratios to the times. The lines are corrected by the
// rate of one path that was measured before the trial, and is assumed to hold for all paths.
func swarmLines(in *scenario.Measured, m map[string]float64, put func(string, float64)) {
	d := in.Cell.Disseminate
	if in.LoadDetail(scenario.LoadEmulated) == 0 || !d.Join.Together() || len(d.Faults) > 0 {
		return
	}
	factor := 1.0
	if in.Link != nil {
		factor, _ = nodes.MeasuredAgainst(*in.Link, 0)
	}
	payload := func(wire float64) float64 { return link.TCPPayloadRate(wire, in.Cell.Link.IPv6) }
	scenario.PutLine(m, "line", in.Cell.LoadLine(d.Leechers(), payload)/factor, "time_last")
	half := MedianLeecher(d.Leechers())
	scenario.PutLine(m, "line_median", in.Cell.LoadLine(half, payload)/factor, "time_median")
	put("speed_line", float64(in.Cell.Data.Size)/m["line_median"])
}

// MedianLeecher returns how many of n leechers have the content at the median time, when the
// product-limit estimate first falls to one half.
func MedianLeecher(n int) int { return (n + 1) / 2 }

// swarmTraffic puts the metrics of the traffic over the nodes' links.
func swarmTraffic(in *scenario.Measured, ops []record.Op, put func(string, float64)) {
	towards, from, payload := in.EachDetail(record.DetailLinkReceived), in.EachDetail(record.DetailLinkSent),
		in.EachDetail(record.DetailPayload)
	at := func(all []float64, place int) float64 {
		if place < len(all) {
			return all[place]
		}
		return math.NaN()
	}
	var sent, seeders, received, content, useful, of float64
	for place, role := range in.EachDetail(record.DetailSeeder) {
		if math.IsNaN(role) {
			continue // not in this trial
		}
		sent += at(from, place)
		if role == 1 {
			seeders += at(from, place)
		}
	}
	for _, op := range ops {
		if op.Outcome != record.OK {
			continue
		}
		received += at(towards, int(op.Worker))
		content += float64(op.Length)
		if v := at(payload, int(op.Worker)); v > 0 {
			useful += v
			of += float64(op.Length)
		}
	}
	// put omits quotients with a denominator of 0.
	put("overhead", received/content)
	put("seeder_share", seeders/sent)
	put("duplicates", useful/of)
}

// swarmRecovery puts the metrics of faults that were undone.
func swarmRecovery(in *scenario.Measured, put func(string, float64)) {
	if outages := in.EachDetail(record.DetailOutage); len(outages) > 0 {
		put("outage", slices.Max(outages))
	}
	held := in.EachDetail(record.DetailRecovery)
	after := slices.DeleteFunc(slices.Clone(held), math.IsNaN)
	put("recovered", float64(len(after))/float64(len(held)))
	put("recovery", stats.Median(after))
}
