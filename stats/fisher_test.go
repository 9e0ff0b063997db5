package stats

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat/combin"
)

func TestAllAmong(t *testing.T) {
	for _, c := range []struct {
		k, n, others int
		want         float64
	}{
		{0, 6, 18, 1},
		{1, 6, 18, 0.25},
		{6, 6, 6, 1 / 924.0},
		{3, 4, 4, 4 / 56.0},
		{2, 6, 0, 1}, // no others that it could have been
	} {
		if got := AllAmong(c.k, c.n, c.others); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%d of %d and of %d others: %v, want %v", c.k, c.n, c.others, got, c.want)
		}
	}
	for k := range 8 {
		want := combin.GeneralizedBinomial(9, float64(k)) / combin.GeneralizedBinomial(40, float64(k))
		if got := AllAmong(k, 9, 31); math.Abs(got/want-1) > 1e-9 {
			t.Errorf("%d: %v, want %v", k, got, want)
		}
	}
}
