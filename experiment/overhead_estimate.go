package experiment

import (
	"fmt"
	"math"
	"slices"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// What the estimate of an operation assumes beside the link: rough, and rather
// too much than too little.
const (
	// guessedTrips are the sequential round trips of an operation: the study's
	// nine for a small file on Tahoe-LAFS, and one. Baselines take one or two.
	guessedTrips = 10
	// freshTrips are those of new connections: TCP and TLS, and TCP's slow start.
	freshTrips = 4
	// guessedWork is what client and servers do for an operation, in seconds.
	guessedWork = 0.02
)

// estimateOverhead is the time and the file bytes of one trial: so many
// operations as `count` and `time` allow, of guessedTrips round trips and the
// bytes at the link's rate, shared among those under way; with connections that
// are kept, one more to open them.
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
	est := c.operation(workers, trips, guessedWork, n, goodput)
	if n/goodput > est.Operation/2 {
		est.Limit = "link"
	}
	took := math.Min(est.Operation, limits.Deadline.Seconds())
	each := math.Min(float64(o.Count), math.Max(1, math.Ceil(o.Time.Seconds()/took)))
	switch {
	case o.Operation == "fill":
		added := math.Ceil(float64(o.Objects) / workers)
		est.Seconds = (added + 2*each) * took
		est.Bytes = (float64(o.Objects) + workers*each) * n
	default:
		if o.Connections == "keep" {
			est.Seconds = took
			est.Bytes = workers * n
		}
		est.Seconds += each * took
		est.Bytes += workers * each * n
	}
	return est
}

// tooLong reports whether one operation is expected to take longer than
// overhead.longest.
func (est CellEstimate) tooLong(c *Cell) bool {
	return c.Overhead != nil && est.Operation > c.Overhead.Longest.Seconds()
}

// skipLong takes the cells out of the plan of which one operation is expected to
// take longer than overhead.longest, and says which they were.
func (p *Plan) skipLong() {
	p.Cells = slices.DeleteFunc(p.Cells, func(c Cell) bool {
		if !c.Estimate.tooLong(&c) {
			return false
		}
		p.Skipped = append(p.Skipped, SkippedCell{ID: c.ID, System: c.System, Factors: c.Factors,
			Why: fmt.Sprintf("one operation is expected to take %s, longer than overhead.longest (%s)",
				words.Span(c.Estimate.Operation), c.Overhead.Longest)})
		return true
	})
}
