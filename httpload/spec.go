package httpload

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/plimsoll-project/plimsoll/workload"
)

// Spec is one trial's load. Zero values mean the default that the field's
// comment names. Its JSON form is the input of `plimsoll node load`; durations
// are nanoseconds there.
type Spec struct {
	Objects []Object `json:"objects"`

	// Closed loop: so many connections, each with one request at a time.
	Concurrency int `json:"concurrency,omitempty"`
	// PerWorker bounds the requests of each connection; 0: no bound.
	PerWorker int `json:"per_worker,omitempty"`

	// Open loop when not nil. MaxInFlight bounds its connections (default
	// Concurrency, or 1000); an arrival that finds none free waits, and its
	// latency counts from the intended start.
	Arrivals    *workload.ArrivalSpec `json:"arrivals,omitempty"`
	MaxInFlight int                   `json:"max_in_flight,omitempty"`

	Range int64  `json:"range,omitempty"` // bytes per request; 0: whole objects
	Order string `json:"order,omitempty"` // random (default), aligned, sequential
	// Zipf is the exponent of the popularity of the objects, the first the most popular;
	// 0: all are alike. Not in sequential order.
	Zipf        float64 `json:"zipf,omitempty"`
	Connections string  `json:"connections,omitempty"` // keep (default), fresh: a new connection for every request
	HTTP        string  `json:"http,omitempty"`        // auto (default), 1.1, 2
	Receive     string  `json:"receive,omitempty"`     // verify (default), drop

	// Barrier opens all connections first and then releases them at once, so
	// that a burst is one. Needs a closed loop and kept connections.
	Barrier bool `json:"barrier,omitempty"`

	// Warmup is how many bytes each kept connection of a closed loop fetches before
	// the clock starts, with one request that is no longer than those of the trial, and as
	// long as they where the server does not serve ranges:
	// what is measured then is not TCP's beginning. 0: none. It ends when every
	// connection had an answer of any kind, or after twice Stall. Its operations are
	// of the kind warm-up; one that got no answer, or wrong bytes, counts as usual.
	Warmup int64 `json:"warmup,omitempty"`

	// What ends the trial, the first to come; at least one, or PerWorker.
	// Requests and Bytes bound what is asked for: operations are claimed before
	// they start. Operations in flight when Duration has passed are recorded as
	// such.
	Requests int64         `json:"requests,omitempty"`
	Bytes    int64         `json:"bytes,omitempty"`
	Duration time.Duration `json:"duration,omitempty"`

	// Limits of one operation. Deadline counts from its start; 0: none. Stall
	// is how long no byte may come (default 30 s); the connection must be made
	// and the whole head must come within it, so that a server cannot hold a
	// connection with single header bytes.
	Deadline time.Duration `json:"deadline,omitempty"`
	Stall    time.Duration `json:"stall,omitempty"`

	// Rate of the link that the answers come over, to all shards together, in body bytes
	// per second; 0: unknown. An operation that gets nothing for Stall while the others
	// fill the link is starved, not stalled.
	Rate float64 `json:"rate,omitempty"`

	Seed uint64 `json:"seed,omitempty"`
	// Shard of Shards: of every Shards operations of the load, one belongs to each.
	// FirstWorker is the number of its first connection among those of all.
	Shard       int `json:"shard,omitempty"`
	Shards      int `json:"shards,omitempty"`
	FirstWorker int `json:"first_worker,omitempty"`
	// Window is the time between progress reports (default 1 s); operations
	// reach the sink at least that often.
	Window time.Duration `json:"window,omitempty"`
	// Epoch is nanosecond 0 of all times; default: the moment Run is called.
	Epoch time.Time `json:"epoch,omitzero"`
	// Threads is the number of event loops; default: one per CPU, at most 4 and
	// at most one per connection.
	Threads int `json:"threads,omitempty"`
}

