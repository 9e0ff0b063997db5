package experiment

import "slices"

// Overhead is the section of the scenario overhead. The size of the objects is
// data.size, the round trip twice link.delay.
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
	// Skip a cell when, by estimate, one operation takes longer. Plan and report list skipped cells.
	Longest Duration `json:"longest" default:"1m" min:"1ms"`
	// Size of the object that range reads from.
	RangeOf Bytes `json:"range_of" default:"16MiB" min:"1B"`
	// Objects that each trial of fill adds. They stay, so each block finds more.
	Objects int `json:"objects" default:"1000" min:"1" max:"1000000"`
}

// Writes reports whether an operation sends a file's bytes to storage nodes.
func Writes(operation string) bool {
	return slices.Contains([]string{"put", "put-durable", "put-dir", "update"}, operation)
}

// checkOverhead refuses cells that cannot be executed.
func (c *combination) checkOverhead(cell *Cell, o *Overhead) *Error {
	switch {
	case o.Operation == "range" && cell.Data.Size > o.RangeOf:
		return c.impossible(dataSizePath, "make overhead.range_of larger",
			"a range of %s does not fit into an object of %s", cell.Data.Size, o.RangeOf)
	case o.Connections == "fresh" && o.Concurrency > 1:
		return c.impossible("overhead.connections", "fresh connections need concurrency 1",
			"with several operations under way, none of them can be given connections of its own")
	}
	return nil
}
