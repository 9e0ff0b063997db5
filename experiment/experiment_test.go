package experiment

import (
	"math"
	"testing"
)

// The mean of a log-uniform size, (b−a)/ln(b/a), agrees with a sum over its quantiles.
func TestTotal(t *testing.T) {
	numeric := func(a, b float64) float64 {
		sum, n := 0.0, 100_000
		for i := range n {
			sum += a * math.Pow(b/a, (float64(i)+0.5)/float64(n))
		}
		return sum / float64(n)
	}
	for _, c := range []struct {
		data           Data
		objects, bytes float64
	}{
		{Data{Objects: 10, Size: 5, Copies: 3}, 30, 150},
		{Data{Objects: 10, Size: 5}, 10, 50},
		{Data{Objects: 10, Mix: Mix{{Share: 1, From: 1e3, To: 1e9}}}, 10, 10 * numeric(1e3, 1e9)},
		{Data{Objects: 10, Mix: Mix{{Share: 0.6, From: 2 << 20, To: 6 << 20}, {Share: 0.3, Size: 20 << 20},
			{Share: 0.1, Size: 700 << 20}}}, 10, 6*numeric(2<<20, 6<<20) + 3*(20<<20) + 700<<20},
		{Data{Directory: "x", Copies: 2}, 0, 0},
		{Data{Trace: "x"}, 0, 0},
		{Data{}, 0, 0},
	} {
		objects, bytes := c.data.Total()
		if objects != c.objects || math.Abs(bytes-c.bytes) > 1e-6*c.bytes {
			t.Errorf("%+v: %v objects of %v bytes, want %v of %v", c.data, objects, bytes, c.objects, c.bytes)
		}
	}
}
