package overhead

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
)

// Scenario asks what an object costs before its bytes count. It follows
// Tahoe-LAFS's performance notes: one operation after the other, over a ladder of
// sizes and of round trips, so that the time can be split into a constant,
// so many round trips, and so much for each byte.
type Scenario struct{}

func (Scenario) Name() string { return "overhead" }

//go:embed metrics.txt
var definitions string

// Metrics of a trial.
func (Scenario) Metrics() []record.Metric {
	return append(scenario.Definitions(definitions)["overhead"],
		scenario.Machine("others_busy", "box_cpu", "emulator_thread", "busiest_cpu", "io_pressure")...)
}

// needs are the abilities that an operation asks of a node, beside being able to
// place objects there.
func needs(c experiment.Cell) []string {
	switch o := c.Overhead.Operation; o {
	case "put", "fill":
		return []string{"put"}
	case "put-durable":
		return []string{"put", "durable"}
	case "put-dir":
		return []string{"directory"}
	case "range", "stat", "update", "delete":
		return []string{o}
	}
	return nil
}

// Problems implements Scenario.
func (Scenario) Problems(use experiment.SystemUse, info system.Info, cells []experiment.Cell) []system.Problem {
	return unfit(use, info.Can, info.Fresh, cells)
}

// unfit says why cells cannot be executed on a system with these abilities.
// alwaysFresh: each of its operations connects anew.
func unfit(use experiment.SystemUse, can []string, alwaysFresh bool, cells []experiment.Cell) []system.Problem {
	var problems []system.Problem
	say := func(what, hint string) []system.Problem {
		if !slices.ContainsFunc(problems, func(p system.Problem) bool { return p.What == what }) {
			problems = append(problems, system.Problem{What: what, Hint: hint})
		}
		return problems
	}
	leaveOut := func(where string) string {
		return fmt.Sprintf("leave these cells out: where: [\"system != %s || %s\"]", use.Name, where)
	}
	for _, c := range cells {
		o := c.Overhead
		if c.Data.Size == 0 {
			return say("the scenario overhead measures objects that it stores, and may not write to this system",
				"say allow: [write] if it may")
		}
		if !slices.Contains(can, "put") {
			return say("objects cannot be stored in it, which the scenario overhead needs",
				"take it out of the experiment")
		}
		for _, ability := range needs(c) {
			if !slices.Contains(can, ability) {
				say(fmt.Sprintf("it cannot do the operation %s (it has no ability %q; it can: %s)", o.Operation, ability,
					strings.Join(can, ", ")), leaveOut("overhead.operation != "+o.Operation))
			}
		}
		if o.Connections == "fresh" && !slices.Contains(can, "fresh") {
			say(`it cannot be made to connect anew, which connections: fresh needs (it has no ability "fresh")`,
				leaveOut("overhead.connections != fresh"))
		}
		if o.Connections == "keep" && alwaysFresh {
			say("each of its operations connects anew, so there is nothing that connections: keep could keep",
				fmt.Sprintf("under systems, write {use: %s, override: {connections: fresh}} in place of %s or, where "+
					"both are measured, %s", use.Use, use.Name, leaveOut("overhead.connections != keep")))
		}
	}
	return problems
}

// Measure computes a trial's metrics; see Metrics for their definitions.
func (Scenario) Measure(in scenario.Measured) map[string]float64 {
	m := map[string]float64{}
	put := scenario.Numbers(m)
	s, o := in.Summary, in.Cell.Overhead
	c := s.Counts()
	operationMetrics(&in, put)
	storedMetrics(&in, put)
	if finished := c.Finished(); finished > 0 {
		put("success_rate", float64(c.Outcomes[record.OK])/float64(finished))
	}
	switch {
	case o.Operation == "fill": // several kinds of operations in one trial
		if v, ok := m["put_p50"]; ok {
			put("duration_p50", v)
		}
	case s.Count(record.Duration) > 0:
		put("duration_p50", s.KaplanMeier(record.Duration, 0.5))
		if s.Count(record.TTFB) > 0 {
			put("first_byte_p50", s.KaplanMeier(record.TTFB, 0.5))
		}
	}
	if d := m["duration_p50"]; d > 0 && o.Operation != "stat" && o.Operation != "delete" {
		put("throughput", float64(in.Cell.Data.Size)/d)
	}
	loadLines(in, m, put)
	if c.Ops > 0 {
		put("generator_cpu_per_op", in.Load.CPU/float64(c.Ops))
		put("system_cpu_per_op", in.Usage.SystemCPU/float64(c.Ops))
	}
	scenario.PutUsage(in.Usage, put)
	return m
}

// leastWire is the least of bytes, beyond those of the object, that an operation
// which crosses the link puts on it: frames of a request and its answer, and what
// a protocol says in them. Less is the noise of connections that stay open.
const leastWire = 200

// loadLines are the load lines of a trial, of operations that cross the link.
// Slow start is not in them: a system may spread an object over connections to many
// servers, each with a window of its own.
func loadLines(in scenario.Measured, m map[string]float64, put func(string, float64)) {
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
		return // it is answered on this side of the link, or accepted before it crosses
	}
	// Redundancy that servers make among themselves does not cross the client's link.
	moved := size
	if x := m["expansion"] * size; x > size && wire >= x {
		moved = x
	}
	q := scenario.Request{Fresh: o.Connections == "fresh", TLS: in.TLS}
	first := p.Wait(q)
	add := func(key, share string, line float64, of string) {
		if took := m[of]; line > 0 && took > 0 {
			put(key, line)
			put(share, line/took)
		}
	}
	add("line", "line_share", first+moved/p.Rate, "duration_p50")
	add("first_byte_line", "first_byte_line_share", first, "first_byte_p50")
}
