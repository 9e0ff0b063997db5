package experiment

import (
	"fmt"
	"slices"
)

// Overhead is the section of the scenario overhead. The size of the objects is
// data.size, the round trip twice link.delay.
type Overhead struct {
	Operation   string   `json:"operation,omitempty" default:"put" enum:"put,put-durable,put-dir,get,range,stat,update,delete,fill" label:"operation" doc:"What is timed: store an object until it is accepted (put) or until it has its full redundancy (put-durable), store it and enter it into a directory (put-dir), fetch an object (get) or data.size bytes of a larger one (range), ask the servers about it (stat), replace the content of a mutable one (update), remove it (delete); or add many objects, then fetch some of them and ask about some (fill). What get, range and stat read are data.objects objects, at least one for each operation under way."`
	Connections string   `json:"connections" default:"keep" enum:"keep,fresh" label:"connections" doc:"Keep connections open between operations, which one untimed operation has opened before, or begin each operation with fresh ones."`
	Concurrency int      `json:"concurrency,omitempty" default:"1" min:"1" max:"1000" label:"concurrency" doc:"Operations under way at once. Times are fitted for 1 only; more show what memory several take."`
	Count       int      `json:"count" default:"5" min:"1" max:"100000" doc:"Operations of a trial, at most, for each of those under way at once; with fill, those that fetch and those that ask."`
	Time        Duration `json:"time" default:"10s" min:"1ms" doc:"No operation begins once a trial has taken this long; there is always one. It does not bound how long fill adds objects."`
	Longest     Duration `json:"longest" default:"1m" min:"1ms" doc:"A cell is skipped when one operation would take longer: by the plan's estimate, which leaves it out of the plan, or because in two trials, with none below it in between, it or a smaller size over the same link has done so (fill is never skipped for that). Plan and report list what was skipped."`
	RangeOf     Bytes    `json:"range_of" default:"16MiB" min:"1B" doc:"Size of the object that operation range reads from, each time at another place."`
	Objects     int      `json:"objects" default:"1000" min:"1" max:"1000000" doc:"Objects that a trial of operation fill adds to those that are there. They stay, so each block finds more."`
}

// Writes reports whether an operation sends a file's bytes to storage nodes.
func Writes(operation string) bool {
	return slices.Contains([]string{"put", "put-durable", "put-dir", "update"}, operation)
}

// checkOverhead refuses cells that cannot be executed.
func (c *combination) checkOverhead(cell *Cell, o *Overhead) *cellError {
	switch {
	case o.Operation == "range" && cell.Data.Size > o.RangeOf:
		hint := fmt.Sprintf("make overhead.range_of larger, or leave the cell out with `where: [\"overhead.operation != range || data.size <= %s\"]`", o.RangeOf)
		return c.impossible(dataSizePath, hint, "a range of %s does not fit into an object of %s", cell.Data.Size, o.RangeOf)
	case o.Connections == "fresh" && o.Concurrency > 1:
		return c.impossible("overhead.connections", "leave the cell out with `where: [\"overhead.concurrency == 1 || overhead.connections == keep\"]`",
			"with several operations under way, none of them can be given connections of its own")
	}
	return nil
}
