package workload

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Arrivals determines when operations should start, on its own clock: it is a pure function of
// time, so a slow server cannot delay it. (The interface resembles the Pacer of
// github.com/tsenart/vegeta.)
type Arrivals interface {
	// Pace returns how long after elapsed the next operation should start, given that hits
	// operations were due by then. elapsed is the intended time of the latest of them (0 before the
	// first), not its actual start. stop reports that no operation follows.
	Pace(elapsed time.Duration, hits uint64) (wait time.Duration, stop bool)
}

// ArrivalSpec describes an arrival process as data.
type ArrivalSpec struct {
	Process string  `json:"process"`        // "constant", "poisson", "steps", "log"
	Rate    float64 `json:"rate,omitempty"` // operations per second
	Steps   Steps   `json:"steps,omitempty"`

	// For the process log: the file to replay, and how much faster.
	Log     string  `json:"log,omitempty"`
	LogSize int64   `json:"log_size,omitempty"` // bytes of the file, which may have grown since
	Speed   float64 `json:"speed,omitempty"`
	// AsIs requests the paths of the log unchanged from the server of the first object. Otherwise
	// the first object replaces the first path, and so on.
	AsIs bool `json:"as_is,omitempty"`
}

// Arrivals returns the process. It requires rates above 0 and does not support "log". seed is the
// seed of a Poisson process.
func (a ArrivalSpec) Arrivals(seed uint64) Arrivals {
	switch a.Process {
	case "constant":
		return Steps{{a.Rate, math.MaxInt64}}
	case "poisson":
		return Poisson{a.Rate, seed}
	}
	return a.Steps
}

// Poisson starts operations at independent, exponentially distributed intervals with mean
// 1/PerSecond, which is above 0. The k-th interval depends only on the seed and k.
type Poisson struct {
	PerSecond float64
	Seed      uint64
}

func (p Poisson) Pace(_ time.Duration, hits uint64) (time.Duration, bool) {
	return seconds(-math.Log(Uniform(p.Seed, hits)) / p.PerSecond), false
}

// Step is a part of [Steps]: a constant rate for a period.
type Step struct {
	PerSecond float64       `json:"rate"`
	For       time.Duration `json:"for"`
}

// Steps applies one rate after another, the first from the start, and then stops. A rate of 0 is a
// pause.
type Steps []Step

func (s Steps) Pace(elapsed time.Duration, hits uint64) (time.Duration, bool) {
	n, from := float64(hits), time.Duration(0)
	for _, st := range s {
		// Computed from the count, not from the latest arrival, so that rounding to nanoseconds
		// does not accumulate.
		if in := st.PerSecond * st.For.Seconds(); n < in {
			return from + seconds(n/st.PerSecond) - elapsed, false
		} else {
			n -= in
		}
		from += st.For
	}
	return 0, true
}

func seconds(s float64) time.Duration {
	if s > math.MaxInt64/1e9 {
		return math.MaxInt64
	}
	return time.Duration(math.Round(s * 1e9))
}

// LoggedRequest is a request from a server's log.
type LoggedRequest struct {
	At     time.Duration // since the first request of the log
	Path   string        // with its query, as requested
	Head   bool          // without a body: HEAD, or status 304
	Offset int64
	Length int64 // of a range; -1: the whole object
	Bytes  int64 // of the body sent
}

// RequestLog reads a request log in constant memory, request by request: lines in the common or
// combined format, which nginx, Apache and others write, or one JSON object per line.
//
// Most logs have a resolution of one second: requests of the same second are spread evenly over it.
// A line that is earlier than its predecessor gets the predecessor's time, because some servers log
// a request when it ends, with the time at which it began. A line that is more than a minute
// earlier is an error.
type RequestLog struct {
	Skipped   map[string]int64 // lines that cannot be replayed, by reason
	Unplaced  int64            // ranges whose start is not logged: they are replayed from 0
	Unordered int64            // requests earlier than their predecessor
	Back      time.Duration    // the most by which a request is earlier

	file  string
	in    *bufio.Scanner
	line  int
	begun bool
	over  bool
	first time.Duration // since 1970, like all times before Next returns them
	next  LoggedRequest
	batch []LoggedRequest // with the same time
	given int
}

const (
	maxLogLine = 1 << 20
	maxAtOnce  = 1 << 16 // requests with the same time
	maxSkipped = 20      // number of different reasons
	maxBack    = time.Minute
)

// NewRequestLog returns a log read from r; file is its name in error messages.
func NewRequestLog(r io.Reader, file string) *RequestLog {
	l := &RequestLog{Skipped: map[string]int64{}, file: file, in: bufio.NewScanner(r)}
	l.in.Buffer(make([]byte, 64<<10), maxLogLine)
	return l
}

