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
		{[]Lifetime{{3, true, 1}, {1, true, 1}, {2, true, 1}}, 0.5, 2},
		{[]Lifetime{{1, true, 1}, {2, true, 1}, {3, true, 1}, {4, true, 1}}, 0.5, 2},
		{[]Lifetime{{1, true, 1}, {2, false, 1}, {3, true, 1}, {4, true, 1}}, 0.5, 3}, // 3/4, then 3/4·1/2
		{[]Lifetime{{1, true, 1}, {9, false, 1}, {9, false, 1}}, 0.5, inf},
		{[]Lifetime{{5, false, 1}, {5, true, 1}}, 0.5, 5},                 // still at risk at that time
		{[]Lifetime{{1, true, 1}, {inf, false, 1}, {2, true, 1}}, 1, inf}, // one can never happen
		{[]Lifetime{{1, true, 1}, {inf, false, 1}, {2, true, 1}}, 0.6, 2},
		{[]Lifetime{{4, true, 50}, {1, true, 10}, {2, false, 20}, {3, true, 35}}, 0.48, 4}, // 0.9, then 0.9·50/85
		{[]Lifetime{{4, true, 50}, {1, true, 10}, {2, false, 20}, {3, true, 35}}, 0.46, 3},
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
