package disseminate

import (
	"context"
	_ "embed"
	"fmt"
	"math"
	"slices"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/nodes"
	"github.com/plimsoll-project/plimsoll/stats"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// Scenario spreads content from the seeders of a swarm to its leechers. It follows the study of
// Codex against Deluge of 2024 (all leechers start together, and are timed in one place), and
// extends it to leechers that arrive and leave, and to faults.
type Scenario struct{}

func (Scenario) Name() string { return "disseminate" }

// Problems implements Scenario.
func (Scenario) Problems(use experiment.SystemUse, info system.Info, cells []experiment.Cell) []system.Problem {
	needs := []scenario.Need{{Ability: "spread", By: "the scenario disseminate",
		Hint: "take it out of the experiment, or choose the option of it that makes a swarm"}}
	for _, c := range cells {
		if c.Disseminate.Fresh {
			needs = append(needs, scenario.Need{Ability: "restart", By: "disseminate.fresh",
				Hint: "say fresh: false: only what the trial before has left is removed then"})
		}
		for _, f := range c.Disseminate.Faults {
			if f.Kind() == experiment.FaultCrash {
				needs = append(needs, scenario.Need{Ability: "restart", By: "a fault of the kind crash",
					Hint: fmt.Sprintf("leave these cells out: add to where: \"system != %s || disseminate.faults == none\"",
						use.Name)})
			}
		}
	}
	return scenario.Unmet(info.Can, needs)
}

// Prepares implements Scenario. Nothing is stored before the trials, but the largest of them
// needs room for the content on each of its nodes.
func (Scenario) Prepares(cells []experiment.Cell) (objects, bytes int64) {
	for _, c := range cells {
		n := int64(c.Disseminate.Nodes)
		if all := n * int64(c.Data.Size); all > bytes {
			objects, bytes = n, all
		}
	}
	return objects, bytes
}

// Prepare implements Scenario.
func (Scenario) Prepare(_ context.Context, site scenario.Site, _ []experiment.Cell) (scenario.Runner, error) {
	return &runner{site, nodes.NodesOf(site)}, nil
}

// Measure computes the metrics of a trial; Metrics defines them.
func (Scenario) Measure(in scenario.Measured) map[string]float64 {
	m := map[string]float64{}
	put := scenario.Numbers(m)
	ops := leecherOps(&in)
	swarmTimes(ops, m, put)
	swarmPolls(&in, put)
	swarmTraffic(&in, ops, put)
	swarmRecovery(&in, put)
	swarmLines(&in, m, put)
	cpu, peak, verified := 0.0, 0.0, 0.0
	for _, n := range in.Usage.Nodes[:min(in.Cell.Disseminate.Nodes, len(in.Usage.Nodes))] {
		cpu, peak = cpu+n.CPU, max(peak, n.RSSPeak)
	}
	for _, op := range ops {
		verified += float64(op.Bytes)
	}
	if len(in.Usage.Nodes) > 0 {
		put("system_cpu", cpu)
		put("system_cpu_per_gb", cpu/(verified/1e9)) // infinite, and so omitted, if nothing was verified
		put("node_rss_peak", peak)
	}
	scenario.PutMachine(&in, put)
	return m
}

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
	half := (d.Leechers() + 1) / 2 // when the product-limit estimate first falls to one half
	scenario.PutLine(m, "line_median", in.Cell.LoadLine(half, payload)/factor, "time_median")
	put("speed_line", float64(in.Cell.Data.Size)/m["line_median"])
}

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
	never := slices.Repeat([]float64{math.Inf(1)}, len(held)-len(after))
	put("recovery", stats.Median(append(after, never...)))
}
