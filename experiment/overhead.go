package experiment

import (
	"math"
	"slices"
)

// Overhead is the section of the scenario overhead. The size of the objects is data.size, the round
// trip twice link.delay.
type Overhead struct {
	// What is timed. put: store until accepted; put-durable: until fully redundant; put-dir: store and enter into a
	// directory; get; range: data.size bytes of a larger object; stat; update: replace a mutable object; delete;
	// fill: add many objects, then fetch and stat some.
	Operation string `json:"operation,omitempty" default:"put" enum:"put,put-durable,put-dir,get,range,stat,update,delete,fill" label:"operation"`
	// Keep connections (opened by an untimed operation), or use fresh ones for each operation.
	Connections string `json:"connections" default:"keep" enum:"keep,fresh" label:"connections"`
	// Operations at once. Costs are fitted for 1 only; higher values show memory.
	Concurrency int `json:"concurrency,omitempty" default:"1" min:"1" max:"1000" label:"concurrency"`
	// Operations of a trial at most, per concurrent one; in fill, of those that fetch and those that stat.
	Count int `json:"count" default:"5" min:"1" max:"100000"`
	// No operation begins after this time in a trial; one always runs. Does not bound the adding of fill.
	Time Duration `json:"time" default:"10s" min:"1ms"`
	// Size of the object that range reads from.
	RangeOf Bytes `json:"range_of" default:"16MiB" min:"1B"`
	// Objects that each trial of fill adds. They stay, so each block finds more.
	Objects int `json:"objects" default:"1000" min:"1" max:"1000000"`
}

// Writes reports whether an operation sends a file's bytes to storage nodes.
func Writes(operation string) bool {
	return slices.Contains([]string{"put", "put-durable", "put-dir", "update"}, operation)
}

// checkOverhead returns an error for a cell that cannot be executed.
func (c *combination) checkOverhead(cell *Cell, o *Overhead) *Error {
	switch {
	case o.Operation == "range" && cell.Data.Size > o.RangeOf:
		return c.impossible(dataSizePath, "make overhead.range_of larger",
			"the range does not fit into an object of %s", o.RangeOf)
	case o.Connections == "fresh" && o.Concurrency > 1:
		return c.impossible("overhead.connections", "fresh connections need concurrency 1",
			"no operation of several at once can have connections of its own")
	}
	return nil
}

// Assumptions of the estimate of an operation, besides the link. They are rough, and rather too
// high than too low.
const (
	// guessedTrips is the number of sequential round trips of an operation: the nine that the study
	// found for a small file on Tahoe-LAFS, and one more. Baselines take one or two.
	guessedTrips = 10
	// freshTrips are the round trips for new connections: TCP and TLS, and TCP's slow start.
	freshTrips = 4
	// guessedWork is the time that client and servers work for an operation, in seconds.
	guessedWork = 0.02
)

// estimateOverhead estimates the time and the file bytes of one trial: as many operations as
// `count` and `time` allow, each with guessedTrips round trips and its bytes at the link's rate,
// shared among concurrent operations; if connections are kept, one more operation opens them.
func estimateOverhead(c *Cell, goodput float64, limits Limits) CellEstimate {
	o := c.Overhead
	n := float64(c.Data.Size)
	if o.Operation == "stat" || o.Operation == "delete" {
		n = 0
	}
	trips := float64(guessedTrips)
	if o.Connections == "fresh" {
		trips += freshTrips
	}
	workers := float64(o.Concurrency)
	est := CellEstimate{Operation: c.operation(workers, trips, guessedWork, n, goodput)}
	took := math.Min(est.Operation, limits.Deadline.Seconds())
	each := math.Min(float64(o.Count), math.Max(1, math.Ceil(o.Time.Seconds()/took)))
	if o.Operation == "fill" {
		added := math.Ceil(float64(o.Objects) / workers)
		est.Seconds = (added + 2*each) * took
		est.Bytes = (float64(o.Objects) + workers*each) * n
		return est
	}
	if o.Connections == "keep" {
		each++
	}
	est.Seconds = each * took
	est.Bytes = workers * each * n
	return est
}