// Object is something to fetch.
type Object struct {
	URL string `json:"url"`
	// Size in bytes; -1: unknown, which allows whole fetches only and cannot
	// tell a truncated object from a short one.
	Size int64 `json:"size"`
	// Within keeps ranges in the object's first bytes, so many; 0: all of it. A
	// Filecoin piece ends in zeros that fill it up, which no client retrieves.
	Within int64               `json:"within,omitempty"`
	Header map[string][]string `json:"header,omitempty"` // beyond Host, Range, Accept-Encoding
	// Undivided: the server does not serve ranges of it.
	Undivided bool `json:"undivided,omitempty"`
	// What the object holds, to compare with: seeded content, or a file that is
	// a copy of it (mapped: its pages count as resident memory of the load
	// process). With neither, only the length is checked.
	Content   *workload.Content `json:"content,omitempty"`
	Reference string            `json:"reference,omitempty"`
	CAFile    string            `json:"ca_file,omitempty"`  // extra root certificate for https
	Insecure  bool              `json:"insecure,omitempty"` // do not check the certificate
	// Follow redirects, at most redirect.Most for a request, where a trial goes through
	// net/http. A redirect that begins in a trial over plain HTTP is an error.
	Follow bool `json:"follow,omitempty"`
	// Moved: its URL is known to redirect. The trial then goes through net/http, which keeps
	// a connection to each server and speaks TLS.
	Moved bool `json:"moved,omitempty"`
}

// span is how many bytes ranges may be drawn from.
func (o *Object) span() int64 {
	if o.Within > 0 {
		return o.Within
	}
	return o.Size
}

const (
	orderRandom, orderAligned, orderSequential = "random", "aligned", "sequential"
	connKeep, connFresh                        = "keep", "fresh"
	httpAuto, http11, http2Only                = "auto", "1.1", "2"
	receiveVerify, receiveDrop                 = "verify", "drop"
)

const (
	// maxConnections bounds what a mistyped concurrency may do.
	maxConnections = 100_000
	// maxThreads is how many event loops there are at most unless more are
	// asked for.
	maxThreads = 4
)

// prepare fills in defaults and checks. The error names every problem.
func (s *Spec) prepare() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("httpload: "+format, args...)) }
	oneOf := func(name string, v *string, values ...string) {
		if *v == "" {
			*v = values[0]
		}
		for _, w := range values {
			if *v == w {
				return
			}
		}
		bad("%s is %q; one of %q", name, *v, values)
	}
	oneOf("order", &s.Order, orderRandom, orderAligned, orderSequential)
	oneOf("connections", &s.Connections, connKeep, connFresh)
	oneOf("http", &s.HTTP, httpAuto, http11, http2Only)
	oneOf("receive", &s.Receive, receiveVerify, receiveDrop)

	if s.Arrivals == nil {
		if s.Concurrency < 1 || s.Concurrency > maxConnections {
			bad("concurrency is %d; 1 to %d", s.Concurrency, maxConnections)
		}
		if s.MaxInFlight != 0 {
			bad("max_in_flight needs arrivals; a closed loop is bounded by its concurrency")
		}
	} else {
		s.MaxInFlight = s.inFlight()
		if s.MaxInFlight < 1 || s.MaxInFlight > maxConnections {
			bad("max_in_flight is %d; 1 to %d", s.MaxInFlight, maxConnections)
		}
		if s.PerWorker != 0 {
			bad("per_worker needs a closed loop")
		}
		if a := s.Arrivals; a.Process == "log" {
			if !(a.Speed > 0) || a.Log == "" || a.AsIs && len(s.Objects) != 1 {
				bad("a replay needs a log, a speed above 0 and, where its paths are asked for as they are, one object")
			}
		} else if _, err := a.Arrivals(s.Seed); err != nil {
			bad("%w", err)
		}
	}
	if s.Shards > 1 && s.Epoch.IsZero() {
		bad("a shard needs the epoch of the whole")
	}
	if s.Shard < 0 || s.FirstWorker < 0 || s.Shard >= max(1, s.Shards) {
		bad("shard %d of %d, first worker %d: want a shard below their number", s.Shard, s.Shards, s.FirstWorker)
	}
	if s.Barrier && (s.Arrivals != nil || s.Connections == connFresh) {
		bad("a barrier needs a closed loop and kept connections")
	}
	if s.Warmup > 0 && (s.Arrivals != nil || s.Connections == connFresh) {
		bad("a warm-up needs a closed loop and kept connections")
	}
	if s.Requests < 0 || s.Warmup < 0 || s.Bytes < 0 || s.Duration < 0 || s.PerWorker < 0 || s.Deadline < 0 || s.Stall < 0 || s.Rate < 0 || s.Range < 0 || s.Window < 0 || s.Threads < 0 {
		bad("requests, warmup, bytes, duration, per_worker, deadline, stall, rate, range, window and threads must not be negative")
	}
	endless := s.Arrivals == nil || s.Arrivals.Process != "steps" && s.Arrivals.Process != "log"
	if s.Requests == 0 && s.Bytes == 0 && s.Duration == 0 && s.PerWorker == 0 && endless {
		bad("nothing ends the trial; set requests, bytes, duration or per_worker")
	}
	if s.Stall == 0 {
		s.Stall = 30 * time.Second
	}
	if s.Window == 0 {
		s.Window = time.Second
	}
	s.prepareObjects(bad)
	return errors.Join(errs...)
}