// Next returns the next request that can be replayed, or io.EOF.
func (l *RequestLog) Next() (LoggedRequest, error) {
	if l.given == len(l.batch) {
		if err := l.fill(); err != nil {
			return LoggedRequest{}, err
		}
	}
	l.given++
	return l.batch[l.given-1], nil
}

// fill reads the next requests with the same time.
func (l *RequestLog) fill() error {
	l.batch, l.given = l.batch[:0], 0
	if !l.begun {
		if err := l.read(); err != nil {
			return err
		}
		l.begun, l.first = true, l.next.At
	}
	if l.over {
		return io.EOF
	}
	at := l.next.At
	for !l.over && l.next.At == at {
		if len(l.batch) == maxAtOnce {
			return l.errorf("more than %d requests have the same time", maxAtOnce)
		}
		l.batch = append(l.batch, l.next)
		if err := l.read(); err != nil {
			return err
		}
	}
	var spread time.Duration
	if at%time.Second == 0 {
		spread = time.Second
		if !l.over {
			spread = min(spread, l.next.At-at)
		}
	}
	for i := range l.batch {
		l.batch[i].At = at - l.first + spread*time.Duration(i)/time.Duration(len(l.batch))
	}
	return nil
}

func (l *RequestLog) errorf(format string, args ...any) error {
	return fmt.Errorf("%s:%d: %w", l.file, l.line, fmt.Errorf(format, args...))
}

// read sets next, or over at the end of the log.
func (l *RequestLog) read() error {
	before := l.next.At
	for l.in.Scan() {
		l.line++
		text := strings.TrimSpace(l.in.Text())
		if text == "" || text[0] == '#' { // a comment: extended logs have them
			continue
		}
		parse := common
		if text[0] == '{' {
			parse = object
		}
		e, err := parse(text)
		if err != nil {
			return l.errorf("%w", err)
		}
		var skip string
		if l.next, skip = l.request(&e); skip == "" {
			return l.order(before)
		}
		if l.Skipped[skip] == 0 && len(l.Skipped) >= maxSkipped {
			skip = "other"
		}
		l.Skipped[skip]++
	}
	l.over = true
	if err := l.in.Err(); err != nil {
		l.line++
		return l.errorf("%w", err)
	}
	if !l.begun {
		return fmt.Errorf("%s: no line can be replayed", l.file)
	}
	return nil
}

// order gives next the time of its predecessor if it is earlier.
func (l *RequestLog) order(before time.Duration) error {
	back := before - l.next.At
	if !l.begun || back <= 0 {
		return nil
	}
	if back > maxBack {
		return l.errorf("the request is %v earlier than the one before it: sort the log by time",
			back.Round(time.Second))
	}
	l.Unordered, l.Back, l.next.At = l.Unordered+1, max(l.Back, back), before
	return nil
}

// logEntry is a line of the log.
type logEntry struct {
	at           time.Duration // since 1970
	method, path string
	status       int
	bytes        int64
	ranged       string // Range header; empty: none, or not logged
}

// request returns the request of an entry, or why it cannot be replayed.
func (l *RequestLog) request(e *logEntry) (r LoggedRequest, skip string) {
	r = LoggedRequest{At: e.at, Path: e.path, Length: -1, Bytes: e.bytes}
	if e.method != "GET" && e.method != "HEAD" {
		return r, e.method
	}
	if e.status != 200 && e.status != 206 && e.status != 304 { // other answers may not be an object
		return r, "status " + strconv.Itoa(e.status)
	}
	u, err := url.ParseRequestURI(r.Path)
	if err != nil || r.Path[0] != '/' {
		return r, "no path"
	}
	r.Path = strings.ReplaceAll(u.RequestURI(), " ", "%20") // as written in a request line
	if r.Head = e.method == "HEAD" || e.status == 304; r.Head || e.status != 206 {
		return r, ""
	}
	// A range is as long as the part of it that was sent.
	if r.Length = e.bytes; r.Length == 0 {
		return r, "empty range"
	}
	if e.ranged == "" {
		l.Unplaced++
		return r, ""
	}
	from, to, _ := strings.Cut(strings.TrimPrefix(e.ranged, "bytes="), "-")
	if r.Offset, err = strconv.ParseInt(from, 10, 64); err != nil || r.Offset < 0 || strings.Contains(to, ",") {
		return r, "several ranges, or one from the end"
	}
	return r, ""
}

