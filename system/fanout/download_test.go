package fanout

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/system/internal/member"
)

// TestSpoiltEverywhere: between rounds of seeders that all give bad bytes there is a pause.
func TestSpoiltEverywhere(t *testing.T) {
	const size = 1000
	var m manifest
	m.add(make([]byte, size))
	n := newNode(t.TempDir())
	var asked atomic.Int32
	var from []string
	for range 2 {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked.Add(1)
			w.Header().Set("Content-Range", fmt.Sprintf("bytes 0-%d/%d", size-1, size))
			w.WriteHeader(http.StatusPartialContent)
			fmt.Fprint(w, strings.Repeat("x", size))
		}))
		t.Cleanup(s.Close)
		from = append(from, strings.TrimPrefix(s.URL, "http://"))
	}
	t.Cleanup(func() { n.Pause() }) // before the servers close
	must(t, n.Fetch(t.Context(), m.ref(), member.Task[manifest]{Said: m, From: from}))
	const rounds = 3
	time.Sleep(rounds * pause)
	// One more round at the beginning.
	if n := asked.Load(); n < 2 || n > 2*(rounds+1) {
		t.Errorf("asked %d times in %v", n, rounds*pause)
	}
}
