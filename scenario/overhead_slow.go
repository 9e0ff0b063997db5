package scenario

import (
	"fmt"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
)

// slowKey is what cells have in common among which a larger size takes longer.
type slowKey struct {
	link        experiment.ResolvedLink
	operation   string
	connections string
	concurrency int
}

// slowest is the smallest size whose operation has taken longer than the
// experiment wants to wait.
type slowest struct {
	size experiment.Bytes
	took float64 // seconds, the median of that trial
}

func slowKeyOf(c experiment.Cell) slowKey {
	return slowKey{c.Link, c.Overhead.Operation, c.Overhead.Connections, c.Overhead.Concurrency}
}

// tooSlow skips a cell when an operation of its size, or of a smaller one, has
// taken longer than overhead.longest in an earlier trial.
func (r *overheadRunner) tooSlow(c experiment.Cell) error {
	s, ok := r.slow[slowKeyOf(c)]
	if !ok || c.Data.Size < s.size {
		return nil
	}
	return &SkipError{fmt.Sprintf("%s of %s took %s, longer than overhead.longest (%s)",
		c.Overhead.Operation, s.size, experiment.RoughDuration(s.took), c.Overhead.Longest)}
}

// remember notes a trial whose operations took too long, whatever their outcome:
// one that was cut off would have taken longer still.
func (t *overheadTrial) remember() {
	if t.count == 0 {
		return
	}
	took := t.busy.Seconds() / float64(t.count)
	for _, kind := range []record.OpKind{record.OpGet, record.OpRange, record.OpPut, record.OpStat, record.OpDelete, record.OpPutDurable, record.OpPutDir, record.OpUpdate} {
		if times := t.took[kind]; t.failed == 0 && len(times) > 0 {
			took = median(times)
		}
	}
	key := slowKeyOf(t.cell)
	if s, ok := t.slow[key]; took > t.o.Longest.Seconds() && (!ok || t.cell.Data.Size <= s.size) {
		t.slow[key] = slowest{t.cell.Data.Size, took}
	}
}
