package mem

import (
	"fmt"
	"strconv"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
)

// Model is the duration of operations and their rate of failure. [Node.Change] changes it while the
// system runs.
type Model struct {
	A       time.Duration
	R, Dial float64 // round trips; Dial is added for an operation that finds no idle connection
	Rate    int64   // bytes per second; 0: no limit
	RTT     time.Duration
	Settle  time.Duration
	Cache   bool
	// Expansion is the number of bytes that servers store per byte of an object.
	Expansion float64
	// Fractions of operations, 0 to 1, that fail, that hang until their context ends, that flip one
	// bit, or that end early. The last two return no error.
	Errors, Hangs, Corrupt, Truncate float64
	Warm                             bool // Cool fails with ErrWarm
}

// distance returns the duration of an operation's round trips.
func (m Model) distance() time.Duration { return time.Duration((m.R + m.Dial) * float64(m.RTT)) }

// transfer returns the duration of the transfer of that many bytes.
func (m Model) transfer(bytes int64) time.Duration {
	if m.Rate == 0 {
		return 0
	}
	return time.Duration(float64(bytes) / float64(m.Rate) * float64(time.Second))
}

// model returns the model for opt, whose defaults are filled in.
func model(opt system.Options) (Model, error) {
	m := Model{A: opt.Duration("a"), Rate: opt.Int("rate"), RTT: opt.Duration("rtt"), Settle: opt.Duration("settle"),
		Cache: opt.Bool("cache")}
	for name, value := range map[string]*float64{
		"r": &m.R, "dial": &m.Dial, "expansion": &m.Expansion, "errors": &m.Errors,
	} {
		var err error
		if *value, err = strconv.ParseFloat(opt[name], 64); err != nil {
			return m, fmt.Errorf("mem: option %q: %w", name, err)
		}
	}
	return m, nil
}
