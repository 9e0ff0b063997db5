package httpload

// Result is what a trial's load came to. Rates are per second of Ended − Started.
type Result struct {
	Counts
	Receive  string // the receive path, and what was compared
	Protocol string // what was spoken: "http/1.1", "h2", or both
	Open     bool   // an open loop
	Clocks   []ClockOffset
	// Nanoseconds since the epoch: when the connections were released, and when
	// the last operation was decided, the arrivals ended, or the window closed.
	Started, Ended int64

	// arrivals per second of the time in which they came; of a closed loop the same as AchievedRate
	OfferedRate float64
	// operations finished per second (deadline, in flight and cancelled are not finished)
	AchievedRate float64
	// Lag is how long after its intended start an operation started, for
	// whatever reason; Late is the part of it that the generator caused itself
	// (a connection was free).
	Lag, Late Quantiles
	// Wait is how long an answer lay ready before it was read, as far as the
	// event loop can tell: from its wake-up to the read.
	Wait Quantiles

	CPU      float64 // CPU seconds of this process, from start to end
	MaxRSS   int64   // bytes, peak of this process
	Threads  int     // event loops; 0 on the net/http path
	Busy     float64 // share of the time that the busiest event loop did not wait for the network
	RunDelay float64 // share of the time that an event loop waited for a CPU, the worst

	// Saturated: the generator was the limit, or close to it; Behind: operations started later
	// than intended through its own fault. Why says so with numbers. Such a trial measures
	// the generator.
	Saturated, Behind bool
	Why               []string
}

// Quantiles of a distribution, in seconds.
type Quantiles struct{ P50, P99 float64 }

// Progress is the state of a trial under way.
type Progress struct {
	At    int64 // nanoseconds since the epoch
	Ops   int64 // that have ended
	Bytes int64 // of bodies, those of operations under way and of warm-ups included
}
