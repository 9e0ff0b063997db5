package workload

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// times runs an arrival process on its own clock, for at most d.
func times(a Arrivals, d time.Duration) (at []time.Duration) {
	now := time.Duration(0)
	for {
		wait, stop := a.Pace(now, uint64(len(at)))
		if now += wait; stop || now >= d {
			return at
		}
		at = append(at, now)
	}
}

func TestConstantDoesNotDrift(t *testing.T) {
	at := times(Steps{{3, math.MaxInt64}}, 1000*time.Second)
	if len(at) != 3000 || at[0] != 0 {
		t.Fatalf("%d arrivals, the first at %v", len(at), at[0])
	}
	if want := time.Duration(math.Round(2999e9 / 3)); at[2999] != want {
		t.Errorf("the last is at %v, want %v", at[2999], want)
	}
}

func TestPoisson(t *testing.T) {
	const rate, d = 1000.0, 100 * time.Second
	at := times(Poisson{rate, 1}, d)
	// The count has a standard deviation of sqrt(100,000) ≈ 316.
	if n := float64(len(at)); math.Abs(n-rate*d.Seconds()) > 4*math.Sqrt(rate*d.Seconds()) {
		t.Errorf("%v arrivals, want about %v", n, rate*d.Seconds())
	}
	// Intervals are exponential: chi-square over 20 classes of equal probability.
	const classes = 20
	gaps, count, want := make([]float64, len(at)), make([]float64, classes), make([]float64, classes)
	last := time.Duration(0)
	for i, a := range at {
		gaps[i] = (a - last).Seconds()
		last = a
		count[min(int((1-math.Exp(-gaps[i]*rate))*classes), classes-1)]++
	}
	for i := range want {
		want[i] = float64(len(at)) / classes
	}
	chi := stat.ChiSquare(count, want)
	if p := 1 - (distuv.ChiSquared{K: classes - 1}).CDF(chi); p < 1e-4 {
		t.Errorf("gaps are not exponential: chi-square %v, p = %v", chi, p)
	}
	// Successive intervals are independent: their correlation has a standard deviation of
	// 1/sqrt(n).
	if r := successive(gaps); math.Abs(r) > 4/math.Sqrt(float64(len(at))) {
		t.Errorf("successive gaps correlate: %v", r)
	}
}

// successive returns the correlation of each value with the next.
func successive(x []float64) float64 { return stat.Correlation(x[1:], x[:len(x)-1], nil) }

func TestSteps(t *testing.T) {
	s := Steps{{10, time.Second}, {0, 2 * time.Second}, {100, time.Second}}
	at := times(s, time.Hour)
	if len(at) != 110 {
		t.Fatalf("%d arrivals, want 110", len(at))
	}
	if at[9] != 900*time.Millisecond || at[10] != 3*time.Second || at[109] != 3990*time.Millisecond {
		t.Errorf("arrivals at %v, %v, %v", at[9], at[10], at[109])
	}
}

func readLog(t *testing.T, text string) ([]LoggedRequest, *RequestLog) {
	t.Helper()
	l := NewRequestLog(strings.NewReader(text), "access.log")
	var all []LoggedRequest
	for {
		r, err := l.Next()
		if errors.Is(err, io.EOF) {
			return all, l
		}
		must(t, err)
		all = append(all, r)
	}
}

// All formats give the same requests.
func TestRequestLogFormats(t *testing.T) {
	want := LoggedRequest{Path: "/ipfs/bafy/a%20b?format=raw", Length: -1, Bytes: 2326}
	for _, line := range []string{
		`192.0.2.1 - - [10/Oct/2025:13:55:36 -0700] "GET /ipfs/bafy/a%20b?format=raw HTTP/1.0" 200 2326`,
		`2001:db8::1 - frank [10/Oct/2025:13:55:36 -0700] "GET /ipfs/bafy/a%20b?format=raw HTTP/1.1" ` +
			`200 2326 "http://ref/" "Mozilla \"x\" [en]"`,
		`192.0.2.1 - - [10/Oct/2025:13:55:36 +0000] "GET /ipfs/bafy/a\x20b?format=raw HTTP/2.0" ` +
			`200 2326 "-" "curl" "-" rt=0.010`,
		`{"server":"gw1","time":"2025-10-10T13:55:36.123Z","method":"GET",` +
			`"uri":"/ipfs/bafy/a%20b?format=raw","status":200,"headers":{"Accept":"*/*"},` +
			`"resp_body_size":2326,"resp_time":0.1}`,
		`{"msec":"1760104536.123","request_method":"GET","request_uri":"/ipfs/bafy/a%20b?format=raw",` +
			`"status":"200","body_bytes_sent":"2326","http_range":""}`,
		`{"msec":1760104536.123,"method":"GET","uri":"/ipfs/bafy/a b?format=raw","status":200,"bytes":2326}`,
		`{"ts":1760104536,"request":"GET /ipfs/bafy/a%20b?format=raw HTTP/1.1","status":200,"bytes":2326}`,
	} {
		if got, _ := readLog(t, line); len(got) != 1 || got[0] != want {
			t.Errorf("%s:\n%+v", line, got)
		}
	}
}

