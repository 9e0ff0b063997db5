package words

import (
	"math"
	"testing"
)

func TestAnIntervalThatSaysNothingIsNoNumber(t *testing.T) {
	for _, c := range []struct{ v, lo, hi float64 }{{0.28, 1e-9, 98117}, {0.5, 0, 2}, {5, 0.01, 900}} {
		if got := Gain(c.v, c.lo, c.hi); got != "n too small" {
			t.Errorf("%+v: %s", c, got)
		}
	}
	if got := Gain(0.28, 0.2, 0.4); got == "n too small" || Gain(0.28, math.NaN(), math.NaN()) == "n too small" {
		t.Error(got)
	}
}
