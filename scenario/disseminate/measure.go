package disseminate

import (
	"math"
	"slices"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/nodes"
	"github.com/plimsoll-project/plimsoll/stats"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// Metrics of a trial. The trial is the unit: its leechers are summed up first.
func (Scenario) Metrics() []record.Metric {
	return append([]record.Metric{
		{Key: "time_last", Name: "time until all have it", Unit: "s", Better: record.Lower,
			Help: "longest time from a leecher's release until a poll reported its last byte verified; only if all " +
				"are ok, except those removed by faults"},
		{Key: "time_median", Name: "time until a leecher has it, median", Unit: "s", Better: record.Lower,
			Help: "from the release until a poll reported the last byte verified; failed leechers count as slowest, " +
				"cut-off ones as censored (Kaplan-Meier)"},
		{Key: "time_p25", Name: "time until a leecher has it, 25th percentile", Unit: "s", Better: record.Lower,
			Help: "as the median"},
		{Key: "time_p75", Name: "time until a leecher has it, 75th percentile", Unit: "s", Better: record.Lower,
			Help: "as the median"},
		{Key: "speed_median", Name: "speed of a leecher, median", Unit: "B/s", Better: record.Higher,
			Help: "content bytes over the median time"},
		{Key: "speed_p25", Name: "speed of a leecher, 25th percentile", Unit: "B/s", Better: record.Higher,
			Help: "content bytes over the 75th percentile of the times"},
		{Key: "speed_p75", Name: "speed of a leecher, 75th percentile", Unit: "B/s", Better: record.Higher,
			Help: "content bytes over the 25th percentile of the times"},
		{Key: "disk_median", Name: "time until a leecher has it on disk, median", Unit: "s", Better: record.Lower,
			Help: "as the median, until the node reports that it is complete and has written everything"},
		{Key: "disk_last", Name: "time until all have it on disk", Unit: "s", Better: record.Lower,
			Help: "likewise, until all have it"},
		{Key: "first_byte", Name: "time to the first byte, median", Unit: "s", Better: record.Lower,
			Help: "from the release until a poll reported a verified byte"},
		{Key: "start_spread", Name: "spread of the start", Unit: "s", Better: record.Lower,
			Help: "from the earliest to the latest first call to a leecher, each since its release"},
		{Key: "resolution", Name: "resolution of the times", Unit: "s", Better: record.Lower,
			Help: "longest time from the start of a poll to the end of the next: times may be late by that much"},
		{Key: "line", Name: "load line", Unit: "s", Better: record.Neither,
			Help: "least time for all leechers; no faults, common start"},
		{Key: "line_share", Name: "share of the load line", Unit: "ratio", Better: record.Higher,
			Help: "load line over the time until all have it"},
		{Key: "line_median", Name: "load line of half of the leechers", Unit: "s", Better: record.Neither,
			Help: "likewise for half of the leechers, those with the fastest links"},
		{Key: "line_median_share", Name: "median, the load line's share", Unit: "ratio", Better: record.Higher,
			Help: "this load line over the median time"},
		{Key: "speed_line", Name: "load line of the speed", Unit: "B/s", Better: record.Neither,
			Help: "content bytes over the load line of half of the leechers"},
		{Key: "ok_rate", Name: "ok leechers", Unit: "ratio", Better: record.Higher,
			Help: "leechers with the content, compared byte by byte, over all not removed by faults"},
		{Key: "overhead", Name: "bytes on the leechers' links", Unit: "×", Better: record.Lower,
			Help: "bytes of IP packets towards ok leechers over their content bytes"},
		{Key: "duplicates", Name: "payload received", Unit: "×", Better: record.Lower,
			Help: "payload received by ok leechers, as their nodes report, over their content"},
		{Key: "seeder_share", Name: "seeders' share of what was sent", Unit: "ratio", Better: record.Neither,
			Help: "bytes sent by seeders over bytes sent by all nodes"},
		{Key: "stalls", Name: "stalls", Unit: "1", Better: record.Lower,
			Help: "times that a leecher had no new verified byte for limits.stall (at least three polls)"},
		{Key: "outage", Name: "outage", Unit: "s", Better: record.Neither,
			Help: "longest time from the beginning of a fault until it is undone: nodes ready, links restored"},
		{Key: "recovery", Name: "time to recover", Unit: "s", Better: record.Lower,
			Help: "median time from the end of a fault until a poll reported new verified bytes; not for changes of " +
				"rate"},
		{Key: "recovered", Name: "recovered leechers", Unit: "ratio", Better: record.Higher,
			Help: "leechers that recovered over those affected by a fault that ended, unfinished then"},
		{Key: "system_cpu", Name: "system's CPU", Unit: "s", Better: record.Lower,
			Help: "CPU seconds of all nodes, from the release to the end of the load"},
		{Key: "system_cpu_per_gb", Name: "system's CPU per GB", Unit: "s/GB", Better: record.Lower,
			Help: "the same per 10^9 verified content bytes"},
		{Key: "node_rss_peak", Name: "memory of the largest node", Unit: "B", Better: record.Lower,
			Help: "largest resident set of a node's processes"},
	}, nodes.MachineMetrics()...)
}

// lifetime is how long a leecher took until a moment of it; 0: it did not come.
// One that failed never would have come to it, and is slower than any; one that
// the experiment cut off is only known to have taken longer than it was watched.
func lifetime(op record.Op, moment int64) stats.Lifetime {
	since := func(at int64) float64 { return float64(at-op.Intended) / 1e9 }
	switch {
	case moment > 0:
		return stats.Lifetime{Time: since(moment), Happened: true}
	case op.Outcome.ServerFailure():
		return stats.Lifetime{Time: math.Inf(1)}
	}
	return stats.Lifetime{Time: since(op.LastByte)}
}

// hadAll is when an operation had all; 0: never.
func hadAll(op record.Op) int64 {
	if op.Outcome != record.OK {
		return 0
	}
	return op.LastByte
}

// leecherOp is what became of a leecher: its operation until all was verified, and the
// same until all was on disk.
type leecherOp struct {
	place       int
	fetch, disk record.Op
}

// leecherOps are those of the leechers, in the order of the nodes.
func leecherOps(in *scenario.Measured) (all []leecherOp) {
	at, outcomes := in.EachDetail(record.DetailOnDisk), in.EachDetail(record.DetailDiskOutcome)
	for op := range scenario.Stream(in.Ops) {
		o := leecherOp{int(op.Worker), op, op}
		if o.place < len(at) && o.place < len(outcomes) {
			o.disk.LastByte, o.disk.Outcome = int64(math.Round(at[o.place]*1e9)), record.Outcome(outcomes[o.place])
		}
		all = append(all, o)
	}
	slices.SortStableFunc(all, func(a, b leecherOp) int { return a.place - b.place })
	return all
}

// swarmTimes are the metrics that follow from what became of the leechers.
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
			continue // the experiment's own doing
		}
		all++
		if f.Outcome == record.OK {
			ok++
			last = max(last, took(f))
		}
		if d.Outcome == record.OK {
			diskLast = max(diskLast, took(d))
		} else {
			diskLast = math.NaN()
		}
	}
	if ok == all && all > 0 {
		put("time_last", last)
		put("disk_last", diskLast)
	}
	if finished > 0 {
		put("ok_rate", float64(ok)/float64(finished))
	}
	put("time_median", stats.ProductLimit(fetch, 0.5))
	put("time_p25", stats.ProductLimit(fetch, 0.25))
	put("time_p75", stats.ProductLimit(fetch, 0.75))
	for speed, of := range map[string]string{"speed_median": "time_median", "speed_p25": "time_p75",
		"speed_p75": "time_p25"} {
		if at := m[of]; at > 0 {
			put(speed, float64(ops[0].fetch.Length)/at)
		}
	}
	put("disk_median", stats.ProductLimit(disk, 0.5))
	put("first_byte", stats.ProductLimit(first, 0.5))
}

