package experiment

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Join is when the leechers of a swarm begin: all together (the zero value), in
// waves, or by a Poisson process.
type Join struct {
	// Leechers at a time; the first wave begins at once.
	Wave int `json:"wave,omitempty" min:"1" max:"256"`
	// Time between waves.
	Every Duration `json:"every,omitempty" min:"1ms"`
	// One by one at this rate, with exponential gaps.
	Poisson OpRate `json:"poisson,omitempty"`
}

// Together reports whether all leechers are released at one barrier.
func (j Join) Together() bool { return j == Join{} }

func (j *Join) check() error {
	if (j.Wave > 0) != (j.Every > 0) || (j.Wave > 0) == (j.Poisson > 0) {
		return badUnit("write `together`, `{wave: 4, every: 5s}` or `{poisson: 0.5/s}`",
			"leechers join in waves or by a Poisson process")
	}
	return nil
}

func (j Join) String() string {
	switch {
	case j.Wave > 0:
		return "waves of " + strconv.Itoa(j.Wave) + " every " + j.Every.String()
	case j.Poisson > 0:
		return "poisson " + j.Poisson.String()
	}
	return "together"
}

// Stay is how long a leecher serves others once it has everything.
type Stay struct {
	Forever bool
	For     time.Duration // 0: it leaves at completion
}

func (s *Stay) parse(text string) error {
	switch text {
	case "forever":
		*s = Stay{Forever: true}
		return nil
	case "leave":
		*s = Stay{}
		return nil
	}
	var d Duration
	if err := d.parse(text); err != nil || d == 0 {
		return badUnit("write `forever`, `leave`, or a time such as `30s`", "%q is not %s", text, s.describe().noun)
	}
	*s = Stay{For: d.Std()}
	return nil
}

func (s Stay) String() string {
	switch {
	case s.Forever:
		return "forever"
	case s.For > 0:
		return Duration(s.For).String()
	}
	return "leave"
}

func (Stay) describe() scalarKind {
	return scalarKind{name: "stay", noun: "forever, leave, or a duration such as 30s",
		pattern: `^(forever|leave|([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+)$`,
		doc:     "Serve until the trial ends (`forever`), `leave` at once, or after a time: `30s`."}
}

// MarshalText writes what parse reads.
func (s Stay) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads it.
func (s *Stay) UnmarshalText(b []byte) error { return s.parse(string(b)) }

// Speeds are the rates at which the peers of a fresh node send; the zero value: as
// their links.
type Speeds struct {
	// Median of a log-normal distribution of rates.
	Lognormal BitRate `json:"lognormal,omitempty"`
	// Geometric standard deviation: with 3, two thirds of the peers are within a factor of 3 of the median.
	Spread float64 `json:"spread,omitempty" min:"1" max:"100"`
	// Rates, assigned in turn.
	List []BitRate `json:"list,omitempty"`
}

// Given reports whether peers have other rates than their links.
func (v Speeds) Given() bool { return v.String() != "link" }

func (v *Speeds) check() error {
	if (v.Lognormal > 0) != (v.Spread > 0) || (v.Lognormal > 0) == (v.List != nil) {
		return badUnit("write `link`, `{lognormal: 8Mbit, spread: 3}` or `{list: [1Mbit, 5Mbit]}`",
			"peers have one distribution of rates")
	}
	return nil
}

func (v Speeds) String() string {
	switch {
	case v.Lognormal > 0:
		return "lognormal " + v.Lognormal.String() + " x" + strconv.FormatFloat(v.Spread, 'f', -1, 64)
	case len(v.List) > 0:
		return "list " + strings.ReplaceAll(joined(v.List), ";", "")
	}
	return "link"
}

// tail is the share at either end of a lognormal distribution from which nothing
// is drawn: 3.1 standard deviations from its median.
const tail = 0.001

// Draw is the rates of n peers, in their order; 0 is that of the link. uniform
// gives numbers from 0 up to but not including 1; it is asked once for each peer
// where rates are drawn, so that the first peers of many have what as few would
// have.
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

// Manners of peers that are of little use, as in package system.
const (
	MannerSilent   = "silent"   // takes connections and answers nothing
	MannerStranger = "stranger" // has another chain
)

// Trouble is a group of peers that are of little use.
type Trouble struct {
	// Peers that take connections and answer nothing.
	Silent Part `json:"silent,omitzero"`
	// Peers with another chain.
	Stranger Part `json:"stranger,omitzero"`
	// Peers that send at another rate.
	Slow Part `json:"slow,omitzero"`
	// Rate of slow peers.
	Rate BitRate `json:"rate,omitempty"`
}

// Manner is what is wrong with them; empty: only their rate.
func (t Trouble) Manner() string {
	switch {
	case t.Silent != Part{}:
		return MannerSilent
	case t.Stranger != Part{}:
		return MannerStranger
	}
	return ""
}

func (t Trouble) part() Part {
	for _, p := range []Part{t.Silent, t.Stranger} {
		if p != (Part{}) {
			return p
		}
	}
	return t.Slow
}

// Of is how many of n peers the group has, which may be more than n.
func (t Trouble) Of(n int) int { return t.part().Of(n) }

func (t *Trouble) check() error {
	groups := 0
	for _, p := range []Part{t.Silent, t.Stranger, t.Slow} {
		if p != (Part{}) {
			groups++
		}
	}
	if groups != 1 || (t.Slow != Part{}) != (t.Rate > 0) {
		return badUnit("write `{silent: 1}`, `{stranger: 25%}` or `{slow: 1, rate: 500kbit}`",
			"a group of peers has one thing that is wrong with it")
	}
	return nil
}

func (t Trouble) String() string {
	if t.Rate > 0 {
		return t.Slow.String() + " at " + t.Rate.String()
	}
	return t.part().String() + " " + t.Manner()
}

// Troubles are all such groups; no peer is in two.
type Troubles []Trouble

func (ts Troubles) String() string { return joined(ts) }

func (ts *Troubles) check() error {
	seen := map[string]bool{}
	for _, t := range *ts {
		key := t.Manner() + t.Rate.String()
		if seen[key] {
			return badUnit("write one group with the sum", "two groups of the same peers")
		}
		seen[key] = true
	}
	return nil
}

// shareOf is a share of n things, rounded up to a whole one: 10 % of 30 are 3,
// whatever the binary fraction of 0.1 is.
func shareOf(n int, share float64) int {
	if share <= 0 {
		return 0
	}
	return min(n, max(1, int(math.Ceil(float64(n)*share-1e-9))))
}
