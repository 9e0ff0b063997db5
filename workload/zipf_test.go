package workload

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// The counts of objects follow the distribution: chi-square against its probabilities.
func TestZipf(t *testing.T) {
	const objects, picks = 50, 200_000
	for _, exponent := range []float64{0, 0.7, 1.1, 2} {
		z, norm := NewZipf(objects, exponent), 0.0
		for k := 1; k <= objects; k++ {
			norm += math.Pow(float64(k), -exponent)
		}
		var count [objects]float64
		for k := range uint64(picks) {
			count[z.Pick(Uniform(3, k))]++
		}
		chi := 0.0
		for i, n := range count {
			want := picks * math.Pow(float64(i+1), -exponent) / norm
			chi += (n - want) * (n - want) / want
		}
		if p := 1 - (distuv.ChiSquared{K: objects - 1}).CDF(chi); p < 1e-4 {
			t.Errorf("exponent %v: chi-square %v, p = %v, counts %v", exponent, chi, p, count)
		}
	}
	if z := NewZipf(3, 1); z.Pick(0) != 0 || z.Pick(1) != 2 {
		t.Error("the ends of the range are not the first and the last object")
	}
}
