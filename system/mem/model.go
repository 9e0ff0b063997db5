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
	return m.A + m.distance(0) + m.transfer(size)
}

// distance is the time that the round trips of an operation take.
func (m Model) distance(dial float64) time.Duration {
	return time.Duration((m.R + dial) * float64(m.RTT))
}

// transfer is the time that so many bytes take.
func (m Model) transfer(bytes int64) time.Duration {
	if m.Rate == 0 {
		return 0
	}
	return time.Duration(float64(bytes) / float64(m.Rate) * float64(time.Second))
}

// model reads the options; opt is filled in.
func model(opt system.Options) (Model, error) {
	r := reader{opt: opt}
	m := Model{
		A: r.duration("a"), R: r.number("r", 1e6), Dial: r.number("dial", 1e6), Rate: r.count("rate"), RTT: r.duration("rtt"),
		Settle: r.duration("settle"), Cache: opt.Bool("cache"), Expansion: r.number("expansion", 1e6), Noise: r.number("noise", 10),
		Errors: r.number("errors", 1), Hangs: r.number("hangs", 1), Corrupt: r.number("corrupt", 1), Truncate: r.number("truncate", 1), Warm: r.number("warm", 1),
	}
	return m, r.err
}

// reader reads options, and keeps the first error.
type reader struct {
	opt system.Options
	err error
}

func (r *reader) note(name string, err error) {
	if r.err == nil && err != nil {
		r.err = fmt.Errorf("mem: option %q: %w", name, err)
	}
}

// number is from 0 to most.
func (r *reader) number(name string, most float64) float64 {
	v, err := strconv.ParseFloat(r.opt[name], 64)
	if err == nil && (math.IsNaN(v) || v < 0 || v > most) {
		err = fmt.Errorf("%q is not between 0 and %g", r.opt[name], most)
	}
	r.note(name, err)
	return v
}

func (r *reader) duration(name string) time.Duration {
	d, err := r.opt.Duration(name)
	if err == nil && d < 0 {
		err = fmt.Errorf("%v is negative", d)
	}
	r.note(name, err)
	return d
}

// count is of bytes or things.
func (r *reader) count(name string) int64 {
	n, err := r.opt.Int(name)
	if err == nil && n < 0 {
		err = fmt.Errorf("%d is negative", n)
	}
	r.note(name, err)
	return n
}
