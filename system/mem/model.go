package mem

import (
	"fmt"
	"strconv"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
)

// Model is what operations take and how often they fail. [Node.Change] changes it while the
// system runs.
type Model struct {
	A       time.Duration
	R, Dial float64 // round trips; Dial are those of an operation that finds no idle connection
	Rate    int64   // bytes per second; 0: no limit
	RTT     time.Duration
	Settle  time.Duration
	Cache   bool
	// Expansion is bytes kept by servers for each byte of an object.
	Expansion float64
	// Shares of operations, 0 to 1, that fail, that end with their context, that give one
	// wrong bit or that end early. The last two give no error.
	Errors, Hangs, Corrupt, Truncate float64
	Warm                             bool // Cool fails with ErrWarm
}

// distance is the time that the round trips of an operation take.
func (m Model) distance() time.Duration { return time.Duration((m.R + m.Dial) * float64(m.RTT)) }

// transfer is the time that so many bytes take.
func (m Model) transfer(bytes int64) time.Duration {
	if m.Rate == 0 {
		return 0
	}
	return time.Duration(float64(bytes) / float64(m.Rate) * float64(time.Second))
}

// model is what the options say; opt is filled in.
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
