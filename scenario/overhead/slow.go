package overhead

import (
	"fmt"
	"slices"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/stats"
)

// slowKey is what cells have in common among which a larger size takes longer.
type slowKey struct {
	link        string // its key
	operation   string
	connections string
	concurrency int
}

// slowTrials is how many trials it takes to leave a size out for good: one may have
// been a warm-up, or the machine's fault.
const slowTrials = 2

func slowKeyOf(c experiment.Cell) slowKey {
	return slowKey{c.Link.Key(), c.Overhead.Operation, c.Overhead.Connections, c.Overhead.Concurrency}
}

// tooSlow skips a cell when operations of its size, or of smaller ones, have
// taken longer than overhead.longest in slowTrials trials and in none since less.
// Operation fill is never skipped: later trials would lack the objects that this one adds.
func (r *runner) tooSlow(c experiment.Cell) error {
	n := 0
	for _, size := range r.slow[slowKeyOf(c)] {
		if size <= c.Data.Size {
			n++
		}
	}
	if n < slowTrials {
		return nil
	}
	return &scenario.SkipError{Why: fmt.Sprintf("%s of %s, or of smaller sizes, took longer than overhead.longest (%s) in %d trials",
		c.Overhead.Operation, c.Data.Size, c.Overhead.Longest, n)}
}

// remember notes a trial whose operations took too long, whatever their outcome:
// one that was cut off would have taken longer still. A trial that did not take
// too long speaks for its size and those below.
func (t *trial) remember() {
	y := &t.tally
	if y.count == 0 {
		return
	}
	took := y.took.Seconds() / float64(y.count)
	if y.failed == 0 {
		took = stats.Median(y.times)
	}
	key, size := slowKeyOf(t.cell), t.cell.Data.Size
	if took > t.o.Longest.Seconds() {
		t.slow[key] = append(t.slow[key], size)
	} else {
		t.slow[key] = slices.DeleteFunc(t.slow[key], func(s experiment.Bytes) bool { return s <= size })
	}
}
