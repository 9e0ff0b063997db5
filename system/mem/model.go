package mem

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
)

// Model is what operations take and how often they fail: the options of the
// system, which [Node.Change] changes while it runs.
type Model struct {
	A       time.Duration
	R, Dial float64 // round trips
	Rate    int64   // bytes per second; 0: no limit
	RTT     time.Duration
	Step    int64 // bytes; from here on RLarge round trips; 0: never
	RLarge  float64
	Inline  int64 // bytes; up to here nothing leaves the client; 0: all does
	Settle  time.Duration
	Cache   bool
	// Expansion is bytes kept by servers for each byte of an object.
	Expansion float64
	Noise     float64 // standard deviation of ln(time factor)
	// Shares of operations, 0 to 1.
	Errors, Hangs, Corrupt, Truncate, Warm float64
}

// Time is what putting or getting an object of size bytes takes on an open
// connection, without noise.
func (m Model) Time(size int64) time.Duration {
	if m.inline(size) {
		return m.A
	}
	return m.A + m.distance(size, 0) + m.transfer(size)
}

// inline says whether an object of size bytes stays at the client.
func (m Model) inline(size int64) bool { return m.Inline > 0 && size <= m.Inline }

// distance is the time that the round trips of moving size bytes take.
func (m Model) distance(size int64, dial float64) time.Duration {
	trips := m.R
	if m.Step > 0 && size >= m.Step {
		trips = m.RLarge
	}
	return time.Duration((trips + dial) * float64(m.RTT))
}

// transfer is the time that so many bytes take.
func (m Model) transfer(bytes int64) time.Duration {
	if m.Rate == 0 {
		return 0
	}
	return time.Duration(float64(bytes) / float64(m.Rate) * float64(time.Second))
}

// model reads the options; opt is filled in.
func model(opt system.Options) (m Model, err error) {
	note := func(name string, e error) {
		if err == nil && e != nil {
			err = fmt.Errorf("mem: option %q: %w", name, e)
		}
	}
	number := func(name string, most float64) float64 {
		v, e := strconv.ParseFloat(opt[name], 64)
		if e == nil && (math.IsNaN(v) || v < 0 || v > most) {
			e = fmt.Errorf("%q is not between 0 and %g", opt[name], most)
		}
		note(name, e)
		return v
	}
	duration := func(name string) time.Duration {
		d, e := opt.Duration(name)
		if e == nil && d < 0 {
			e = fmt.Errorf("%v is negative", d)
		}
		note(name, e)
		return d
	}
	bytes := func(name string) int64 {
		n, e := opt.Int(name)
		if e == nil && n < 0 {
			e = fmt.Errorf("%d is negative", n)
		}
		note(name, e)
		return n
	}
	m = Model{
		A: duration("a"), R: number("r", 1e6), Dial: number("dial", 1e6), Rate: bytes("rate"), RTT: duration("rtt"),
		Step: bytes("step"), RLarge: number("r_large", 1e6), Inline: bytes("inline"),
		Settle: duration("settle"), Cache: opt.Bool("cache"), Expansion: number("expansion", 1e6), Noise: number("noise", 10),
		Errors: number("errors", 1), Hangs: number("hangs", 1), Corrupt: number("corrupt", 1), Truncate: number("truncate", 1), Warm: number("warm", 1),
	}
	return m, err
}
