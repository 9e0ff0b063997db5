package httpload

import (
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
)

// oneHeld is a server that gives its first request nothing, and each of the others 0.8 MB/s.
func oneHeld(t *testing.T, secure bool, data []byte) (url string) {
	const chunk, pause = 16 << 10, 20 * time.Millisecond
	var requests atomic.Int64
	return faulty(t, secure, data, func(conn net.Conn, r *http.Request, data []byte) bool {
		if requests.Add(1) == 1 {
			return wait(conn)
		}
		answer(conn, r, data, nil)
		for range 500 {
			if _, err := conn.Write(data[:chunk]); err != nil {
				break
			}
			time.Sleep(pause)
		}
		return false
	})
}

// One of four connections gets nothing. Whether the link starved it or the server
// stalled depends on how much of the link the others filled.
func TestStarvedIsNotStalled(t *testing.T) {
	t.Parallel()
	data := make([]byte, 64<<20)
	for name, c := range map[string]struct {
		rate float64 // of the link
		want record.Outcome
	}{
		"the others fill the link":          {2e6, record.Starved},
		"the others use little of the link": {50e6, record.Stalled},
		"nothing is known of the link":      {0, record.Stalled},
	} {
		for _, secure := range []bool{false, true} {
			url := oneHeld(t, secure, data)
			s := Spec{
				Objects: []Object{{URL: url, Size: int64(len(data))}}, Insecure: secure,
				Concurrency: 4, Duration: 1500 * time.Millisecond, Stall: 700 * time.Millisecond, Rate: c.rate,
			}
			_, got := runSpec(t, s)
			n := map[record.Outcome]int{}
			for _, op := range got {
				n[op.Outcome]++
			}
			if n[c.want] != 1 || n[record.Stalled]+n[record.Starved] != 1 {
				t.Errorf("%s, TLS %v: outcomes %v, want one %v", name, secure, n, c.want)
			}
		}
	}
}

// One generator gets nothing. Whether the link starved it depends on what the other got.
func TestStarvedByAnotherShard(t *testing.T) {
	t.Parallel()
	data := make([]byte, 64<<20)
	for rate, want := range map[float64]string{5e5: "starved", 25e6: "stalled"} {
		url := oneHeld(t, false, data)
		res, _, _, err := driven(t, Spec{
			Objects:     []Object{{URL: url, Size: int64(len(data))}},
			Concurrency: 2, Duration: 2500 * time.Millisecond, Stall: 1500 * time.Millisecond, Rate: rate,
			Window: 50 * time.Millisecond, Epoch: time.Now(),
		}, 0, 0)
		must(t, err)
		if res.Outcomes[want] != 1 || res.Outcomes["starved"]+res.Outcomes["stalled"] != 1 {
			t.Errorf("a link of %g B/s: outcomes %v, want one %s", rate, res.Outcomes, want)
		}
	}
}

// Where a fair share of the link was enough for the whole operation, the link is no excuse.
func TestFairShareIsEnough(t *testing.T) {
	l := &linkUse{rate: 1e6, shards: 1}
	l.underway.Store(4)
	l.bytes.Store(10e6)
	for _, c := range []struct {
		length int64
		want   bool
	}{{2e6, false}, {3e6, true}, {-1, true}} {
		if got := l.starved(0, 10e9, c.length); got != c.want {
			t.Errorf("%d bytes, 2.5 MB is a fair share: starved %v", c.length, got)
		}
	}
}