func TestRequestLogRanges(t *testing.T) {
	got, l := readLog(t, `
h - - [10/Oct/2025:13:55:36 +0000] "GET /a HTTP/1.1" 206 100 "-" "curl" "bytes=50-149"
h - - [10/Oct/2025:13:55:37 +0000] "GET /a HTTP/1.1" 206 70 "-" "curl" "bytes=50-"
h - - [10/Oct/2025:13:55:38 +0000] "GET /a HTTP/1.1" 206 30 "-" "curl" "bytes=50-149"
h - - [10/Oct/2025:13:55:39 +0000] "GET /a HTTP/1.1" 206 10 "-" "curl"
h - - [10/Oct/2025:13:55:40 +0000] "GET /a HTTP/1.1" 206 10 "-" "curl" "bytes=-10"
h - - [10/Oct/2025:13:55:40 +0000] "GET /a HTTP/1.1" 206 10 "-" "curl" "bytes=0-1,5-6"
h - - [10/Oct/2025:13:55:40 +0000] "GET /a HTTP/1.1" 206 0 "-" "curl" "bytes=0-1"
{"time":"2025-10-10T13:55:41Z","method":"GET","uri":"/a","status":206,"headers":{"range":"bytes=7-9"},"bytes":3}
{"time":"2025-10-10T13:55:41Z","method":"GET","uri":"/a","status":206,"headers":"{\"range\":\"bytes=8-9\"}","bytes":2}
h - - [10/Oct/2025:13:55:42 +0000] "HEAD /a HTTP/1.1" 200 0
h - - [10/Oct/2025:13:55:43 +0000] "GET /a HTTP/1.1" 304 -
`)
	var text []string
	for _, r := range got {
		text = append(text, fmt.Sprintf("%v %d+%d %v", r.At, r.Offset, r.Length, r.Head))
	}
	want := "0s 50+100 false, 1s 50+70 false, 2s 50+30 false, 3s 0+10 false, 5s 7+3 false, 5.5s 8+2 false, 6s 0+-1 true, 7s 0+-1 true"
	if is := strings.Join(text, ", "); is != want || l.Unplaced != 1 {
		t.Errorf("%s, %d without a beginning", is, l.Unplaced)
	}
	if left := map[string]int64{"several ranges, or one from the end": 2, "empty range": 1}; !maps.Equal(l.Skipped,
		left) {
		t.Errorf("left out %v", l.Skipped)
	}
}

func TestRequestLogLeavesOut(t *testing.T) {
	var log strings.Builder
	for _, request := range []string{`"POST /a HTTP/1.1" 200 5`, `"GET /a HTTP/1.1" 404 5`, `"GET /a HTTP/1.1" 404 5`,
		`"\x16\x03\x01" 400 157`,
		`"-" 400 0`, `"GET http://other/a HTTP/1.1" 200 5`, `"GET /%zz HTTP/1.1" 200 5`, `"GET /a HTTP/1.1" 301 5`,
		`"GET /a HTTP/1.1" 204 0`,
		`"GET /a HTTP/1.1" 202 5`, `"GET /a HTTP/1.1" 200 5`} {
		fmt.Fprintf(&log, "h - - [10/Oct/2025:13:55:36 +0000] %s\n", request)
	}
	for i := range 30 { // unknown methods
		fmt.Fprintf(&log, "h - - [10/Oct/2025:13:55:36 +0000] \"M%d /a HTTP/1.1\" 200 5\n", i)
	}
	got, l := readLog(t, log.String())
	if len(got) != 1 || got[0].Path != "/a" || got[0].At != 0 {
		t.Errorf("%+v", got)
	}
	sum := int64(0)
	for _, n := range l.Skipped {
		sum += n
	}
	if s := l.Skipped; s["POST"] != 1 || s["status 404"] != 2 || s["no HTTP request"] != 2 || s["no path"] != 2 ||
		s["status 301"] != 1 || s["status 204"] != 1 || s["status 202"] != 1 || sum != 40 || len(s) > maxSkipped+1 {
		t.Errorf("left out %v", s)
	}
}