func (s *Spec) prepareObjects(bad func(string, ...any)) {
	if len(s.Objects) == 0 {
		bad("no objects to fetch")
	}
	scheme := ""
	for i := range s.Objects {
		o := &s.Objects[i]
		u, err := url.Parse(o.URL)
		if err != nil {
			bad("object %d: %w", i, err)
			continue
		}
		if (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" {
			bad("object %d: %q is not an http or https URL", i, o.URL)
			continue
		}
		if scheme == "" {
			scheme = u.Scheme
		}
		switch {
		case u.Scheme != scheme:
			bad("object %d: %q: all objects of a trial must have the same scheme (%s)", i, o.URL, scheme)
		case u.Scheme == "https" && s.Receive == receiveDrop:
			bad("object %d: %q: the drop path cannot receive TLS (the kernel cannot discard what has to be decrypted); use receive: verify, or http", i, o.URL)
		case o.Moved && s.Receive == receiveDrop:
			bad("object %d: %q redirects, which the drop path does not follow; use receive: verify, or the URL that it redirects to", i, o.URL)
		case o.Moved && s.Barrier:
			bad("a barrier needs URLs that do not redirect: net/http cannot open connections ahead")
		case u.Scheme == "https" && s.Barrier:
			bad("a barrier needs plain http: net/http cannot open connections ahead")
		case u.Scheme == "http" && s.HTTP == http2Only:
			bad("object %d: %q: HTTP/2 is offered over https only; use http: auto or 1.1", i, o.URL)
		case s.HTTP == http2Only && s.Receive == receiveDrop:
			bad("the drop path speaks HTTP/1.1 only; use receive: verify, or http: 1.1")
		}
		if u.User != nil {
			bad("object %d: a URL must not hold credentials; use a header", i)
		}
		if o.Size < -1 {
			bad("object %d: size is %d", i, o.Size)
		}
		if o.Within < 0 || o.Within > max(o.Size, 0) {
			bad("object %d: ranges are to be within %d bytes of an object of %d bytes", i, o.Within, o.Size)
		}
		if s.Range > 0 && o.span() < s.Range {
			bad("object %d: a range of %d bytes does not fit an object of %d bytes", i, s.Range, o.span())
		}
		if o.Content != nil && o.Content.Size != o.Size {
			bad("object %d: content of %d bytes for an object of %d bytes", i, o.Content.Size, o.Size)
		}
		if o.Content != nil && o.Reference != "" {
			bad("object %d: has both seeded content and a reference file", i)
		}
		for name, values := range o.Header {
			if !httpguts.ValidHeaderFieldName(name) {
				bad("object %d: %q is not a header name", i, name)
			}
			if reservedHeader(name) {
				bad("object %d: header %s is set by the load generator", i, name)
			}
			for _, v := range values {
				if !httpguts.ValidHeaderFieldValue(v) {
					bad("object %d: header %s has a value that HTTP does not allow", i, name)
				}
			}
		}
	}
}

// inFlight is the most connections of an open loop.
func (s *Spec) inFlight() int { return cmp.Or(s.MaxInFlight, s.Concurrency, 1000) }

// connections is how many connections there can be at once.
func (s *Spec) connections() int {
	if s.Arrivals != nil {
		return s.MaxInFlight
	}
	return s.Concurrency
}