// TimesOf are the metrics that follow from the operations of leechers alone, where
// nothing says when they had all on disk.
func TimesOf(ops []record.Op) map[string]float64 {
	m, all := map[string]float64{}, make([]leecherOp, len(ops))
	for i, op := range ops {
		all[i] = leecherOp{int(op.Worker), op, record.Op{Outcome: record.InFlight}}
	}
	swarmTimes(all, m, scenario.Numbers(m))
	return m
}

// swarmPolls are the metrics of how the leechers were asked.
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

// swarmLines are the load lines, corrected by what was measured of a path before the
// trial, which is taken to hold for all paths, and the shares of the times in them.
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
	for _, l := range []struct {
		key, share, of string
		leechers       int
	}{{"line", "line_share", "time_last", d.Leechers()}, {"line_median", "line_median_share", "time_median",
		MedianLeecher(d.Leechers())}} {
		line := in.Cell.LoadLineOf(l.leechers, payload) / factor
		if line <= 0 {
			continue
		}
		put(l.key, line)
		if took := m[l.of]; took > 0 {
			put(l.share, line/took)
		}
	}
	if line := m["line_median"]; line > 0 {
		put("speed_line", float64(in.Cell.Data.Size)/line)
	}
}

// MedianLeecher is how many of n leechers have come to the median: those that have the content
// when the product-limit estimate first falls to one half.
func MedianLeecher(n int) int { return (n + 1) / 2 }

// swarmTraffic are the metrics of what crossed the nodes' links.
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
			continue // it took no part
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
	if content > 0 {
		put("overhead", received/content)
	}
	if sent > 0 {
		put("seeder_share", seeders/sent)
	}
	if of > 0 {
		put("duplicates", useful/of)
	}
}

// swarmRecovery are the metrics of faults that were undone.
func swarmRecovery(in *scenario.Measured, put func(string, float64)) {
	if outages := in.EachDetail(record.DetailOutage); len(outages) > 0 {
		put("outage", slices.Max(outages))
	}
	held := in.EachDetail(record.DetailRecovery)
	after := slices.DeleteFunc(slices.Clone(held), math.IsNaN)
	if len(held) > 0 {
		put("recovered", float64(len(after))/float64(len(held)))
	}
	if len(after) > 0 {
		put("recovery", stats.Median(after))
	}
}
