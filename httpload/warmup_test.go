package httpload

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
)

// A server that does not serve ranges is asked for the whole object, so that its
// connections stay.
func TestWarmupOfWholeObjects(t *testing.T) {
	data := make([]byte, 64<<10)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Write(data)
	}))
	connections := countConnections(server)
	server.Start()
	defer server.Close()
	spec := Spec{Objects: []Object{{URL: server.URL, Size: int64(len(data)), Undivided: "it is a stream"}}, Concurrency: 2,
		Warmup: 16 << 10, Requests: 20}
	res, got := runSpec(t, spec)
	for _, op := range got {
		if op.Outcome != record.OK || op.Length != int64(len(data)) {
			t.Errorf("%+v", op)
		}
	}
	if res.Ops != 20 || res.Warmed != int64(2*len(data)) || connections.Load() != 2 {
		t.Errorf("%d operations, %d bytes of warm-up, %d connections", res.Ops, res.Warmed, connections.Load())
	}
}

// A server whose first answer on each connection is slow: the clock starts after it. One
// connection of four gets no answer before the stall limit: that counts, and holds the
// others up no longer than the limit.
func TestWarmup(t *testing.T) {
	t.Parallel()
	const slow, stall = 300 * time.Millisecond, time.Second
	data := make([]byte, 64<<10)
	for _, secure := range []bool{false, true} {
		for _, silent := range []int64{0, 1} {
			t.Run(fmt.Sprintf("TLS %v, %d silent", secure, silent), func(t *testing.T) {
				var requests atomic.Int64
				var warm sync.Map // connections that had their first answer
				url := faulty(t, secure, data, func(conn net.Conn, r *http.Request, data []byte) bool {
					if _, known := warm.LoadOrStore(conn, true); !known {
						if requests.Add(1) <= silent {
							return wait(conn)
						}
						time.Sleep(slow)
					}
					return serve(conn, r, data)
				})
				spec := Spec{
					Objects: []Object{{URL: url, Size: int64(len(data))}}, Insecure: secure,
					Concurrency: 4, Range: 32 << 10, Warmup: 16 << 10, Requests: 200, Stall: stall,
				}
				res, got := runSpec(t, spec)
				warmed, counted, failed := int64(0), int64(0), int64(0)
				for _, op := range got {
					switch {
					case op.Kind == record.OpWarmup:
						warmed++
						if op.Outcome != record.OK || op.Length != 16<<10 || op.LastByte > res.Started {
							t.Errorf("a warm-up: %+v, the clock started at %d", op, res.Started)
						}
						continue
					case op.Outcome == record.Stalled:
						failed++
					case op.Outcome != record.OK || op.Length != 32<<10 || op.Start < res.Started:
						t.Errorf("an operation: %+v, the clock started at %d", op, res.Started)
					case silent == 0 && op.LastByte-op.Start >= int64(slow):
						t.Errorf("an operation of the window waited for its connection's first answer: %+v", op)
					}
					counted++
				}
				if warmed != 4-silent || failed != silent || counted != 200+silent || res.Ops != counted ||
					res.Outcomes["ok"] != 200 || res.Outcomes["stalled"] != silent || res.Warmed != warmed*16<<10 {
					t.Errorf("%d warm-ups, %d stalled, %d counted; result %+v", warmed, failed, counted, res)
				}
			})
		}
	}
}
