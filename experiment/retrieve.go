package experiment

import (
	"fmt"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// Retrieve is the section of the scenario retrieve.
type Retrieve struct {
	// Workers that each fetch one thing after another (closed loop).
	Concurrency int `json:"concurrency,omitempty" default:"1" min:"1" max:"100000" label:"concurrency" without:"retrieve.arrivals"`
	// Fetch ranges of this size, or whole objects.
	Range Bytes `json:"range" default:"whole" zero:"whole" min:"1B" label:"range" without:"retrieve.mix,retrieve.arrivals.log"`
	// Where ranges begin: anywhere, at multiples of their size, or one after another.
	Order string `json:"order" default:"random" enum:"random,aligned,sequential" label:"order" without:"retrieve.mix,retrieve.arrivals.log"`
	// Popularity of the objects: the k-th is asked for in proportion to 1/k to this power, usually 0.7 to 1.2.
	// uniform: all are alike. Not with order: sequential.
	Zipf float64 `json:"zipf,omitempty" default:"uniform" zero:"uniform" max:"10" label:"zipf" without:"retrieve.arrivals.log"`
	// Keep connections, or dial for each request.
	Connections string `json:"connections" default:"keep" enum:"keep,fresh" label:"connections" without:"retrieve.mix"`
	// Compare every byte, or let the kernel drop them: cheaper, plain HTTP/1.1 only.
	Receive string `json:"receive" default:"verify" enum:"verify,drop" label:"receive" without:"retrieve.mix"`
	// HTTP version. auto: 2 if the server offers it over TLS, else 1.1.
	HTTP string `json:"http" default:"auto" enum:"auto,1.1,2" without:"retrieve.mix"`
	// Open loop: requests arrive regardless of the answers; latency counts from the intended start.
	Arrivals *Arrivals `json:"arrivals,omitempty" without:"retrieve.mix"`
	// Reads, writes and removals by ratio, such as {get: 80, put: 15, delete: 5}, through the system's own client.
	// Closed loop; whole objects; at the end of duration none begins, and those under way are waited for.
	Mix *OperationMix `json:"mix,omitempty"`
	// End a trial after so many requests. One of requests, bytes, duration and per_worker is required, except with
	// steps and log; the first reached ends the trial.
	Requests int64 `json:"requests" default:"none" zero:"none" min:"1"`
	// Begin no request after so many file bytes were asked for; every worker makes at least one.
	Bytes Bytes `json:"bytes" default:"none" zero:"none" without:"retrieve.mix"`
	// End a trial after this time; operations under way count as in-flight.
	Duration Duration `json:"duration" default:"none" zero:"none" min:"1ms"`
	// Requests of each worker; 1 is a single burst.
	PerWorker int `json:"per_worker" default:"none" zero:"none" min:"1" without:"retrieve.mix,retrieve.arrivals"`
}

// Arrivals is an open-loop arrival process.
type Arrivals struct {
	// Evenly spaced; exponential gaps; steps; or the requests of a log, at their times.
	Process string `json:"process" default:"constant" enum:"constant,poisson,steps,log"`
	// Arrival rate. Not with steps and log.
	Rate OpRate `json:"rate,omitempty" label:"arrivals"`
	// Rates and how long each is held.
	Steps []Step `json:"steps,omitempty"`
	// Request log to replay, relative to the experiment file: common or combined format, or a JSON object per line.
	Log string `json:"log,omitempty"`
	// How much faster than it was logged; 1 where it is not given.
	Speed float64 `json:"speed,omitempty" min:"0.001" max:"1000" label:"speed" needs:"log"`
	// Requests at once; if more are needed, the trial is marked as late.
	MaxInFlight int `json:"max_in_flight" default:"10000" min:"1" max:"100000"`

	Found *RequestLog `json:"found,omitempty" yaml:"-"` // of log
}

// RequestLog describes a log that is to be replayed.
type RequestLog struct {
	SHA256    string           `json:"sha256"`
	Size      int64            `json:"size"` // of the file, in bytes
	Requests  int64            `json:"requests"`
	Bytes     int64            `json:"bytes"`               // sent in the answers
	Seconds   float64          `json:"seconds"`             // from the first request to the last
	Paths     int              `json:"paths,omitempty"`     // different ones; 0: more than MaxPaths
	Stored    int64            `json:"stored,omitempty"`    // bytes of an object for each path
	Unplaced  int64            `json:"unplaced,omitempty"`  // ranges whose beginning is not logged
	Unordered int64            `json:"unordered,omitempty"` // requests earlier than the one before
	Back      float64          `json:"back,omitempty"`      // maximum difference in seconds of an unordered request
	Skipped   map[string]int64 `json:"skipped,omitempty"`   // lines, by reason
}

// MaxPaths is the maximum number of objects that are stored for a replay.
const MaxPaths = 100_000

// Text describes the log for the plan.
func (l *RequestLog) Text() string {
	skipped := int64(0)
	for _, n := range l.Skipped {
		skipped += n
	}
	return fmt.Sprintf("%s requests, %s in %s, sha256 %.12s; %s ranges without their beginning, %s requests out "+
		"of order, %s lines left out", words.Count(l.Requests), words.Bytes(float64(l.Bytes)), words.Span(l.Seconds),
		l.SHA256, words.Count(l.Unplaced), words.Count(l.Unordered), words.Count(skipped))
}

// Replays returns the arrivals of a log to replay, or nil.
func (r *Retrieve) Replays() *Arrivals {
	if r == nil || r.Arrivals == nil || r.Arrivals.Process != "log" {
		return nil
	}
	return r.Arrivals
}

// OperationMix holds the shares of operations.
type OperationMix struct {
	// Read an object of data, whole.
	Get int `json:"get" min:"0" max:"1000000"`
	// Store a new object of the same size.
	Put int `json:"put" min:"0" max:"1000000"`
	// Remove the oldest object that puts of the trial have stored; where none is left, store one.
	Delete int `json:"delete" min:"0" max:"1000000"`
}

func (m *OperationMix) check() error {
	if *m == (OperationMix{}) {
		return mistake("such as {get: 80, put: 15, delete: 5}", "it has no operation")
	}
	return nil
}

// Step is a rate held for a time.
type Step struct {
	// Arrival rate.
	Rate OpRate `json:"rate" required:"true"`
	// How long it is held.
	For Duration `json:"for" required:"true" min:"1ms"`
}