// Requests of one second are spread evenly over it, exact times are kept, and time never decreases.
func TestRequestLogTimes(t *testing.T) {
	for name, c := range map[string]struct{ times, want string }{
		"seconds":   {"10 10 10 10 12", "0s 250ms 500ms 750ms 2s"},
		"unordered": {"10 12 11 13", "0s 2s 2.5s 3s"},
		"exact":     {"10.25 10.25 10.5", "0s 0s 250ms"},
		"both":      {"10 10 10.1 11", "0s 50ms 100ms 1s"},
	} {
		var log strings.Builder
		for stamp := range strings.FieldsSeq(c.times) {
			fmt.Fprintf(&log, "{\"ts\":%s,\"method\":\"GET\",\"uri\":\"/a\",\"status\":200,\"bytes\":1}\n", stamp)
		}
		got, l := readLog(t, log.String())
		if back := name == "unordered"; back != (l.Unordered == 1) || back != (l.Back == time.Second) {
			t.Errorf("%s: %d requests are up to %v earlier than the one before", name, l.Unordered, l.Back)
		}
		var at []string
		for _, r := range got {
			at = append(at, r.At.String())
		}
		if is := strings.Join(at, " "); is != c.want {
			t.Errorf("%s: %s, want %s", name, is, c.want)
		}
	}
}

func TestRequestLogErrors(t *testing.T) {
	const good = "h - - [10/Oct/2025:13:55:36 +0000] \"GET /a HTTP/1.1\" 200 5\n"
	for line, want := range map[string]string{
		"hello":             "access.log:3: not a line of a request log",
		"h [today] \"GET /": "access.log:3: the time is \"today\"",
		"h [10/Oct/2025:13:55:36 +0000] \"GET /a HTTP/1.1\"":        "access.log:3: no status and bytes",
		"h [10/Oct/2025:13:55:36 +0000] \"GET /a HTTP/1.1\" two 5":  "access.log:3: the status is \"two\"",
		"h [10/Oct/2025:13:55:36 +0000] \"GET /a HTTP/1.1\" 200 -5": "access.log:3: the number of bytes is \"-5\"",
		`{"time":`:                          "access.log:3: not a JSON object of a request",
		`{"msec":1,"status":200,"bytes":1}`: "access.log:3: the object has no method, or no uri",
		`{"msec":1760104540,"method":"GET","uri":"/a","status":200,"size":1}`: "access.log:3: the object has no " +
			"number of bytes",
		`h [10/Oct/2025:10:55:36 +0000] "GET /a HTTP/1.1" 200 5`: "access.log:3: the request is 3h0m0s " +
			"earlier than the one before it: sort",
		strings.Repeat("x", maxLogLine+1): "access.log:3: bufio.Scanner: token " +
			"too long",
		strings.Repeat(good, maxAtOnce): "more than 65536 requests have the " +
			"same time",
	} {
		l := NewRequestLog(strings.NewReader(good+"# a comment\n"+line+"\n"), "access.log")
		var err error
		for err == nil {
			_, err = l.Next()
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: error %v, want one with %q", line, err, want)
		}
	}
	if _, err := NewRequestLog(strings.NewReader("\n"), "access.log").Next(); err == nil ||
		err.Error() != "access.log: no line can be replayed" {
		t.Errorf("an empty log: %v", err)
	}
}

// longLog is a log with n lines, a thousand for each second, that is not stored anywhere.
type longLog struct {
	lines, n int
	rest     []byte
}

func (l *longLog) Read(p []byte) (int, error) {
	for len(l.rest) == 0 {
		if l.n == l.lines {
			return 0, io.EOF
		}
		at := time.Unix(1760104536+int64(l.n/1000), 0).UTC().Format("02/Jan/2006:15:04:05 -0700")
		l.rest = fmt.Appendf(l.rest[:0], "192.0.2.1 - - [%s] \"GET /file-%d HTTP/1.1\" 200 1000 \"-\" \"curl\"\n", at,
			l.n)
		l.n++
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// Reading a log takes the memory of one second, however long the log is.
func TestRequestLogMemory(t *testing.T) {
	const lines = 300_000
	l, n := NewRequestLog(&longLog{lines: lines}, "long"), 0
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var last LoggedRequest
	for {
		r, err := l.Next()
		if err == io.EOF {
			break
		}
		must(t, err)
		last, n = r, n+1
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(l)
	if n != lines || last.At != 299*time.Second+999*time.Millisecond {
		t.Errorf("%d requests, the last at %v", n, last.At)
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 8<<20 {
		t.Errorf("%d bytes are held after %d lines", grown, lines)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
