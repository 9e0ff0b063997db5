package experiment

import (
	"cmp"
	"fmt"
	"math"
	"slices"

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

// checkRetrieve returns an error for a cell that cannot be executed. It converts a bound in bytes
// into one in requests if sizes are known.
func (c *combination) checkRetrieve(cell *Cell, r *Retrieve) *Error {
	size, log := cell.Data.Size, r.Replays()
	switch {
	case size > 0 && r.Range > size:
		return c.impossible(rangePath, "make the objects larger", "a range of %s does not fit into an object of %s",
			r.Range, size)
	case r.Receive == "drop" && r.HTTP == "2":
		return c.impossible("retrieve.receive", "use receive: verify, or http: auto",
			"receive: drop is for HTTP/1.1")
	case log != nil && log.Found != nil && log.Found.Paths == 0 && cell.Data.Objects > 0:
		return c.impossible("retrieve.arrivals.log", "replay a part of the log, or attach to a server with the objects",
			"the log has more than %d different paths, for each of which an object would be stored", MaxPaths)
	case r.Zipf > 0 && r.Order == "sequential":
		return c.impossible("retrieve.zipf", "use order: random or aligned, or zipf: uniform",
			"in sequential order no object is more popular than another")
	case r.Mix != nil && size == 0:
		return c.impossible(dataSizePath, "write `data: {size: 64MiB}`", "`retrieve.mix` needs objects of a known size")
	}
	if r.Arrivals != nil {
		r.Concurrency = 0
	}
	if n := requestBytes(cell.Data, r); r.Bytes > 0 && n > 0 {
		requests := max(int64(r.Concurrency), int64((r.Bytes-1)/n+1))
		if r.Requests == 0 || requests < r.Requests {
			r.Requests = requests
		}
		r.Bytes = 0
	}
	return nil
}

// requestBytes returns the file bytes of one request, or 0 if the size of the objects is not known.
func requestBytes(d Data, r *Retrieve) Bytes { return cmp.Or(r.Range, d.Size) }

// knownBytes returns the file bytes of one request, or a guess if they are unknown.
func knownBytes(c *Cell) float64 {
	return cmp.Or(float64(requestBytes(c.Data, c.Retrieve)), unknownSize)
}

// closedLoop estimates workers that each make requests of n bytes one after the other, until all
// are made or the trial's time is over. An operation ends at its deadline, with the bytes received
// by then.
func closedLoop(c *Cell, n, goodput float64, limits Limits) CellEstimate {
	r := c.Retrieve
	requests := min(unlimited(float64(r.Requests)), unlimited(float64(r.PerWorker)*float64(r.Concurrency)))
	if r.Bytes > 0 {
		requests = min(requests, max(float64(r.Concurrency), math.Ceil(float64(r.Bytes)/n)))
	}
	workers := math.Min(float64(r.Concurrency), requests)
	rounds := 1.0
	if r.Connections == "fresh" {
		rounds = 2
	}
	est := CellEstimate{Operation: c.operation(workers, rounds, 0, n, goodput)}
	took := math.Min(est.Operation, limits.Deadline.Seconds())
	est.Seconds = min(requests/workers*took, unlimited(r.Duration.Seconds()))
	est.Bytes = workers * n * est.Seconds / est.Operation
	return est
}

// openLoop estimates requests that arrive independently of the answers; the link may not be able to
// carry them all.
func openLoop(r *Retrieve, n, goodput float64) CellEstimate {
	a := r.Arrivals
	rate, held := float64(a.Rate), 0.0 // rate of requests per second, and how long they arrive; 0: without end
	switch {
	case a.Process == "steps":
		var arrivals float64
		for _, s := range a.Steps {
			arrivals += float64(s.Rate) * s.For.Seconds()
			held += s.For.Seconds()
		}
		rate = arrivals / held
	case a.Process == "log" && a.Found == nil:
		return CellEstimate{}
	case a.Process == "log":
		held = max(a.Found.Seconds/a.Speed, 1e-3) // the duration of a log with one request is 0 s
		rate, n = float64(a.Found.Requests)/held, float64(a.Found.Bytes)/float64(a.Found.Requests)
	}
	ends := min(unlimited(held), unlimited(r.Duration.Seconds()), unlimited(float64(r.Requests)/rate),
		unlimited(float64(r.Bytes)/n/rate))
	return CellEstimate{Seconds: ends, Operation: n / goodput, Bytes: ends * math.Min(rate*n, goodput)}
}

// Overhead is the section of the scenario overhead. The size of the objects is data.size, the round
// trip twice link.delay.
type Overhead struct {
	// What is timed. put: store until accepted; put-durable: until fully redundant; put-dir: store and enter into a
	// directory; get; range: data.size bytes of a larger object; stat; update: replace a mutable object; delete;
	// fill: add many objects, then fetch and stat some.
	Operation string `json:"operation,omitempty" default:"put" enum:"put,put-durable,put-dir,get,range,stat,update,delete,fill" label:"operation"`
	// Keep connections (opened by an untimed operation), or use fresh ones for each operation.
	Connections string `json:"connections" default:"keep" enum:"keep,fresh" label:"connections"`
	// Operations at once. Costs are fitted for 1 only; higher values show memory.
	Concurrency int `json:"concurrency,omitempty" default:"1" min:"1" max:"1000" label:"concurrency"`
	// Operations of a trial at most, per concurrent one; in fill, of those that fetch and those that stat.
	Count int `json:"count" default:"5" min:"1" max:"100000"`
	// No operation begins after this time in a trial; one always runs. Does not bound the adding of fill.
	Time Duration `json:"time" default:"10s" min:"1ms"`
	// Size of the object that range reads from.
	RangeOf Bytes `json:"range_of" default:"16MiB" min:"1B"`
	// Objects that each trial of fill adds. They stay, so each block finds more.
	Objects int `json:"objects" default:"1000" min:"1" max:"1000000"`
}

// Writes reports whether an operation sends a file's bytes to storage nodes.
func Writes(operation string) bool {
	return slices.Contains([]string{"put", "put-durable", "put-dir", "update"}, operation)
}

// checkOverhead returns an error for a cell that cannot be executed.
func (c *combination) checkOverhead(cell *Cell, o *Overhead) *Error {
	switch {
	case o.Operation == "range" && cell.Data.Size > o.RangeOf:
		return c.impossible(dataSizePath, "make overhead.range_of larger",
			"the range does not fit into an object of %s", o.RangeOf)
	case o.Connections == "fresh" && o.Concurrency > 1:
		return c.impossible("overhead.connections", "fresh connections need concurrency 1",
			"no operation of several at once can have connections of its own")
	}
	return nil
}

// Assumptions of the estimate of an operation, besides the link. They are rough, and rather too
// high than too low.
const (
	// guessedTrips is the number of sequential round trips of an operation: the nine that the study
	// found for a small file on Tahoe-LAFS, and one more. Baselines take one or two.
	guessedTrips = 10
	// freshTrips are the round trips for new connections: TCP and TLS, and TCP's slow start.
	freshTrips = 4
	// guessedWork is the time that client and servers work for an operation, in seconds.
	guessedWork = 0.02
)

// estimateOverhead estimates the time and the file bytes of one trial: as many operations as
// `count` and `time` allow, each with guessedTrips round trips and its bytes at the link's rate,
// shared among concurrent operations; if connections are kept, one more operation opens them.
func estimateOverhead(c *Cell, goodput float64, limits Limits) CellEstimate {
	o := c.Overhead
	n := float64(c.Data.Size)
	if o.Operation == "stat" || o.Operation == "delete" {
		n = 0
	}
	trips := float64(guessedTrips)
	if o.Connections == "fresh" {
		trips += freshTrips
	}
	workers := float64(o.Concurrency)
	est := CellEstimate{Operation: c.operation(workers, trips, guessedWork, n, goodput)}
	took := math.Min(est.Operation, limits.Deadline.Seconds())
	each := math.Min(float64(o.Count), math.Max(1, math.Ceil(o.Time.Seconds()/took)))
	if o.Operation == "fill" {
		added := math.Ceil(float64(o.Objects) / workers)
		est.Seconds = (added + 2*each) * took
		est.Bytes = (float64(o.Objects) + workers*each) * n
		return est
	}
	if o.Connections == "keep" {
		each++
	}
	est.Seconds = each * took
	est.Bytes = workers * each * n
	return est
}

// Upload is the section of the scenario upload: store a whole data set in a system, for as long as
// it takes. One trial is one load test; if Plimsoll ends for any reason, `plimsoll resume`
// continues the test.
type Upload struct {
	// Objects under way at once: each until it is at full redundancy, where the system reports that.
	Concurrency int `json:"concurrency,omitempty" default:"5" min:"1" max:"1000" label:"uploads at a time"`
	// The test is done when every object is accepted, or also at full redundancy where the system reports it.
	Until string `json:"until" default:"durable" enum:"accepted,durable"`
	// Time from accepted to durable before an object counts as under way no longer; it is measured with
	// until: accepted, too. With until: durable, late objects are looked at again at the end for as long.
	Settle Duration `json:"settle" default:"1h" min:"1s"`
	// How often a failed object is tried again.
	Retries int `json:"retries" default:"3" min:"0" max:"1000"`
	// Pause before the first retry; each further one is five times as long, up to ten minutes.
	Backoff Duration `json:"backoff" default:"1s" min:"1ms"`
	// Interval of the polls of contracts, files, money and storage.
	Poll Duration `json:"poll" default:"1m" min:"100ms"`
	// Share of the stored objects, chosen by the seed, that are fetched and compared at the end. Paid systems
	// charge for it.
	Verify Fraction `json:"verify" default:"0%"`
	// Leave stored objects on an attached system, or remove them when the test is done or met an exit condition.
	After string `json:"after" default:"keep" enum:"keep,remove"`
	// What must hold before the first upload.
	Need Need `json:"need"`
	// Price of one unit of the system's currency, with date or source, such as "0.014 USD (2018-06-01)"; the report
	// then converts costs.
	Price PriceText `json:"price,omitempty"`
}

// Need holds conditions for a load test to begin: it waits for them, and fails if they are not met
// in time.
type Need struct {
	// Money available, at least, in the system's currency: 500.
	Balance Money `json:"balance,omitempty"`
	// Contracts with servers, at least.
	Contracts int `json:"contracts" default:"0" min:"0" max:"100000"`
	// Time for the system to be synced, unlocked and have its contracts.
	Wait Duration `json:"wait" default:"30m" min:"1s"`
}

// Collect is the section of the scenario collect, which only polls, until its end. `plimsoll
// collect` runs it.
type Collect struct {
	// Interval of the polls.
	Every Duration `json:"every" default:"1m" min:"100ms"`
	// How long. none: until interrupted, or until an exit condition is met.
	For Duration `json:"for" default:"none" zero:"none"`
	// Price of one unit of the system's currency, with date or source.
	Price PriceText `json:"price,omitempty"`
}

// leastWork is a lower bound of the time to store an object besides link and round trip, in
// seconds: less than any storage system needs.
const leastWork = 0.001

// estimateUpload returns the least time to store the data set: all its bytes at the link's rate, or
// a round trip and leastWork for each object, divided by the concurrency. What a system takes
// beyond that is the subject of the test.
func estimateUpload(c *Cell, goodput float64) CellEstimate {
	if !c.Data.Known() {
		return CellEstimate{Bound: Unknown}
	}
	objects, bytes := c.Data.Total()
	workers := float64(c.Upload.Concurrency)
	took := c.operation(workers, 1, leastWork, bytes/objects, goodput)
	return CellEstimate{Seconds: objects / workers * took, Bytes: bytes, Operation: took, Bound: AtLeast}
}
