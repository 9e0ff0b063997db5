package httpload

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

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
	CAFile      string  `json:"ca_file,omitempty"`     // extra root certificate for https
	Insecure    bool    `json:"insecure,omitempty"`    // do not check certificates

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
	orderAligned, orderSequential = "aligned", "sequential"
	connFresh                     = "fresh"
	http11, http2Only             = "1.1", "2"
	receiveDrop                   = "drop"
)

// maxThreads is how many event loops there are at most.
const maxThreads = 4

// prepare fills in defaults, and checks what the experiment's own check has not seen: what
// depends on the servers. The error names every problem.
func (s *Spec) prepare() error {
	s.Stall, s.Window = cmp.Or(s.Stall, 30*time.Second), cmp.Or(s.Window, time.Second)
	if len(s.Objects) == 0 {
		return errors.New("httpload: no objects to fetch")
	}
	if s.Arrivals != nil {
		s.MaxInFlight = s.inFlight()
	}
	var errs []error
	for i := range s.Objects {
		o := &s.Objects[i]
		if err := errors.Join(s.checkURL(o), o.checkHeader()); err != nil {
			errs = append(errs, fmt.Errorf("httpload: object %d, %q: %w", i, o.URL, err))
		}
	}
	return errors.Join(errs...)
}

// checkURL is why an object cannot be fetched as the load asks.
func (s *Spec) checkURL(o *Object) error {
	u, err := url.Parse(o.URL)
	if err != nil {
		return err
	}
	switch drop := s.Receive == receiveDrop; {
	case !strings.HasPrefix(s.Objects[0].URL, u.Scheme+":"):
		return fmt.Errorf("all objects of a trial must have the same scheme, as %s", s.Objects[0].URL)
	case u.Scheme == "https" && drop:
		return errors.New("the drop path cannot receive TLS (the kernel cannot discard what has to be decrypted); " +
			"use receive: verify, or http")
	case o.Moved && drop:
		return errors.New("it redirects, which the drop path does not follow; " +
			"use receive: verify, or the URL that it redirects to")
	case u.Scheme == "http" && s.HTTP == http2Only:
		return errors.New("HTTP/2 is offered over https only; use http: auto or 1.1")
	}
	return nil
}

// checkHeader refuses what would be another request than the one that is measured.
func (o *Object) checkHeader() error {
	for name := range o.Header {
		if slices.Contains(reserved, strings.ToLower(name)) {
			return fmt.Errorf("header %s is set by the load generator", name)
		}
	}
	return nil
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
