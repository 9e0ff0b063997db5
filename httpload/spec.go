// Package httpload is the HTTP load generator: it fetches objects, whole or in ranges,
// from a server and records how and when every operation ended.
//
// There are two ways to issue operations: a closed loop (every connection sends the next
// request when its answer is complete) and an open loop (an arrival process decides, and
// latencies count from the intended start). There are two ways to receive, stated in
// every result: verify compares every byte with the object's content; drop lets the kernel
// discard the payload (recv with MSG_TRUNC), which takes a tenth of the CPU and checks only
// status, Content-Range and length.
//
// For plain HTTP/1.1 it uses its own client, with one event loop per thread
// (loop_linux.go): net/http needs several times the CPU, and only our own event loop knows
// how long an answer waited for us. TLS and HTTP/2 use net/http (nethttp.go).
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

// Spec is the load of a trial. Zero values mean the default in the comment of the field. Its
// JSON is the input of `plimsoll node load`, with durations in nanoseconds.
type Spec struct {
	Objects []Object `json:"objects"`

	// Closed loop: number of connections, each with one request at a time.
	Concurrency int `json:"concurrency,omitempty"`
	// PerWorker limits the requests of each connection; 0: no limit.
	PerWorker int `json:"per_worker,omitempty"`

	// Open loop if not nil. MaxInFlight limits its connections; an arrival that finds none
	// free waits, and its latency counts from the intended start.
	Arrivals    *workload.ArrivalSpec `json:"arrivals,omitempty"`
	MaxInFlight int                   `json:"max_in_flight,omitempty"`

	Range int64  `json:"range,omitempty"` // bytes per request; 0: whole objects
	Order string `json:"order,omitempty"` // random (default), aligned, sequential
	// Zipf is the exponent of the popularity of objects, of which the first is the most
	// popular; 0: all are equally popular. Not in sequential order.
	Zipf        float64 `json:"zipf,omitempty"`
	Connections string  `json:"connections,omitempty"` // keep (default), fresh: a new connection for every request
	HTTP        string  `json:"http,omitempty"`        // auto (default), 1.1, 2
	Receive     string  `json:"receive,omitempty"`     // verify (default), drop
	CAFile      string  `json:"ca_file,omitempty"`     // root certificates besides the system's
	Insecure    bool    `json:"insecure,omitempty"`    // do not check certificates

	// Warmup is how many bytes each kept connection of a closed loop fetches before the
	// clock starts, so that TCP's slow start is not measured. It is one request, which is
	// not longer than those of the trial, and has their length if the server does not
	// support ranges. 0: none. The warm-up ends when every connection has had an answer of
	// any kind, or after twice Stall. Its operations have the kind warm-up; one without an
	// answer, or with wrong bytes, counts as usual.
	Warmup int64 `json:"warmup,omitempty"`

	// The trial ends with the first of these limits; at least one, or PerWorker, is
	// required. Requests and Bytes limit what is requested, since operations are claimed
	// before they start; Bytes leave one to each connection of a closed loop. Operations
	// in flight after Duration are recorded as such.
	Requests int64         `json:"requests,omitempty"`
	Bytes    int64         `json:"bytes,omitempty"`
	Duration time.Duration `json:"duration,omitempty"`

	// Limits of one operation. Deadline counts from its start; 0: none. Stall is the
	// longest time without any byte (default 30 s). Connecting, and receiving the whole
	// head, must also take less, so that a server cannot hold a connection with single
	// bytes of the head.
	Deadline time.Duration `json:"deadline,omitempty"`
	Stall    time.Duration `json:"stall,omitempty"`

	// Rate of the link for answers to all shards together, in body bytes per second; 0:
	// unknown. An operation that receives nothing for Stall while others fill the link is
	// starved, not stalled.
	Rate float64 `json:"rate,omitempty"`

	Seed uint64 `json:"seed,omitempty"`
	// Shard of Shards: of every Shards operations of the load, each shard executes one.
	// FirstWorker is the number of its first connection among those of all shards.
	Shard       int `json:"shard,omitempty"`
	Shards      int `json:"shards,omitempty"`
	FirstWorker int `json:"first_worker,omitempty"`
	// Window is the interval of progress reports (default 1 s); operations are passed to
	// the sink at least that often.
	Window time.Duration `json:"window,omitempty"`
	// Epoch is nanosecond 0 of all times; default: when Run is called.
	Epoch time.Time `json:"epoch,omitzero"`
}

