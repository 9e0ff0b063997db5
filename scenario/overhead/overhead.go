package overhead

import (
	"cmp"
	_ "embed"
	"fmt"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
)

// Scenario measures the cost of an object beyond the transfer of its bytes. It follows
// Tahoe-LAFS's performance notes: one operation after the other, over a ladder of sizes and
// round trips, so that the time can be split into a constant, a number of round trips, and a
// time per byte.
type Scenario struct{}

func (Scenario) Name() string { return "overhead" }

//go:embed metrics.txt
var definitions string

// Metrics implements Scenario.
func (Scenario) Metrics() []record.Metric {
	return append(scenario.Definitions(definitions, "overhead"), scenario.Machine()...)
}

// abilities maps operations to the required ability of a node if its name differs.
var abilities = map[string]string{"fill": "put", "put-durable": "durable", "put-dir": "directory", "get": "put"}

// Problems implements Scenario.
func (Scenario) Problems(use experiment.SystemUse, info system.Info, cells []experiment.Cell) []system.Problem {
	leaveOut := func(where string) string {
		return fmt.Sprintf("leave these cells out: where: [\"system != %s || %s\"]", use.Name, where)
	}
	needs := []scenario.Need{{Ability: "put", By: "the scenario overhead", Hint: "take it out of the experiment"}}
	kept := false
	for _, c := range cells {
		o := c.Overhead
		if c.Data.Size == 0 {
			return []system.Problem{{What: "the scenario overhead measures objects that it stores, and may not write " +
				"to this system", Hint: "say allow: [write] if it may"}}
		}
		needs = append(needs, scenario.Need{Ability: cmp.Or(abilities[o.Operation], o.Operation),
			By: "the operation " + o.Operation, Hint: leaveOut("overhead.operation != " + o.Operation)})
		if o.Connections == "fresh" {
			needs = append(needs, scenario.Need{Ability: "fresh", By: "connections: fresh",
				Hint: leaveOut("overhead.connections != fresh")})
		}
		kept = kept || o.Connections == "keep"
	}
	problems := scenario.Unmet(info.Can, needs)
	if kept && info.Fresh {
		problems = append(problems, system.Problem{
			What: "each of its operations connects anew, so there is nothing that connections: keep could keep",
			Hint: fmt.Sprintf("under systems, write {use: %s, override: {connections: fresh}} in place of %s or, where "+
				"both are measured, %s", use.Use, use.Name, leaveOut("overhead.connections != keep"))})
	}
	return problems
}

// Measure computes the metrics of a trial; Metrics defines them.
func (Scenario) Measure(in scenario.Measured) map[string]float64 {
	m := map[string]float64{}
	put := scenario.Numbers(m)
	s, o := in.Summary, in.Cell.Overhead
	c := s.Counts()
	operationMetrics(&in, put)
	storedMetrics(&in, put)
	put("success_rate", float64(c.Outcomes[record.OK])/float64(c.Finished())) // without operations there is no rate
	switch {
	case o.Operation == "fill": // has several kinds of operations in one trial
		if v, ok := m["put_p50"]; ok {
			put("duration_p50", v)
		}
	case s.Count(record.Duration) > 0:
		put("duration_p50", s.KaplanMeier(record.Duration, 0.5))
		put("first_byte_p50", s.KaplanMeier(record.TTFB, 0.5))
	}
	if d := m["duration_p50"]; d > 0 && o.Operation != "stat" && o.Operation != "delete" {
		put("throughput", float64(in.Cell.Data.Size)/d)
	}
	loadLines(in, m)
	put("generator_cpu_per_op", in.Load.CPU/float64(c.Ops))
	put("system_cpu_per_op", in.Usage.SystemCPU/float64(c.Ops))
	put("system_rss_peak", in.Usage.SystemRSSPeak)
	scenario.PutMachine(&in, put)
	return m
}

// leastWire is the least number of bytes, beyond the object's, that an operation puts on the
// link if it crosses it: frames of a request and its answer, with the protocol's content. Less
// is noise of idle connections.
const leastWire = 200

// loadLines adds the load lines of a trial whose operations cross the link. They do not include
// slow start, since a system may spread an object over connections to many servers, each with
// its own window.
func loadLines(in scenario.Measured, m map[string]float64) {
	p, ok := scenario.PathOf(in.Link)
	wire, counted := m["wire_bytes"]
	if !ok || !counted {
		return
	}
	o := in.Cell.Overhead
	size := 0.0
	if o.Operation != "stat" && o.Operation != "delete" {
		size = float64(in.Cell.Data.Size)
	}
	if wire < size+leastWire {
		return // answered on this side of the link, or accepted before crossing it
	}
	// Redundancy that servers make among themselves does not cross the client's link.
	moved := size
	if x := m["expansion"] * size; x > size && wire >= x {
		moved = x
	}
	first := p.Wait(scenario.Request{Fresh: o.Connections == "fresh", TLS: in.TLS})
	if m["duration_p50"] > 0 {
		scenario.PutLine(m, "line", first+moved/p.Rate, "duration_p50")
	}
	if m["first_byte_p50"] > 0 {
		scenario.PutLine(m, "first_byte_line", first, "first_byte_p50")
	}
}
