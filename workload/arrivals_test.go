package workload

import (
	"math"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// times runs an arrival process on its own clock, for at most d.
func times(a Arrivals, d time.Duration) (at []time.Duration) {
	now := time.Duration(0)
	for {
		wait, stop := a.Pace(now, uint64(len(at)))
		if now += wait; stop || now >= d {
			return at
		}
		at = append(at, now)
	}
}

func TestConstantDoesNotDrift(t *testing.T) {
	at := times(Steps{{3, math.MaxInt64}}, 1000*time.Second)
	if len(at) != 3000 || at[0] != 0 {
		t.Fatalf("%d arrivals, the first at %v", len(at), at[0])
	}
	if want := time.Duration(math.Round(2999e9 / 3)); at[2999] != want {
		t.Errorf("the last is at %v, want %v", at[2999], want)
	}
}

func TestPoisson(t *testing.T) {
	const rate, d = 1000.0, 100 * time.Second
	at := times(Poisson{rate, 1}, d)
	// The count has a standard deviation of sqrt(100,000) ≈ 316.
	if n := float64(len(at)); math.Abs(n-rate*d.Seconds()) > 4*math.Sqrt(rate*d.Seconds()) {
		t.Errorf("%v arrivals, want about %v", n, rate*d.Seconds())
	}
	// Intervals are exponential: chi-square over 20 classes of equal probability.
	const classes = 20
	gaps, count, want := make([]float64, len(at)), make([]float64, classes), make([]float64, classes)
	last := time.Duration(0)
	for i, a := range at {
		gaps[i] = (a - last).Seconds()
		last = a
		count[min(int((1-math.Exp(-gaps[i]*rate))*classes), classes-1)]++
	}
	for i := range want {
		want[i] = float64(len(at)) / classes
	}
	chi := stat.ChiSquare(count, want)
	if p := 1 - (distuv.ChiSquared{K: classes - 1}).CDF(chi); p < 1e-4 {
		t.Errorf("gaps are not exponential: chi-square %v, p = %v", chi, p)
	}
	// Successive intervals are independent: their correlation has a standard deviation of
	// 1/sqrt(n).
	if r := successive(gaps); math.Abs(r) > 4/math.Sqrt(float64(len(at))) {
		t.Errorf("successive gaps correlate: %v", r)
	}
}

// successive returns the correlation of each value with the next.
func successive(x []float64) float64 { return stat.Correlation(x[1:], x[:len(x)-1], nil) }

func TestSteps(t *testing.T) {
	s := Steps{{10, time.Second}, {0, 2 * time.Second}, {100, time.Second}}
	at := times(s, time.Hour)
	if len(at) != 110 {
		t.Fatalf("%d arrivals, want 110", len(at))
	}
	if at[9] != 900*time.Millisecond || at[10] != 3*time.Second || at[109] != 3990*time.Millisecond {
		t.Errorf("arrivals at %v, %v, %v", at[9], at[10], at[109])
	}
}
