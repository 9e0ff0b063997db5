package experiment

// Overhead is the section of the scenario overhead. The size of the objects is
// data.size, the round trip that of link.delay.
type Overhead struct {
	Operation   Axis[string] `json:"operation,omitempty" default:"put" enum:"put,put-durable,put-dir,get,range,stat,update,delete,fill" label:"operation" doc:"What is timed: store an object until it is accepted (put) or until it has its full redundancy (put-durable), store it and enter it into a directory (put-dir), fetch an object (get) or data.size bytes of a larger one (range), ask the servers about it (stat), replace the content of a mutable one (update), remove it (delete); or add many objects, then ask for some of them (fill)."`
	Connections Axis[string] `json:"connections" default:"keep" enum:"keep,fresh" label:"connections" doc:"Keep connections open between operations, or begin each operation with fresh ones."`
	Concurrency Axis[int]    `json:"concurrency,omitempty" default:"1" min:"1" max:"1000" label:"concurrency" doc:"Operations under way at once. Times are fitted for 1 only; more show what memory several take."`
	Count       int          `json:"count" default:"5" min:"1" max:"100000" doc:"Operations of a trial, at most, for each of those under way at once."`
	Time        Duration     `json:"time" default:"10s" min:"1ms" doc:"No operation begins once a trial has taken this long; there is always one."`
	Longest     Duration     `json:"longest" default:"1m" min:"1ms" doc:"A cell is skipped when one operation would take longer: by the plan's estimate, or because it or a smaller size has done so already. The report lists what was skipped."`
	RangeOf     Bytes        `json:"range_of" default:"16MiB" min:"1B" doc:"Size of the object that operation range reads from."`
	Objects     int          `json:"objects" default:"1000" min:"1" max:"1000000" doc:"Objects that a trial of operation fill adds to those that are there."`
}

// checkOverhead refuses cells that cannot be executed.
func (c *combination) checkOverhead(cell *Cell, o *ResolvedOverhead) *cellError {
	if o.Operation == "range" && cell.Data.Size > o.RangeOf {
		return c.fault(dataSizePath, "impossible cell ("+c.name()+"): a range of "+cell.Data.Size.String()+" does not fit into an object of "+o.RangeOf.String(),
			"make overhead.range_of larger")
	}
	return nil
}
