package workload

import (
	"math"
	"time"
)

// Arrivals determines when operations should start, on its own clock: it is a pure function of
// time, so a slow server cannot delay it. (The interface resembles the Pacer of
// github.com/tsenart/vegeta.)
type Arrivals interface {
	// Pace returns how long after elapsed the next operation should start, given that hits
	// operations were due by then. elapsed is the intended time of the latest of them (0 before the
	// first), not its actual start. stop reports that no operation follows.
	Pace(elapsed time.Duration, hits uint64) (wait time.Duration, stop bool)
}

// Poisson starts operations at independent, exponentially distributed intervals with mean
// 1/PerSecond, which is above 0. The k-th interval depends only on the seed and k.
type Poisson struct {
	PerSecond float64
	Seed      uint64
}

func (p Poisson) Pace(_ time.Duration, hits uint64) (time.Duration, bool) {
	return seconds(-math.Log(Uniform(p.Seed, hits)) / p.PerSecond), false
}

// Step is a part of [Steps]: a constant rate for a period.
type Step struct {
	PerSecond float64       `json:"rate"`
	For       time.Duration `json:"for"`
}

// Steps applies one rate after another, the first from the start, and then stops. A rate of 0 is a
// pause.
type Steps []Step

func (s Steps) Pace(elapsed time.Duration, hits uint64) (time.Duration, bool) {
	n, from := float64(hits), time.Duration(0)
	for _, st := range s {
		// Computed from the count, not from the latest arrival, so that rounding to nanoseconds
		// does not accumulate.
		if in := st.PerSecond * st.For.Seconds(); n < in {
			return from + seconds(n/st.PerSecond) - elapsed, false
		} else {
			n -= in
		}
		from += st.For
	}
	return 0, true
}

// ArrivalSpec describes an arrival process as data.
type ArrivalSpec struct {
	Process string  `json:"process"`        // "constant", "poisson", "steps", "log"
	Rate    float64 `json:"rate,omitempty"` // operations per second
	Steps   Steps   `json:"steps,omitempty"`

	// For the process log: the file to replay, and how much faster.
	Log     string  `json:"log,omitempty"`
	LogSize int64   `json:"log_size,omitempty"` // bytes of the file, which may have grown since
	Speed   float64 `json:"speed,omitempty"`
	// AsIs requests the paths of the log unchanged from the server of the first object. Otherwise
	// the first object replaces the first path, and so on.
	AsIs bool `json:"as_is,omitempty"`
}

// Arrivals returns the process. It requires rates above 0 and does not support "log". seed is the
// seed of a Poisson process.
func (a ArrivalSpec) Arrivals(seed uint64) Arrivals {
	switch a.Process {
	case "constant":
		return Steps{{a.Rate, math.MaxInt64}}
	case "poisson":
		return Poisson{a.Rate, seed}
	}
	return a.Steps
}

// Mix returns a hash of a seed and a counter: the k-th number of a random sequence, computed
// without its predecessors. (It is the output function of SplitMix64, Steele et al., OOPSLA 2014,
// applied twice so that nearby seeds give unrelated sequences.)
func Mix(seed, k uint64) uint64 {
	return mix64(mix64(seed+0x9e3779b97f4a7c15) + k*0x9e3779b97f4a7c15)
}

// Uniform returns the k-th of a sequence of random numbers between 0 and 1, both excluded.
func Uniform(seed, k uint64) float64 {
	return (float64(Mix(seed, k)>>11) + 0.5) / (1 << 53) // 53 bits and a half
}

func mix64(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func seconds(s float64) time.Duration {
	if s > math.MaxInt64/1e9 {
		return math.MaxInt64
	}
	return time.Duration(math.Round(s * 1e9))
}
