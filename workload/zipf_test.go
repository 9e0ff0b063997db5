package workload

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// The numbers of requests follow the distribution: chi-square test against its probabilities.
func TestZipf(t *testing.T) {
	const objects, picks = 50, 200_000
	for _, exponent := range []float64{0, 0.7, 1.1, 2} {
		z, norm := NewZipf(objects, exponent), 0.0
		for k := 1; k <= objects; k++ {
			norm += math.Pow(float64(k), -exponent)
		}
		count, want := make([]float64, objects), make([]float64, objects)
		for k := range uint64(picks) {
			count[z.Pick(Uniform(3, k))]++
		}
		for i := range want {
			want[i] = picks * math.Pow(float64(i+1), -exponent) / norm
		}
		chi := stat.ChiSquare(count, want)
		if p := 1 - (distuv.ChiSquared{K: objects - 1}).CDF(chi); p < 1e-4 {
			t.Errorf("exponent %v: chi-square %v, p = %v, counts %v", exponent, chi, p, count)
		}
	}
	if z := NewZipf(3, 1); z.Pick(0) != 0 || z.Pick(1) != 2 {
		t.Error("the ends of the range are not the first and the last object")
	}
}
