package httpload

import (
	"bytes"
	"cmp"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/workload"
)

// ops gathers operations.
type ops []record.Op

func (o *ops) Ops(b []record.Op) error { *o = append(*o, b...); return nil }

func content(size int64) *workload.Content { return &workload.Content{Seed: 7, Index: 1, Size: size} }

func contentBytes(t testing.TB, c *workload.Content) []byte {
	t.Helper()
	b := make([]byte, c.Size)
	if _, err := c.Reader().Read(b); err != nil && c.Size > 0 {
		t.Fatal(err)
	}
	return b
}

// serveContent is a healthy server of one seeded object.
func serveContent(t testing.TB, c *workload.Content) *httptest.Server {
	s := httptest.NewServer(serveBytes(contentBytes(t, c)))
	t.Cleanup(s.Close)
	return s
}

func serveBytes(data []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func objectAt(url string, c *workload.Content) []Object {
	return []Object{{URL: url, Size: c.Size, Content: c}}
}

// counted is a result with sums over the operations.
type counted struct {
	Result
	Ops, Bytes, Finished int64
	Outcomes, Classes    map[string]int64
}

func count(res Result, all []record.Op) counted {
	sum := record.NewSummary()
	sum.Ops(all)
	n := sum.Counts()
	return counted{res, n.Ops, n.Bytes, n.Finished(), n.OutcomeMap(), n.Classes}
}

// achieved is the number of operations that ended by themselves, per second.
func (c counted) achieved() float64 { return float64(c.Finished) / c.seconds() }

func runSpec(t testing.TB, s Spec) (counted, ops) {
	t.Helper()
	var got ops
	res, err := Run(t.Context(), s, got.Ops)
	must(t, err)
	return count(res, got), got
}

// countConnections counts the connections of a server that has not started.
func countConnections(s *httptest.Server) *atomic.Int64 {
	var n atomic.Int64
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			n.Add(1)
		}
	}
	return &n
}

func TestHealthyServer(t *testing.T) {
	t.Parallel()
	c := content(3 << 20)
	data := contentBytes(t, c)
	for _, receive := range []string{"verify", "drop"} {
		for _, connections := range []string{"keep", "fresh"} {
			for _, size := range []int64{0, 1, 1000, 1 << 20, c.Size} {
				for _, order := range []string{"random", "aligned", "sequential"} {
					t.Run(receive+"/"+connections+"/"+order, func(t *testing.T) {
						s := httptest.NewUnstartedServer(serveBytes(data))
						dials := countConnections(s)
						s.Start()
						defer s.Close()
						res, got := runSpec(t, Spec{Objects: objectAt(s.URL+"/x", c), Concurrency: 4, Range: size,
							Order: order, Connections: connections, Receive: receive, Requests: 20,
							Stall: 10 * time.Second})
						if res.Outcomes["ok"] != 20 {
							t.Fatalf("outcomes %v, classes %v", res.Outcomes, res.Classes)
						}
						want := cmp.Or(size, c.Size)
						if res.Bytes != 20*want {
							t.Errorf("%d bytes, want %d", res.Bytes, 20*want)
						}
						for _, op := range got {
							if op.Bytes != want || op.Offset < 0 || op.Offset+want > c.Size ||
								op.FirstByte < op.Start || op.LastByte < op.FirstByte {
								t.Errorf("operation %+v", op)
							}
						}
						if connections == "keep" && dials.Load() > 4 {
							t.Errorf("%d connections opened for 4 kept ones", dials.Load())
						}
						if connections == "fresh" && dials.Load() != 20 {
							t.Errorf("%d connections opened for 20 requests", dials.Load())
						}
					})
				}
			}
		}
	}
}

// A shard that reads late when to start has a shorter window than the others.
func TestLateStart(t *testing.T) {
	const ms = time.Millisecond
	s := &Spec{Objects: []Object{{Size: 1}}, Shards: 2, Epoch: time.Now()}
	tr := &trial{spec: s, epoch: s.Epoch, held: func() time.Time { return s.Epoch.Add(-time.Second) }}
	if tr.start(); tr.started != -int64(time.Second) || tr.late < time.Second {
		t.Errorf("started at %v, late by %v; want -1s and at least 1s", time.Duration(tr.started), tr.late)
	}
	for _, c := range []struct {
		late, took time.Duration
		want       bool
	}{{9 * ms, time.Second, false}, {11 * ms, time.Second, true}, {4 * ms, 10 * ms, false}, {6 * ms, 10 * ms, true}} {
		tr := &trial{spec: s, late: c.late, sum: newTally(nil, &linkUse{})}
		res := Result{Ended: int64(c.took)}
		tr.conclude(&res)
		if res.Behind != c.want || len(res.Why) > 0 != c.want {
			t.Errorf("late by %v of %v: behind %v, %q", c.late, c.took, res.Behind, res.Why)
		}
	}
}

func TestSaturation(t *testing.T) {
	const second = 1_000_000_000
	type what struct {
		busy, delay float64
		sum         func(*tally)
		cpu         float64
		open        bool
	}
	fast := func(s *tally) { // answers within 1 ms, read within 10 µs
		for range 100 {
			observe(s.first, second/1000)
			observe(s.wait, second/100_000)
		}
	}
	for name, test := range map[string]struct {
		what
		saturated, behind bool
		why               string
	}{
		"idle":      {what{busy: 0.3, delay: 0.01, cpu: 0.3, sum: fast}, false, false, ""},
		"busy loop": {what{busy: 0.97, cpu: 0.5, sum: fast}, true, false, "busy 97 %"},
		"all CPUs": {what{busy: 0.5, cpu: 0.95 * float64(runtime.NumCPU()), sum: fast}, true, false,
			"CPUs"},
		"no CPU for it": {what{busy: 0.5, delay: 0.4, cpu: 0.1, sum: fast}, true, false,
			"waited 40 %"},
		"late reads": {what{sum: func(s *tally) { fast(s); s.wait.Reset(); observe(s.wait, second/100) }}, true,
			false, "lay ready for 0.01 s"},
		"late, slow net": {what{sum: func(s *tally) { observe(s.first, 10*second); observe(s.wait, second/100) }},
			false, false, ""},
		"late starts": {what{open: true, sum: func(s *tally) { fast(s); observe(s.late, second/10) }}, false, true,
			"later than they could"},
		"no ports": {what{sum: func(s *tally) { fast(s); s.local["local: no free port"] = 3 }}, true, false,
			"3 operations failed on this machine: no free port"},
	} {
		tr := &trial{spec: &Spec{}, schedule: &schedule{}, cpuEnded: test.cpu,
			sum: newTally(newRecorder(new(ops).Ops, nil), &linkUse{})}
		if test.open {
			tr.spec.Arrivals = &workload.ArrivalSpec{}
		}
		test.sum(tr.sum)
		tr.busy, tr.delay = test.busy, test.delay
		res := Result{Ended: second}
		tr.conclude(&res)
		why := strings.Join(res.Why, "; ")
		if res.Saturated != test.saturated || res.Behind != test.behind || !strings.Contains(why, test.why) {
			t.Errorf("%s: saturated %v, behind %v: %s", name, res.Saturated, res.Behind, why)
		}
	}
}
