package stats

import (
	"math"
	"slices"
	"testing"
)

func TestProductLimit(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		all  []Lifetime
		q    float64
		want float64
	}{
		{nil, 0.5, inf},
		{[]Lifetime{{3, true}, {1, true}, {2, true}}, 0.5, 2},
		{[]Lifetime{{1, true}, {2, true}, {3, true}, {4, true}}, 0.5, 2},
		{[]Lifetime{{1, true}, {2, false}, {3, true}, {4, true}}, 0.5, 3}, // 3/4, then 3/4·1/2
		{[]Lifetime{{1, true}, {9, false}, {9, false}}, 0.5, inf},
		{[]Lifetime{{5, false}, {5, true}}, 0.5, 5},              // still at risk at that time
		{[]Lifetime{{1, true}, {inf, false}, {2, true}}, 1, inf}, // one can never happen
		{[]Lifetime{{1, true}, {inf, false}, {2, true}}, 0.6, 2},
	} {
		before := slices.Clone(c.all)
		if got := ProductLimit(c.all, c.q); got != c.want {
			t.Errorf("%v: %v, want %v", c.all, got, c.want)
		}
		if !slices.Equal(before, c.all) {
			t.Errorf("%v became %v", before, c.all)
		}
	}
}
