package httpload

// Result is what the operations of a trial's load do not say.
type Result struct {
	Receive  string // the receive path, and what was compared
	Protocol string // "http/1.1", "h2", or both
	Clocks   []ClockOffset
	// Nanoseconds since the epoch: when the load started, and when the last operation
	// ended, the arrivals ended, or the window ended.
	Started, Ended int64

	// OfferedRate is the number of arrivals per second of the time in which they came; 0 in a closed loop.
	OfferedRate float64
	Warmed      int64   // bytes of the warm-up, which are in no other number
	Redirects   int64   // followed
	CPU         float64 // CPU seconds of this process, from start to end

	// Saturated: the generator was the bottleneck, or close to it. Behind: it caused
	// operations to start late. Why gives the reasons with numbers. Such a trial measures the
	// generator.
	Saturated, Behind bool
	Why               []string
}

// Progress is the state of a running trial.
type Progress struct {
	Ops   int64 // ended operations
	Bytes int64 // body bytes, including those of operations in flight and of warm-ups
}
