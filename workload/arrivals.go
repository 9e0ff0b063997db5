package workload

import (
	"fmt"
	"math"
	"time"
)

// Arrivals says when operations are to start, on a clock of its own: a pure
// function of time that no slow server can hold back. (The shape is that of the
// Pacer of github.com/tsenart/vegeta.)
type Arrivals interface {
	// Pace returns how long after elapsed the next operation is to start, given
	// that hits operations were to start until then. elapsed is the intended
	// time of the latest of them (0 before the first), not the time it did
	// start. stop says that no operation follows.
	Pace(elapsed time.Duration, hits uint64) (wait time.Duration, stop bool)
	// Rate is the intended rate at elapsed, in operations per second.
	Rate(elapsed time.Duration) float64
}

// Constant starts operations at a fixed rate (operations per second), the first
// at once.
type Constant float64

func (c Constant) Rate(time.Duration) float64 { return float64(c) }

func (c Constant) Pace(elapsed time.Duration, hits uint64) (time.Duration, bool) {
	if !(c > 0) {
		return 0, true
	}
	// From the count and not from the latest arrival, so that rounding to
	// nanoseconds does not add up.
	return seconds(float64(hits)/float64(c)) - elapsed, false
}

// Poisson starts operations with independent exponential gaps of mean 1/PerSecond.
// The k-th gap depends on the seed and k alone.
type Poisson struct {
	PerSecond float64
	Seed      uint64
}

func (p Poisson) Rate(time.Duration) float64 { return p.PerSecond }

func (p Poisson) Pace(_ time.Duration, hits uint64) (time.Duration, bool) {
	if !(p.PerSecond > 0) {
		return 0, true
	}
	// 53 random bits and a half: never 0, never 1.
	u := (float64(Mix(p.Seed, hits)>>11) + 0.5) / (1 << 53)
	return seconds(-math.Log(u) / p.PerSecond), false
}

// Ramp goes from one rate to another, linearly over a time, and then stops.
// The number of arrivals until t is the integral of the rate,
// From·t + (To−From)·t²/(2·Over).
type Ramp struct {
	From, To float64 // operations per second
	Over     time.Duration
}

func (r Ramp) Rate(elapsed time.Duration) float64 {
	if elapsed < 0 || elapsed > r.Over {
		return 0
	}
	return r.From + (r.To-r.From)*elapsed.Seconds()/r.Over.Seconds()
}

func (r Ramp) Pace(elapsed time.Duration, hits uint64) (time.Duration, bool) {
	at, ok := inverseLinear(r.From, r.To, r.Over.Seconds(), float64(hits))
	if !ok {
		return 0, true
	}
	return seconds(at) - elapsed, false
}

// inverseLinear solves a·t + (b−a)·t²/(2·over) = n for t in [0, over).
func inverseLinear(a, b, over, n float64) (t float64, ok bool) {
	if n >= (a+b)/2*over || over <= 0 {
		return 0, false
	}
	if n == 0 {
		return 0, true
	}
	// The form with the root in the denominator does not cancel when a ≈ b.
	return 2 * n / (a + math.Sqrt(max(a*a+2*n*(b-a)/over, 0))), true
}

// Step is a part of [Steps]: a rate held for a time.
type Step struct {
	PerSecond float64
	For       time.Duration
}

// Steps holds one rate after another and then stops. A rate of 0 is a pause.
type Steps []Step

func (s Steps) Rate(elapsed time.Duration) float64 {
	for _, st := range s {
		if elapsed < st.For {
			return st.PerSecond
		}
		elapsed -= st.For
	}
	return 0
}

func (s Steps) Pace(elapsed time.Duration, hits uint64) (time.Duration, bool) {
	n, from := float64(hits), time.Duration(0)
	for _, st := range s {
		if in := st.PerSecond * st.For.Seconds(); n < in {
			return from + seconds(n/st.PerSecond) - elapsed, false
		} else {
			n -= in
		}
		from += st.For
	}
	return 0, true
}

// ArrivalSpec describes an arrival process in data.
type ArrivalSpec struct {
	Process string     `json:"process"` // "constant", "poisson", "ramp", "steps"
	Rate    float64    `json:"rate"`    // operations per second; of a ramp, at its start
	To      float64    `json:"to,omitempty"`
	Steps   []StepSpec `json:"steps,omitempty"`
}

// StepSpec is one step of an [ArrivalSpec].
type StepSpec struct {
	Rate float64       `json:"rate"`
	For  time.Duration `json:"for"`
}

// Arrivals builds the process. over is how long a ramp takes; seed is that of a
// Poisson process.
func (a ArrivalSpec) Arrivals(over time.Duration, seed uint64) (Arrivals, error) {
	positive := func(name string, v float64) error {
		if !(v > 0) || math.IsInf(v, 0) {
			return fmt.Errorf("arrivals: %s: %s must be above 0 per second, not %v", a.Process, name, v)
		}
		return nil
	}
	switch a.Process {
	case "constant":
		return Constant(a.Rate), positive("rate", a.Rate)
	case "poisson":
		return Poisson{a.Rate, seed}, positive("rate", a.Rate)
	case "ramp":
		if !(a.Rate >= 0) || !(a.To >= 0) || !(a.Rate+a.To > 0) || math.IsInf(a.Rate+a.To, 0) {
			return nil, fmt.Errorf("arrivals: ramp: rates must not be negative, and one above 0 (rate %v, to %v)", a.Rate, a.To)
		}
		if over <= 0 {
			return nil, fmt.Errorf("arrivals: ramp: needs a duration; set the trial's duration")
		}
		return Ramp{a.Rate, a.To, over}, nil
	case "steps":
		var s Steps
		sum := 0.0
		for i, st := range a.Steps {
			if !(st.Rate >= 0) || math.IsInf(st.Rate, 0) || st.For <= 0 {
				return nil, fmt.Errorf("arrivals: steps: step %d needs a rate of at least 0 and a time above 0 (rate %v for %v)", i+1, st.Rate, st.For)
			}
			sum += st.Rate * st.For.Seconds()
			s = append(s, Step{st.Rate, st.For})
		}
		if !(sum > 0) {
			return nil, fmt.Errorf("arrivals: steps: no step with a rate above 0")
		}
		return s, nil
	}
	return nil, fmt.Errorf("arrivals: unknown process %q; one of constant, poisson, ramp, steps", a.Process)
}

// Mix is a hash of a seed and a counter: the k-th number of a random sequence
// without the ones before it. (The output function of SplitMix64, Steele et al.,
// OOPSLA 2014, applied twice so that nearby seeds give unrelated sequences.)
func Mix(seed, k uint64) uint64 {
	return mix64(mix64(seed+0x9e3779b97f4a7c15) + k*0x9e3779b97f4a7c15)
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
