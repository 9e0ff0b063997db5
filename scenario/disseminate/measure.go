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

// leecherOp is the result of a leecher: its operation until all was verified, and the same until
// all was on disk.
type leecherOp struct {
	place       int
	fetch, disk record.Op
}

// leecherOps returns the results of the leechers in the order of the nodes.
func leecherOps(in *scenario.Measured) (all []leecherOp) {
	at, outcomes := in.EachDetail(record.DetailOnDisk), in.EachDetail(record.DetailDiskOutcome)
	for op := range in.Ops {
		o := leecherOp{int(op.Worker), op, op}
		if o.place < len(at) && o.place < len(outcomes) {
			o.disk.LastByte, o.disk.Outcome = int64(math.Round(at[o.place]*1e9)), record.Outcome(outcomes[o.place])
		}
		all = append(all, o)
	}
	slices.SortStableFunc(all, func(a, b leecherOp) int { return a.place - b.place })
	return all
}

// swarmTimes puts the metrics of the leechers' results.
func swarmTimes(ops []leecherOp, m map[string]float64, put func(string, float64)) {
	var fetch, disk, first []stats.Lifetime
	var all, ok, finished int
	last, diskLast := 0.0, 0.0
	took := func(op record.Op) float64 { return float64(op.LastByte-op.Intended) / 1e9 }
	for _, o := range ops {
		f, d := o.fetch, o.disk
		fetch = append(fetch, lifetime(f, hadAll(f)))
		disk = append(disk, lifetime(d, hadAll(d)))
		first = append(first, lifetime(f, f.FirstByte))
		if f.Outcome.Finished() || f.Outcome == record.Deadline {
			finished++
		}
		if f.Outcome == record.Cancelled {
			continue // ended by the experiment
		}
		all++
		if f.Outcome == record.OK {
			ok++
			last = max(last, took(f))
		}
		diskLast = max(diskLast, took(d))
		if d.Outcome != record.OK {
			diskLast = math.NaN()
		}
	}
	if ok == all && all > 0 {
		put("time_last", last)
		put("disk_last", diskLast)
	}
	put("ok_rate", float64(ok)/float64(finished))
	put("time_median", stats.ProductLimit(fetch, 0.5))
	put("time_p25", stats.ProductLimit(fetch, 0.25))
	put("time_p75", stats.ProductLimit(fetch, 0.75))
	if half := m["time_median"]; half > 0 {
		put("speed_median", float64(ops[0].fetch.Length)/half)
	}
	put("disk_median", stats.ProductLimit(disk, 0.5))
	put("first_byte", stats.ProductLimit(first, 0.5))
}

// TimesOf returns the metrics of the operations of leechers alone, if it is unknown when they
// had all on disk.
func TimesOf(ops []record.Op) map[string]float64 {
	m, all := map[string]float64{}, make([]leecherOp, len(ops))
	for i, op := range ops {
		all[i] = leecherOp{int(op.Worker), op, record.Op{Outcome: record.InFlight}}
	}
	swarmTimes(all, m, scenario.Numbers(m))
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
		factor, _ = nodes.Correction(*in.Link, 0)
	}
	payload := func(wire float64) float64 { return link.TCPPayloadRate(wire, in.Cell.Link.IPv6) }
	scenario.PutLine(m, "line", in.Cell.LoadLineOf(d.Leechers(), payload)/factor, "time_last")
	half := MedianLeecher(d.Leechers())
	scenario.PutLine(m, "line_median", in.Cell.LoadLineOf(half, payload)/factor, "time_median")
	put("speed_line", float64(in.Cell.Data.Size)/m["line_median"])
}

// MedianLeecher returns how many of n leechers have the content at the median time, when the
// product-limit estimate first falls to one half.
func MedianLeecher(n int) int { return (n + 1) / 2 }

// swarmTraffic puts the metrics of the traffic over the nodes' links.
func swarmTraffic(in *scenario.Measured, ops []leecherOp, put func(string, float64)) {
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
	for _, o := range ops {
		if o.fetch.Outcome != record.OK {
			continue
		}
		received += at(towards, o.place)
		content += float64(o.fetch.Length)
		if v := at(payload, o.place); v > 0 {
			useful += v
			of += float64(o.fetch.Length)
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
