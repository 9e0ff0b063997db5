package httpload

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/workload"
)

func constant(rate float64) *workload.ArrivalSpec {
	return &workload.ArrivalSpec{Process: "constant", Rate: rate}
}

func TestBoundsAreNotOvershot(t *testing.T) {
	c := content(100_000)
	objects := objectAt(serveContent(t, c).URL, c)
	for name, test := range map[string]struct {
		spec Spec
		want int64
	}{
		"requests":   {Spec{Concurrency: 7, Requests: 25, Range: 10}, 25},
		"bytes":      {Spec{Concurrency: 7, Bytes: 95, Range: 10}, 10},
		"per worker": {Spec{Concurrency: 7, PerWorker: 3, Range: 10}, 21},
		"first one":  {Spec{Concurrency: 7, PerWorker: 3, Requests: 5, Bytes: 1000, Duration: time.Minute, Range: 10}, 5},
		"open":       {Spec{Arrivals: constant(2000), MaxInFlight: 1000, Requests: 25, Range: 10}, 25},
	} {
		t.Run(name, func(t *testing.T) {
			test.spec.Objects = objects
			res, got := runSpec(t, test.spec)
			if res.Outcomes["ok"] != test.want || int64(len(got)) != test.want {
				t.Errorf("outcomes %v, want %d ok", res.Outcomes, test.want)
			}
			if name == "per worker" {
				count := map[uint32]int{}
				for _, op := range got {
					count[op.Worker]++
				}
				for w, n := range count {
					if n != 3 {
						t.Errorf("connection %d did %d operations, want 3", w, n)
					}
				}
			}
		})
	}
}

// throttled serves at a fixed rate per connection, like a link that many share
// fairly.
func throttled(t testing.TB, data []byte, chunk int, every time.Duration) string {
	return faulty(t, false, data, func(c net.Conn, r *http.Request, data []byte) bool {
		answer(c, r, data, nil)
		for p := part(r, data); len(p) > 0; p = p[min(chunk, len(p)):] {
			if _, err := c.Write(p[:min(chunk, len(p))]); err != nil {
				return false
			}
			time.Sleep(every)
		}
		return true
	})
}

// The study's burst: a healthy server whose link is shared fairly looks broken
// to a client with a short deadline. It must not look like the server's fault.
func TestDeadlineIsNotServerFailure(t *testing.T) {
	t.Parallel()
	c := content(50_000)
	url := throttled(t, contentBytes(t, c), 1000, 40*time.Millisecond) // 2 s each, all at once
	for _, receive := range []string{"verify", "drop"} {
		s := Spec{Objects: objectAt(url, c), Concurrency: 20, PerWorker: 1, Receive: receive, Stall: 5 * time.Second,
			Deadline: time.Second}
		res, got := runSpec(t, s)
		if res.Outcomes["deadline"] != 20 {
			t.Errorf("%s: short deadline: outcomes %v", receive, res.Outcomes)
		}
		for _, op := range got {
			if op.Outcome.ServerFailure() || op.Outcome.Finished() || op.Bytes == 0 || op.Bytes == op.Length ||
				op.Class != record.PhaseBody {
				t.Errorf("%s: %+v", receive, op)
			}
		}
		s.Deadline = 20 * time.Second
		if res, _ := runSpec(t, s); res.Outcomes["ok"] != 20 {
			t.Errorf("%s: long deadline: outcomes %v", receive, res.Outcomes)
		}
	}
}

