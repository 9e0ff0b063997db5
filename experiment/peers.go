package experiment

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"
)

// Join describes when the leechers of a swarm begin: all together (the zero value), in waves, or by
// a Poisson process.
type Join struct {
	// Leechers at a time; the first wave begins at once.
	Wave int `json:"wave,omitempty" min:"1" max:"256" one:"true" needs:"every"`
	// Time between waves.
	Every Duration `json:"every,omitempty" min:"1ms" needs:"wave"`
	// One by one at this rate, with exponential gaps.
	Poisson OpRate `json:"poisson,omitempty" one:"true"`
}

// Together reports whether all leechers are released at one barrier.
func (j Join) Together() bool { return j == Join{} }

func (j Join) String() string {
	switch {
	case j.Wave > 0:
		return "waves of " + strconv.Itoa(j.Wave) + " every " + j.Every.String()
	case j.Poisson > 0:
		return "poisson " + j.Poisson.String()
	}
	return "together"
}

// Stay is how long a leecher serves others after it has everything: a duration, [Forever], or
// "leave" (not at all).
type Stay string

// Forever means until the trial ends.
const Forever Stay = "forever"

func (s *Stay) parse(text string) error {
	var d Duration
	switch {
	case text == string(Forever) || text == "leave":
		*s = Stay(text)
	case d.parse(text) == nil && d > 0:
		*s = Stay(d.String())
	default:
		return notA("Stay", text, "write `forever`, `leave`, or a time such as `30s`")
	}
	return nil
}

// For returns the duration; 0 if s is not one.
func (s Stay) For() time.Duration {
	var d Duration
	_ = d.parse(string(s))
	return d.Std()
}

// Speeds are the rates at which the peers of a fresh node send; by default, those of their links.
type Speeds struct {
	// Median of a log-normal distribution of rates.
	Lognormal BitRate `json:"lognormal,omitempty" one:"true" needs:"spread"`
	// Geometric standard deviation: with 3, two thirds of the peers are within a factor of 3 of the median.
	Spread float64 `json:"spread,omitempty" min:"1" max:"100" needs:"lognormal"`
	// Rates, assigned in turn.
	List []BitRate `json:"list,omitempty" one:"true"`
}

// Given reports whether rates other than those of the links are set.
func (v Speeds) Given() bool { return v.String() != "link" }

func (v Speeds) String() string {
	switch {
	case v.Lognormal > 0:
		return "lognormal " + v.Lognormal.String() + " x" + strconv.FormatFloat(v.Spread, 'f', -1, 64)
	case len(v.List) > 0:
		return "list " + strings.ReplaceAll(joined(v.List), ";", "")
	}
	return "link"
}

// tail is the probability that is cut off at either end of a lognormal distribution: values are
// within 3.1 standard deviations of the median.
const tail = 0.001

// Draw returns the rates of n peers, in order; 0 is the rate of the link. uniform returns numbers
// from 0 up to but not including 1. If rates are drawn, it is called once for each peer, so that
// the first peers have the same rates whatever n is.
func (v Speeds) Draw(n int, uniform func() float64) []BitRate {
	rates := make([]BitRate, n)
	for i := range rates {
		switch {
		case v.Lognormal > 0:
			u := min(1-tail, max(tail, uniform()))
			normal := math.Sqrt2 * math.Erfinv(2*u-1)
			rates[i] = max(1, BitRate(math.Round(float64(v.Lognormal)*math.Pow(v.Spread, normal))))
		case len(v.List) > 0:
			rates[i] = v.List[i%len(v.List)]
		}
	}
	return rates
}

// Manners are kinds of peers of little use, as in package system.
const (
	MannerSilent   = "silent"   // accepts connections and answers nothing
	MannerStranger = "stranger" // has another chain
)

// Trouble is a group of peers of little use.
type Trouble struct {
	// Peers that take connections and answer nothing.
	Silent Part `json:"silent,omitempty" one:"true"`
	// Peers with another chain.
	Stranger Part `json:"stranger,omitempty" one:"true"`
	// Peers that send at another rate.
	Slow Part `json:"slow,omitempty" one:"true" needs:"rate"`
	// Rate of slow peers.
	Rate BitRate `json:"rate,omitempty" needs:"slow"`
}

// Manner returns the manner of the peers; empty: they differ only in their rate.
func (t Trouble) Manner() string {
	switch {
	case t.Silent != "":
		return MannerSilent
	case t.Stranger != "":
		return MannerStranger
	}
	return ""
}

func (t Trouble) part() Part { return cmp.Or(t.Silent, t.Stranger, t.Slow) }

// Of returns how many of n peers the group has, which may be more than n.
func (t Trouble) Of(n int) int { return t.part().Of(n) }

func (t Trouble) String() string {
	if t.Rate > 0 {
		return string(t.Slow) + " at " + t.Rate.String()
	}
	return string(t.part()) + " " + t.Manner()
}

// Troubles are all groups of peers of little use; no peer is in two of them.
type Troubles []Trouble

func (ts Troubles) String() string { return joined(ts) }
