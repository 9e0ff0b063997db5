package experiment

import (
	"slices"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// leastWork is what storing an object takes at least beside link and round trip,
// in seconds: less than any system needs that keeps it.
const leastWork = 0.001

// estimateUpload is the least that storing the data set can take: all its bytes
// at the link's rate, or a round trip and leastWork for each object by as many at
// a time. What a system takes beyond that is what the test is to find out.
func estimateUpload(c *Cell, goodput float64) CellEstimate {
	if !c.Data.Known() {
		return CellEstimate{Bound: Unknown}
	}
	objects, bytes := c.Data.Total()
	if objects == 0 {
		return CellEstimate{Bound: Unknown}
	}
	workers := float64(c.Upload.Concurrency)
	est := c.operation(workers, 1, leastWork, bytes/objects, goodput)
	est.Seconds, est.Bytes, est.Bound = objects/workers*est.Operation, bytes, AtLeast
	return est
}

// estimateCollect is how long the polls go on.
func estimateCollect(c *Collect) CellEstimate {
	if c.For == 0 {
		return CellEstimate{Limit: "schedule", Bound: Open}
	}
	return CellEstimate{Seconds: c.For.Seconds(), Limit: "schedule"}
}

// boundOf is that of a whole plan: of its least certain trial.
func boundOf(cells []Cell) Bound {
	for _, b := range []Bound{Open, Unknown, AtLeast} {
		if slices.ContainsFunc(cells, func(c Cell) bool { return c.Estimate.Bound == b }) {
			return b
		}
	}
	return Exact
}

// text is the time and the bytes of an estimate, for people.
func (b Bound) text(seconds, bytes float64) (took, moved string) {
	took, moved = words.Span(seconds), words.Bytes(bytes)
	switch b {
	case AtLeast:
		took = "at least " + took
	case Unknown:
		took, moved = "unknown", "unknown"
	case Open:
		took = "until it ends"
	}
	return took, moved
}

// EstimateText is the estimate in words: "2.7 s and 151 MB of file bytes", "at
// least 3 h 03 min and …", or why there is none.
func (p *Plan) EstimateText() string {
	e := &p.Experiment
	took, moved := p.Estimate.Bound.text(p.Estimate.Seconds, p.Estimate.Bytes)
	switch {
	case p.Estimate.Bound == Unknown:
		return "unknown: the data set is read when the run begins"
	case p.Estimate.Bound == Open:
		return "goes on until it is interrupted or an exit condition fires"
	case p.Estimate.Bytes == 0:
		return took
	case e.Sync != nil:
		return took + " and " + moved + " of chain bytes"
	}
	return took + " and " + moved + " of file bytes"
}
