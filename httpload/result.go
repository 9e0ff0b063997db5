package httpload

// Result is the result of a trial's load. Rates are per second of Ended − Started.
type Result struct {
	Counts
	Receive  string // the receive path, and what was compared
	Protocol string // "http/1.1", "h2", or both
	Open     bool   // an open loop
	Clocks   []ClockOffset
	// Nanoseconds since the epoch: when the load started, and when the last operation
	// ended, the arrivals ended, or the window ended.
	Started, Ended int64

	// arrivals per second of the time in which they came; in a closed loop equal to AchievedRate
	OfferedRate float64
	// operations finished per second (deadline, in flight and cancelled are not finished)
	AchievedRate float64
	// Lag is the time in seconds from the intended to the actual start of an operation, for
	// whatever reason, at p99; Late is the part caused by the generator (a connection was free).
	Lag, Late float64
	// Wait is the median time in seconds from when an answer was ready until it was read, as far
	// as the event loop knows: from its wake-up to the read.
	Wait float64

	CPU      float64 // CPU seconds of this process, from start to end
	MaxRSS   int64   // bytes, peak of this process
	Threads  int     // number of event loops; 0 with net/http
	Busy     float64 // share of the time that the busiest event loop did not wait for the network
	RunDelay float64 // largest share of the time that an event loop waited for a CPU

	// Saturated: the generator was the bottleneck, or close to it. Behind: it caused
	// operations to start late. Why gives the reasons with numbers. Such a trial measures the
	// generator.
	Saturated, Behind bool
	Why               []string
}

// Progress is the state of a running trial.
type Progress struct {
	At    int64 // nanoseconds since the epoch
	Ops   int64 // ended operations
	Bytes int64 // body bytes, including those of operations in flight and of warm-ups
}
