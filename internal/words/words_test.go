package words

import (
	"math"
	"testing"
)

// No text has a minus zero, and no small negative share passes for a small one.
func TestPercentAndDigits(t *testing.T) {
	zero := math.Copysign(0, -1)
	for got, want := range map[string]string{
		Percent(zero):   "0 %",
		Percent(-1e-9):  "> −0.1 %",
		Percent(-0.12):  "−12 %",
		Percent(0.0001): "< 0.1 %",
		Percent(0.9999): "> 99.9 %",
		Percent(1.02):   "102 %",
		Digits(zero, 3): "0",
		Show(zero, "1"): "0",
		Show(zero, "s"): "0 s",
		Show(zero, "×"): "0×",
		Digits(-1.5, 3): "-1.50",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
