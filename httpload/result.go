package httpload

// Result is what a trial's load came to. Rates are per second of Ended − Started.
type Result struct {
	// Receive names the receive path and what was compared; Protocol what was
	// spoken ("http/1.1", "h2", or both).
	Receive  string `json:"receive"`
	Protocol string `json:"protocol"`
	Loop     string `json:"loop"` // "closed" or "open"
	// Clocks of the generators; see [Drive].
	Clocks []ClockOffset `json:"clocks,omitempty"`

	// Nanoseconds since the epoch: when the connections were released, and when
	// the last operation was decided, the arrivals ended, or the window closed.
	Started int64 `json:"started"`
	Ended   int64 `json:"ended"`

	Ops int64 `json:"ops"` // operations of every outcome
	// bytes of objects received, of every outcome; bodies of error answers do not count
	Bytes    int64            `json:"bytes"`
	Warmed   int64            `json:"warmed,omitempty"` // bytes of the warm-up, in no other number
	Outcomes map[string]int64 `json:"outcomes"`
	Classes  map[string]int64 `json:"classes,omitempty"`

	Dials int64 `json:"dials"` // connections opened
	// requests sent again because the server had closed a kept connection
	Reconnects int64 `json:"reconnects,omitempty"`
	Redirects  int64 `json:"redirects,omitempty"` // followed
	Chunked    int64 `json:"chunked,omitempty"`   // answers in chunks; in drop mode they were received by copying

	// arrivals per second of the time in which they came; of a closed loop the same as AchievedRate
	OfferedRate float64 `json:"offered_rate"`
	// operations finished per second (deadline, in flight and cancelled are not finished)
	AchievedRate float64 `json:"achieved_rate"`

	// Lag is how long after its intended start an operation started, for
	// whatever reason; Late is the part of it that the generator caused itself
	// (a connection was free). Seconds.
	Lag  Quantiles `json:"lag"`
	Late Quantiles `json:"late"`
	// Wait is how long an answer lay ready before it was read, as far as the
	// event loop can tell: from its wake-up to the read. Seconds.
	Wait Quantiles `json:"wait"`

	CPU      float64 `json:"cpu"`       // CPU seconds of this process, from start to end
	MaxRSS   int64   `json:"max_rss"`   // bytes, peak of this process
	Threads  int     `json:"threads"`   // event loops; 0 on the net/http path
	Busy     float64 `json:"busy"`      // share of the time that the busiest event loop did not wait for the network
	RunDelay float64 `json:"run_delay"` // share of the time that an event loop waited for a CPU, the worst; NaN is 0

	// Saturated: the generator was the limit, or close to it; Late too. Why
	// says so with numbers. Such a trial measures the generator.
	Saturated bool     `json:"saturated"`
	Behind    bool     `json:"behind"` // operations started later than intended through the generator's own fault
	Why       []string `json:"why,omitempty"`
}

// Quantiles of a distribution, in seconds.
type Quantiles struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// Progress is the state of a trial under way.
type Progress struct {
	At     int64 `json:"at"` // nanoseconds since the epoch
	Ops    int64 `json:"ops"`
	OK     int64 `json:"ok"`
	Failed int64 `json:"failed"` // failures of the server
	Bytes  int64 `json:"bytes"`  // body bytes of finished operations
	// Received is the body bytes of all operations, those under way and warm-ups included.
	Received int64 `json:"received"`
}