func TestInFlightAndCancelled(t *testing.T) {
	t.Parallel()
	c := content(1_000_000)
	url := throttled(t, contentBytes(t, c), 1000, 10*time.Millisecond)
	for _, receive := range []string{"verify", "drop"} {
		s := Spec{Objects: objectAt(url, c), Concurrency: 5, Receive: receive, Duration: time.Second}
		res, got := runSpec(t, s)
		if res.Outcomes["in-flight"] != 5 || res.Bytes == 0 {
			t.Errorf("%s: outcomes %v, %d bytes", receive, res.Outcomes, res.Bytes)
		}
		for _, op := range got {
			if op.Bytes == 0 || op.Bytes >= op.Length {
				t.Errorf("%s: in flight with %d of %d bytes", receive, op.Bytes, op.Length)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(200*time.Millisecond, cancel)
		s.Duration = time.Minute
		var cancelled ops
		one, err := Run(ctx, s, cancelled.Ops)
		if n := count(one, cancelled).Outcomes; err != nil || n["cancelled"] != 5 || len(cancelled) != 5 {
			t.Errorf("%s: cancelled: %v, outcomes %v", receive, err, n)
		}
	}
}

// A server that pauses for a second: an open loop's latencies, from the
// intended start, show the second to every operation that was due in it.
// A closed loop has only as many slow operations as connections.
func TestCoordinatedOmission(t *testing.T) {
	t.Parallel()
	c := content(100)
	data := contentBytes(t, c)
	const pause = time.Second
	slow := func(spec Spec) (slow int, lag float64, res Result) {
		var once sync.Once
		var until atomic.Int64
		url := faulty(t, false, data, func(c net.Conn, r *http.Request, data []byte) bool {
			once.Do(func() { until.Store(time.Now().Add(pause).UnixNano()) })
			time.Sleep(time.Until(time.Unix(0, until.Load())))
			return serve(c, r, data)
		})
		spec.Objects = objectAt(url, c)
		sums, got := runSpec(t, spec)
		for _, op := range got {
			lag = max(lag, float64(op.Start-op.Intended)/1e9)
			if op.Outcome == record.OK && op.LastByte-op.Intended > int64(pause)/2 {
				slow++
			}
		}
		return slow, lag, sums.Result
	}
	for _, most := range []int{2, 1000} {
		n, lag, res := slow(Spec{Arrivals: constant(200), MaxInFlight: most, Requests: 400})
		// 100 operations were due in the first half of the pause.
		if n < 80 {
			t.Errorf("open loop, at most %d in flight: %d slow operations of about 100; %g", most, n, lag)
		}
		if most == 2 && lag < 0.5 {
			t.Errorf("lag %g, though arrivals waited for a connection", lag)
		}
		late := 0.0
		for _, why := range res.Why {
			fmt.Sscanf(why, "operations started %g s", &late)
		}
		if most == 2 && late > lag/2 {
			t.Errorf("the generator blames itself (%g) for the server's pause (%g)", late, lag)
		}
	}
	if n, _, _ := slow(Spec{Concurrency: 2, Requests: 400}); n > 2 {
		t.Errorf("closed loop: %d slow operations with 2 connections", n)
	}
}

// fiftyPerSecond is a server of 100 bytes that takes 20 ms for each answer.
func fiftyPerSecond(t *testing.T) []Object {
	c := content(100)
	return objectAt(faulty(t, false, contentBytes(t, c), func(c net.Conn, r *http.Request, data []byte) bool {
		time.Sleep(20 * time.Millisecond)
		return serve(c, r, data)
	}), c)
}

func TestOfferedAndAchieved(t *testing.T) {
	t.Parallel()
	// One connection at 50/s cannot keep up with 200/s.
	res, got := runSpec(t, Spec{Objects: fiftyPerSecond(t), MaxInFlight: 1, Duration: time.Second, Seed: 3,
		Arrivals: &workload.ArrivalSpec{Process: "poisson", Rate: 200}})
	if math.Abs(res.OfferedRate-200) > 60 {
		t.Errorf("offered %v/s, want about 200", res.OfferedRate)
	}
	if res.achieved() > 60 || res.achieved() < 5 {
		t.Errorf("achieved %v/s, want below 50", res.achieved())
	}
	if res.Classes[record.PhaseNotStarted] < 50 {
		t.Errorf("classes %v, outcomes %v", res.Classes, res.Outcomes)
	}
	last := int64(0)
	for _, op := range got {
		if op.Intended > op.Start || op.Start > op.LastByte {
			t.Errorf("intended %d, start %d, last byte %d", op.Intended, op.Start, op.LastByte)
		}
		last = max(last, op.Intended)
	}
	if last > res.Ended {
		t.Errorf("an arrival at %d after the end at %d", last, res.Ended)
	}
}

func TestReferenceFile(t *testing.T) {
	c := content(100_000)
	s := serveContent(t, c)
	path := filepath.Join(t.TempDir(), "copy")
	must(t, os.WriteFile(path, contentBytes(t, c), 0o600))
	spec := Spec{Objects: []Object{{URL: s.URL, Size: c.Size, Reference: path}}, Concurrency: 2, Requests: 20, Range: 999}
	if res, _ := runSpec(t, spec); res.Outcomes["ok"] != 20 || !strings.Contains(res.Receive, "reference file") {
		t.Errorf("outcomes %v, %s", res.Outcomes, res.Receive)
	}
	other := *c
	other.Seed++
	os.WriteFile(path, contentBytes(t, &other), 0o600)
	if res, _ := runSpec(t, spec); res.Outcomes["wrong-bytes"] != 20 {
		t.Errorf("another file: outcomes %v", res.Outcomes)
	}
	spec.Objects[0].Reference = filepath.Join(t.TempDir(), "missing")
	if _, err := Run(t.Context(), spec, new(ops).Ops); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing reference: %v", err)
	}
}

func TestHTTPS(t *testing.T) {
	t.Parallel()
	c := content(1 << 20)
	s := httptest.NewUnstartedServer(serveContent(t, c).Config.Handler)
	s.EnableHTTP2 = true
	dials := countConnections(s)
	s.StartTLS()
	t.Cleanup(s.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	must(t, os.WriteFile(ca, certificate, 0o600))
	for want, version := range map[string]string{"h2": "auto", "http/1.1": "1.1"} {
		for _, connections := range []string{"keep", "fresh"} {
			res, _ := runSpec(t, Spec{Objects: objectAt(s.URL, c), CAFile: ca,
				Concurrency: 4, Requests: 20, Range: 10_000, HTTP: version, Connections: connections})
			most := map[string]int64{"keep": 4, "fresh": 20}[connections]
			if n := dials.Swap(0); res.Outcomes["ok"] != 20 || res.Protocol != want || n > most ||
				!strings.Contains(res.Receive, "net/http") {
				t.Errorf("%s, %s: outcomes %v %v, protocol %s, %d dials, %s", version, connections, res.Outcomes,
					res.Classes, res.Protocol, n, res.Receive)
			}
		}
	}
	res, _ := runSpec(t, Spec{Objects: objectAt(s.URL, c), CAFile: ca, Arrivals: constant(100), MaxInFlight: 1000,
		Requests: 30, Range: 10})
	if res.Outcomes["ok"] != 30 {
		t.Errorf("open loop: outcomes %v %v", res.Outcomes, res.Classes)
	}
	old := httptest.NewTLSServer(s.Config.Handler)
	t.Cleanup(old.Close)
	res, _ = runSpec(t, Spec{Objects: []Object{{URL: old.URL, Size: c.Size}}, Insecure: true, Concurrency: 1,
		Requests: 2, HTTP: "2"})
	if res.Classes["http/2 not offered"] != 2 {
		t.Errorf("a server without HTTP/2: %v %v", res.Outcomes, res.Classes)
	}
	res, _ = runSpec(t, Spec{Objects: []Object{{URL: s.URL, Size: c.Size}}, Concurrency: 1, Requests: 2})
	if res.Classes["tls: certificate not trusted"] != 2 {
		t.Errorf("unknown authority: %v %v", res.Outcomes, res.Classes)
	}
}

func TestSizeUnknown(t *testing.T) {
	c := content(5000)
	s := serveContent(t, c)
	for _, receive := range []string{"verify", "drop"} {
		res, ops := runSpec(t, Spec{Objects: []Object{{URL: s.URL, Size: -1}}, Concurrency: 2, Requests: 4,
			Receive: receive})
		if res.Outcomes["ok"] != 4 || res.Bytes != 4*c.Size {
			t.Errorf("outcomes %v, %d bytes", res.Outcomes, res.Bytes)
		}
		if err := record.Check(ops); err != nil {
			t.Errorf("the record refuses them: %v", err)
		}
	}
}

// A request that is longer than a socket's buffer is this machine's failure, and none of the server's.
func TestEndlessRequest(t *testing.T) {
	s := serveContent(t, content(10))
	res, _ := runSpec(t, Spec{Objects: []Object{{URL: s.URL, Size: 10, Header: map[string][]string{
		"X": {strings.Repeat("x", 32<<20)}}}}, Concurrency: 1, Requests: 1})
	if res.Outcomes["cancelled"] != 1 || res.Classes[classNoBuffer] != 1 || !res.Saturated {
		t.Errorf("outcomes %v, classes %v", res.Outcomes, res.Classes)
	}
}

func TestSinkError(t *testing.T) {
	c := content(10)
	s := serveContent(t, c)
	full := errors.New("disk full")
	_, err := Run(t.Context(), Spec{Objects: []Object{{URL: s.URL, Size: c.Size}}, Concurrency: 1,
		Duration: time.Minute, Window: 20 * time.Millisecond}, func([]record.Op) error { return full })
	if !errors.Is(err, full) {
		t.Errorf("error %v, want the sink's", err)
	}
}

func TestBadSpecs(t *testing.T) {
	header := func(name, value string) func(*Spec) {
		return func(s *Spec) { s.Objects[0].Header = map[string][]string{name: {value}} }
	}
	for want, change := range map[string]func(*Spec){
		"no objects":                func(s *Spec) { s.Objects = nil },
		"cannot receive TLS":        func(s *Spec) { s.Receive, s.Objects[0].URL = "drop", "https://x/" },
		"does not follow":           func(s *Spec) { s.Receive, s.Objects[0].Moved = "drop", true },
		"must have the same scheme": func(s *Spec) { s.Objects = append(s.Objects, Object{URL: "https://x/"}) },
		"set by the load generator": header("range", "x"),
	} {
		s := Spec{Objects: []Object{{URL: "http://127.0.0.1:1/", Size: 10}}, Concurrency: 1, Requests: 1}
		change(&s)
		if _, err := Run(t.Context(), s, new(ops).Ops); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestIPv6(t *testing.T) {
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skip("no IPv6 here:", err)
	}
	c := content(1000)
	s := httptest.NewUnstartedServer(serveContent(t, c).Config.Handler)
	s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	res, _ := runSpec(t, Spec{Objects: objectAt(s.URL, c), Concurrency: 2, Requests: 4})
	if res.Outcomes["ok"] != 4 {
		t.Errorf("outcomes %v %v", res.Outcomes, res.Classes)
	}
}

// What is offered does not depend on how long the server takes: 100 arrivals at
// 200 per second were offered within half a second, though a slow server drags
// the trial out to two.
func TestOfferedRateIsTheArrivals(t *testing.T) {
	t.Parallel()
	objects := fiftyPerSecond(t)
	for name, s := range map[string]Spec{
		"requests": {Arrivals: constant(200), MaxInFlight: 1, Requests: 100},
		"bytes":    {Arrivals: constant(200), MaxInFlight: 1, Bytes: 100 * 100},
		"steps": {Arrivals: &workload.ArrivalSpec{Process: "steps",
			Steps: workload.Steps{{PerSecond: 200, For: time.Second / 2}}}, MaxInFlight: 1},
	} {
		s.Objects = objects
		res, _ := runSpec(t, s)
		if res.Outcomes["ok"] != 100 || math.Abs(res.OfferedRate-200) > 1 {
			t.Errorf("%s: offered %v/s, want 200; outcomes %v", name, res.OfferedRate, res.Outcomes)
		}
		if res.achieved() > 60 {
			t.Errorf("%s: achieved %v/s with one connection and 20 ms for each", name, res.achieved())
		}
	}
	// A server that keeps up achieves what is offered, and no more.
	res, _ := runSpec(t, Spec{Objects: objects, Arrivals: constant(5), MaxInFlight: 10, Requests: 3})
	if math.Abs(res.OfferedRate-5) > 0.1 || res.achieved() > res.OfferedRate*1.01 ||
		res.achieved() < res.OfferedRate*0.5 {
		t.Errorf("offered %v/s, want 5; achieved %v/s", res.OfferedRate, res.achieved())
	}
}

// Connections are opened one after another, and each operation's time begins
// with its own.
func TestFirstOperationsStartWhenTheyDo(t *testing.T) {
	t.Parallel()
	c := content(100)
	_, got := runSpec(t, Spec{Objects: objectAt(serveContent(t, c).URL, c), Concurrency: 50, PerWorker: 1})
	starts := map[int64]bool{}
	for _, op := range got {
		starts[op.Start] = true
	}
	if len(starts) < 25 {
		t.Errorf("50 operations have %d different starts", len(starts))
	}
}