// common parses a line in the common or combined format. A quoted text after these fields may be
// the Range header.
func common(line string) (e logEntry, err error) {
	_, rest, _ := strings.Cut(line, "[")
	stamp, rest, is := strings.Cut(rest, `] "`)
	if !is {
		return e, errors.New(`not a line of a request log: no [time] "request"`)
	}
	if e.at, err = loggedTime(stamp); err != nil {
		return e, err
	}
	request, rest := quoted(rest)
	e.method, e.path, is = requested(request)
	if !is {
		e.method = "no HTTP request"
	}
	fields := strings.SplitN(strings.TrimPrefix(rest, " "), " ", 3)
	if len(fields) < 2 {
		return e, errors.New("no status and bytes after the request")
	}
	if err := e.numbers(fields[0], fields[1]); err != nil {
		return e, err
	}
	for more := strings.Join(fields[2:], ""); more != ""; {
		var text string
		if _, more, is = strings.Cut(more, `"`); !is {
			break
		}
		if text, more = quoted(more); strings.HasPrefix(text, "bytes=") {
			e.ranged = text
		}
	}
	return e, nil
}

// quoted returns the text up to the next quote, and the text after it. Servers write a quote inside
// the text as \x22 or \".
func quoted(s string) (text, rest string) {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return s[:i], s[i+1:]
		}
	}
	return s, ""
}

// requested parses "GET /path HTTP/1.1".
func requested(line string) (method, path string, ok bool) {
	method, rest, _ := strings.Cut(line, " ")
	path, proto, ok := strings.Cut(rest, " ")
	return method, strings.ReplaceAll(path, `\x`, "%"), ok && strings.HasPrefix(proto, "HTTP/")
}

func (e *logEntry) numbers(status, bytes string) (err error) {
	if e.status, err = strconv.Atoi(status); err != nil {
		return fmt.Errorf("the status is %q", status)
	}
	if bytes == "-" || bytes == "" {
		return nil
	}
	if e.bytes, err = strconv.ParseInt(bytes, 10, 64); err != nil || e.bytes < 0 {
		return fmt.Errorf("the number of bytes is %q", bytes)
	}
	return nil
}

// object parses a JSON object with the names of nginx variables or those in the logs of IPFS
// gateways.
func object(line string) (e logEntry, err error) {
	var v map[string]json.RawMessage
	var headers map[string]string
	if err := json.Unmarshal([]byte(line), &v); err != nil {
		return e, fmt.Errorf("not a JSON object of a request: %w", err)
	}
	of := func(names ...string) (text string) {
		for _, name := range names {
			if json.Unmarshal(v[name], &text) != nil { // it has no quotes
				text = string(v[name])
			}
			if text != "" {
				break
			}
		}
		return text
	}
	if e.at, err = loggedTime(of("msec", "time", "ts", "timestamp", "time_iso8601", "time_local")); err != nil {
		return e, err
	}
	e.method, e.path = of("method", "request_method"), of("request_uri", "uri", "path")
	if e.path == "" {
		e.method, e.path, _ = requested(of("request"))
	}
	if e.method == "" || e.path == "" {
		return e, errors.New("the object has no method, or no uri")
	}
	e.ranged = of("http_range", "range")
	_ = json.Unmarshal([]byte(of("headers")), &headers) // optional; some logs have them as a string
	for name, value := range headers {
		if strings.EqualFold(name, "Range") {
			e.ranged = value
		}
	}
	size := of("body_bytes_sent", "resp_body_size", "bytes")
	if err := e.numbers(of("status"), size); err != nil {
		return e, err
	}
	if size == "" && e.method == "GET" && (e.status == 200 || e.status == 206) {
		return e, errors.New("the object has no number of bytes: body_bytes_sent, resp_body_size or bytes")
	}
	return e, nil
}

// loggedTime parses a time and returns the time since 1970.
func loggedTime(stamp string) (time.Duration, error) {
	if s, err := strconv.ParseFloat(stamp, 64); err == nil && s >= 0 && s < 1e10 {
		return time.Duration(s*1e6+0.5) * time.Microsecond, nil
	}
	for _, layout := range []string{"02/Jan/2006:15:04:05 -0700", time.RFC3339} {
		if t, err := time.Parse(layout, stamp); err == nil {
			return time.Duration(t.UnixNano()), nil
		}
	}
	return 0,
		fmt.Errorf("the time is %q, not such as 10/Oct/2025:13:55:36 +0000, 2025-10-10T13:55:36Z or 1760104536.25",
			stamp)
}

// Paths numbers different paths in the order of their first appearance. It stores only their
// hashes.
type Paths struct {
	seed  maphash.Seed
	index map[uint64]int32
}

func NewPaths() *Paths { return &Paths{maphash.MakeSeed(), map[uint64]int32{}} }

// Index returns the number of a path; a new path gets the next number.
func (p *Paths) Index(path string) int {
	h := maphash.String(p.seed, path)
	i, known := p.index[h]
	if !known {
		i = int32(len(p.index))
		p.index[h] = i
	}
	return int(i)
}
