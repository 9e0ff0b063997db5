package report

import "testing"

func TestPlateau(t *testing.T) {
	t.Parallel()
	level := func(median, lo, hi Num) *Cell {
		return &Cell{Metrics: map[string]Summary{"throughput": {Median: median, Lo: lo, Hi: hi}}}
	}
	for name, c := range map[string]struct {
		levels []*Cell
		want   int
	}{
		"grows":       {[]*Cell{level(10, 9, 11), level(20, 19, 21), level(40, 38, 42)}, 2},
		"flat":        {[]*Cell{level(10, 9, 11), level(40, 38, 42), level(41, 39, 43)}, 1},
		"falls":       {[]*Cell{level(10, 9, 11), level(40, 38, 42), level(20, 19, 21)}, 1},
		"overlapping": {[]*Cell{level(10, 5, 20), level(15, 6, 25)}, 0},
		"unknown":     {[]*Cell{level(10, unknown, unknown), level(20, unknown, unknown)}, 1},
		"one":         {[]*Cell{level(10, 9, 11)}, 0},
	} {
		if got := plateau(c.levels); got != c.want {
			t.Errorf("%s: throughput stops growing at level %d, want %d", name, got, c.want)
		}
	}
}
