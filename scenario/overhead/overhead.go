package overhead

import (
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

// Metrics of a trial.
func (Scenario) Metrics() []record.Metric {
	return []record.Metric{
		{Key: "success_rate", Name: "success rate", Unit: "ratio", Better: record.Higher,
			Help: "ok operations over ok and failed ones; deadline and cancelled count in neither"},
		{Key: "duration_p50", Name: "time of an operation, median", Unit: "s", Better: record.Lower,
			Help: "from call to return; cut-off operations are censored (Kaplan-Meier), failed ones left out; fill: " +
				"put_p50"},
		{Key: "first_byte_p50", Name: "time to first byte, median", Unit: "s", Better: record.Lower,
			Help: "likewise to the first byte of the object; get and range"},
		{Key: "line", Name: "load line", Unit: "s", Better: record.Neither,
			Help: "least time: round trips (one, fresh two, TLS three) and bytes (of a write times the expansion) " +
				"at the link's rate; only if the object crossed the link"},
		{Key: "line_share", Name: "share of the load line", Unit: "ratio", Better: record.Higher,
			Help: "load line over the median time"},
		{Key: "first_byte_line", Name: "load line of the first byte", Unit: "s", Better: record.Neither,
			Help: "the round trips alone; get and range"},
		{Key: "first_byte_line_share", Name: "first byte, the load line's share", Unit: "ratio", Better: record.Higher,
			Help: "load line of the first byte over its median"},
		{Key: "throughput", Name: "throughput of one operation", Unit: "B/s", Better: record.Higher,
			Help: "file bytes of an operation over its median time; not of stat and delete"},
		{Key: "ops_rate", Name: "operations per second", Unit: "1/s", Better: record.Higher,
			Help: "ok operations per second under way"},
		{Key: "wire_bytes", Name: "bytes on the wire", Unit: "B", Better: record.Lower,
			Help: "mean bytes on the client's interface per operation, headers and failed ones included; emulated " +
				"links, not of fill"},
		{Key: "absolute_per_op", Name: "absolute bytes", Unit: "B", Better: record.Lower,
			Help: "bytes added on storage nodes, with padding, metadata and redundancy, per object; trials without " +
				"a failure"},
		{Key: "expansion", Name: "expansion", Unit: "×", Better: record.Lower,
			Help: "absolute bytes over file bytes"},
		{Key: "disk_per_byte", Name: "disk space per file byte", Unit: "×", Better: record.Lower,
			Help: "disk blocks added on storage nodes, directories included, over file bytes"},
		{Key: "entries_per_object", Name: "directory entries per object", Unit: "1", Better: record.Lower,
			Help: "directory entries added on storage nodes per object"},
		{Key: "inodes_per_object", Name: "inodes per object", Unit: "1", Better: record.Lower,
			Help: "files and directories added on storage nodes per object"},
		{Key: "stored_objects", Name: "objects stored", Unit: "1", Better: record.Neither,
			Help: "our objects at mid-trial, since the system was last set up; fill"},
		{Key: "put_p50", Name: "time to store an object, median", Unit: "s", Better: record.Lower,
			Help: "as duration, of puts; fill"},
		{Key: "get_p50", Name: "time to fetch an object, median", Unit: "s", Better: record.Lower,
			Help: "likewise of gets, cold where possible; fill"},
		{Key: "stat_p50", Name: "time to ask about an object, median", Unit: "s", Better: record.Lower,
			Help: "likewise of stats, cold where possible; fill"},
		{Key: "generator_cpu_per_op", Name: "generator's CPU per operation", Unit: "s", Better: record.Neither,
			Help: "CPU seconds of this program per timed operation"},
		{Key: "system_cpu_per_op", Name: "system's CPU per operation", Unit: "s", Better: record.Lower,
			Help: "CPU seconds of the system during the whole trial, untimed work included, per timed operation"},
		{Key: "system_rss_peak", Name: "system's memory, peak", Unit: "B", Better: record.Lower,
			Help: "largest sum of the resident sets of the system's processes"},
		scenario.OthersBusy(),
		scenario.BoxCPU(), scenario.EmulatorThread(), scenario.BusiestCPU(), scenario.IOPressure(),
	}
}

// needs are the abilities that an operation asks of a node, beside being able to
// place objects there.
func needs(c experiment.Cell) []string {
	var can []string
	switch c.Overhead.Operation {
	case "put", "fill":
		can = []string{"put"}
	case "put-durable":
		can = []string{"put", "durable"}
	case "put-dir":
		can = []string{"directory"}
	case "range", "stat", "update", "delete":
		can = []string{c.Overhead.Operation}
	}
	return can
}

// Problems implements Scenario.
func (Scenario) Problems(use experiment.SystemUse, info system.Info, cells []experiment.Cell) []system.Problem {
	return unfit(use, info.Can, info.Fresh, cells)
}

// unfit says why cells cannot be executed on a system with these abilities.
// alwaysFresh: each of its operations connects anew.
func unfit(use experiment.SystemUse, can []string, alwaysFresh bool, cells []experiment.Cell) []system.Problem {
	var problems []system.Problem
	said := map[string]bool{}
	say := func(what, hint string) {
		if !said[what] {
			said[what] = true
			problems = append(problems, system.Problem{What: what, Hint: hint})
		}
	}
	leaveOut := func(where string) string {
		return fmt.Sprintf("leave these cells out: where: [\"system != %s || %s\"]", use.Name, where)
	}
	for _, c := range cells {
		if c.Data.Size == 0 {
			say("the scenario overhead measures objects that it stores, and may not write to this system",
				"say allow: [write] if it may")
			return problems
		}
		if !slices.Contains(can, "put") {
			say("objects cannot be stored in it, which the scenario overhead needs", "take it out of the experiment")
			return problems
		}
		for _, ability := range needs(c) {
			if !slices.Contains(can, ability) {
				say(fmt.Sprintf("it cannot do the operation %s (it has no ability %q; it can: %s)",
					c.Overhead.Operation, ability,
					strings.Join(can, ", ")),
					leaveOut("overhead.operation != "+c.Overhead.Operation))
			}
		}
		if c.Overhead.Connections == "fresh" && !slices.Contains(can, "fresh") {
			say(`it cannot be made to connect anew, which connections: fresh needs (it has no ability "fresh")`,
				leaveOut("overhead.connections != fresh"))
		}
		if c.Overhead.Connections == "keep" && alwaysFresh {
			say("each of its operations connects anew, so there is nothing that connections: keep could keep",
				fmt.Sprintf("under systems, write {use: %s, override: {connections: fresh}} in place of %s or, "+
					"where both are measured, %s",
					use.Use, use.Name, leaveOut("overhead.connections != keep")))
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
	memoryMetrics(&in, put)
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
