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
	R, Dial float64 // round trips
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

// Time is what putting or getting an object of size bytes takes on an open connection.
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

// read sets what each option names: a duration, a number, bytes or a switch.
func read(opt system.Options, to map[string]any) (err error) {
	for name, value := range to {
		switch value := value.(type) {
		case *time.Duration:
			*value = opt.Duration(name)
		case *float64:
			*value, err = strconv.ParseFloat(opt[name], 64)
		case *int64:
			*value = opt.Int(name)
		case *bool:
			*value = opt.Bool(name)
		}
		if err != nil {
			return fmt.Errorf("mem: option %q: %w", name, err)
		}
	}
	return nil
}

// model is what the options say; opt is filled in.
func model(opt system.Options) (m Model, err error) {
	return m, read(opt, map[string]any{
		"a": &m.A, "r": &m.R, "dial": &m.Dial, "rate": &m.Rate, "rtt": &m.RTT, "settle": &m.Settle, "cache": &m.Cache,
		"expansion": &m.Expansion, "errors": &m.Errors,
	})
}
