package findings

import (
	"math"
	"strings"
	"testing"
)

// growing is what changes by so much, with an interval about it.
func growing(what string, change, off float64) Growing {
	return Growing{Name: "siad", What: what, Unit: "s", N: 480, First: 3, Last: 3 * (1 + change),
		Change: change, Lo: change - off, Hi: change + off, Shown: math.Abs(change) > off}
}

func growthCases() map[string]example {
	slower := []Growing{growing("API latency", 0.5, 0.1), growing("file bandwidth", -0.5, 0.1), growing("time to store an object", 0.5, 0.1)}
	faster := []Growing{growing("API latency", -0.5, 0.1), growing("file bandwidth", 0.5, 0.1)}
	little := []Growing{growing("API latency", 0.5*LeastChange, 0.01)}
	noisy := []Growing{growing("API latency", 0.5, 3), growing("storage efficiency", 0, 0.01), growing("storage efficiency", -0.5, 0.1)}
	return map[string]example{
		"slows-down": when(Slowing, slower, append(append(faster, little...), noisy...)),
		"flat":       when(Slowing, little, append(append(faster, slower...), noisy...)),
	}
}

func TestGrowthInWords(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		of   Growing
		want string
	}{
		{growing("API latency", 0.5, 0.1), "last quarter 4.50 s against first quarter 3.00 s (+50 %, +40 to +60); n = 480"},
		{Growing{First: 0, Last: 2, Unit: "s", Change: nan, Lo: nan, Hi: nan, N: 30}, "last quarter 2.00 s against first quarter 0 s (–); n = 30"},
	} {
		if got := c.of.words(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// A single call is judged where not every poll makes all of them, of that load test
// alone.
func TestLatencyOfSingleCalls(t *testing.T) {
	call, other := growing("latency of renter", 0.5, 0.1), growing("latency of renter", 0.5, 0.1)
	other.Name = "renterd"
	f := Slowing([]Growing{growing("API latency", 0.5, 0.1), call, other})
	if len(f) != 1 || len(f[0].Evidence) != 2 || !strings.HasPrefix(f[0].Evidence[0], "siad, API latency") || !strings.HasPrefix(f[0].Evidence[1], "renterd, latency of renter") {
		t.Errorf("%+v", f)
	}
}