// Object is something to fetch.
type Object struct {
	URL string `json:"url"`
	// Size in bytes; -1: unknown, which allows only whole fetches and cannot distinguish a
	// truncated object from a short one.
	Size int64 `json:"size"`
	// Within limits ranges to this many first bytes of the object; 0: all of it. A Filecoin
	// piece ends with padding, which no client retrieves.
	Within int64               `json:"within,omitempty"`
	Header map[string][]string `json:"header,omitempty"` // in addition to Host, Range, Accept-Encoding
	// Undivided is why the server does not serve ranges of it; empty: it does.
	Undivided string `json:"undivided,omitempty"`
	// The content to compare with: seeded content, or a file with a copy (which is mapped,
	// so its pages count as resident memory of the load process). With neither, only the
	// length is checked.
	Content   *workload.Content `json:"content,omitempty"`
	Reference string            `json:"reference,omitempty"`
	// Moved: its URL is known to redirect. Then the trial uses net/http, which follows at most
	// redirect.Most per request, keeps a connection to each server and supports TLS. In a trial
	// over plain HTTP a redirect is an error.
	Moved bool `json:"moved,omitempty"`
}

// Span returns the number of bytes from which ranges are drawn; -1: unknown.
func (o *Object) Span() int64 {
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

// maxThreads is the largest number of event loops.
const maxThreads = 4

// prepare sets defaults, and checks what the experiment's validation cannot check because it
// depends on the servers. The error lists every problem.
func (s *Spec) prepare() error {
	s.Stall, s.Window = cmp.Or(s.Stall, 30*time.Second), cmp.Or(s.Window, time.Second)
	if len(s.Objects) == 0 {
		return errors.New("httpload: no objects to fetch")
	}
	var errs []error
	for i := range s.Objects {
		o := &s.Objects[i]
		if err := errors.Join(s.checkURL(o), o.checkHeader()); err != nil {
			public, _, _ := strings.Cut(o.URL, "?") // a presigned URL has its signature in the query
			errs = append(errs, fmt.Errorf("httpload: object %d, %q: %w", i, public, err))
		}
	}
	return errors.Join(errs...)
}

// checkURL returns an error if an object cannot be fetched as requested.
func (s *Spec) checkURL(o *Object) error {
	u, err := url.Parse(o.URL)
	if err != nil {
		return err
	}
	switch drop := s.Receive == receiveDrop; {
	case !strings.HasPrefix(s.Objects[0].URL, u.Scheme+":"):
		return errors.New("all objects of a trial must have the same scheme")
	case u.Scheme == "https" && drop:
		return errors.New("the drop path cannot receive TLS (the kernel cannot discard what has to be decrypted); " +
			"use receive: verify, or http")
	case o.Moved && drop:
		return errors.New("it redirects, which the drop path does not follow; " +
			"use receive: verify, or the URL that it redirects to")
	}
	return nil
}

// checkHeader refuses header fields that would change the measured request.
func (o *Object) checkHeader() error {
	for name := range o.Header {
		if slices.Contains(reserved, strings.ToLower(name)) {
			return fmt.Errorf("header %s is set by the load generator", name)
		}
	}
	return nil
}

// connections returns the largest number of simultaneous connections.
func (s *Spec) connections() int {
	if s.Arrivals != nil {
		return s.MaxInFlight
	}
	return s.Concurrency
}

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
