package report

import (
	"math"
	"testing"
)

// A system that accepts objects before they cross the link does not beat the link.
func TestAcceptedBytesNeedNotHaveCrossed(t *testing.T) {
	load := func(settled bool, accepted, durable float64) *LoadTest {
		const n, size = 100, 1 << 20
		l := &LoadTest{shelf: &shelf{}, link: map[string]Num{"bandwidth_line": 1 << 20}}
		for i := range n {
			at, full := accepted*float64(i+1), durable*float64(i+1)
			l.shelf.accepted = append(l.shelf.accepted, stored{at: at, took: accepted, size: size})
			if settled {
				l.shelf.durable = append(l.shelf.durable, stored{at: full, took: full, size: size})
			}
		}
		l.shelf.settled, l.FileRate = settled, Estimate{Value: Num(size / accepted)}
		return l
	}
	for _, c := range []struct {
		settled                 bool
		accepted, durable, want float64
	}{
		{true, 0.1, 2, 0.5},
		{true, 2, 2, 0.5},
		{false, 2, 0, 0.5},
		{false, 0.1, 0, math.NaN()},
	} {
		got := float64(load(c.settled, c.accepted, c.durable).fileLineShare())
		if !(math.Abs(got-c.want) < 0.02) && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("%+v: %g of the line", c, got)
		}
	}
}
