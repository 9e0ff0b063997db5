package httpload

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
)

// Ranges of an object that is known to be served elsewhere are fetched, compared and counted.
func TestRedirectsAreFollowed(t *testing.T) {
	t.Parallel()
	const requests, before = 40, 15
	content := content(100_000)
	data := contentBytes(t, content)
	other := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Key") != "" {
			t.Error("another server gets the headers of the first")
		}
		time.Sleep(time.Millisecond)
		serveBytes(data)(w, r)
	}))
	others := countConnections(other)
	other.Start()
	defer other.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	damaged := httptest.NewServer(serveBytes(make([]byte, len(data))))
	defer damaged.Close()

	moved := Object{Moved: true}
	for name, c := range map[string]struct {
		location  string
		object    Object
		spec      Spec
		from      int64  // the requests that are redirected
		others    string // the outcome of those, and its class; none: ok
		class     string
		redirects int64
		dials     int64 // at most; 0: not looked at
	}{
		"followed":      {location: other.URL, object: moved, redirects: requests, dials: 4},
		"not to follow": {location: other.URL, others: "error", class: "redirect 302"},
		"in the trial": {location: other.URL, from: before, others: "error",
			class: "redirect 302"},
		"on the same host": {location: "/there", object: moved, redirects: requests, dials: 2},
		"in an open loop": {location: other.URL, object: moved, redirects: requests,
			spec: Spec{Arrivals: constant(400), MaxInFlight: 10}},
		"to nowhere": {location: gone.URL, object: moved, others: "refused", class: "connection refused"},
		"to no URL": {location: "ftp://127.0.0.1/", object: moved, others: "error",
			class: "redirect not followed"},
		"in circles": {location: "/", object: moved, others: "error", class: "redirect not followed"},
		"to damaged bytes": {location: damaged.URL, object: moved, others: "wrong-bytes", class: "wrong bytes",
			redirects: requests},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			one := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/there" || asked.Add(1) <= c.from {
					if r.Header.Get("X-Key") == "" {
						t.Error("the first server does not get its headers")
					}
					serveBytes(data)(w, r)
					return
				}
				w.Header().Set("Location", c.location)
				w.WriteHeader(http.StatusFound)
				w.Write(make([]byte, 10))
			}))
			dials := countConnections(one)
			one.Start()
			defer one.Close()
			s := c.spec
			c.object.URL, c.object.Size, c.object.Content = one.URL+"/x", content.Size, content
			c.object.Header = map[string][]string{"X-Key": {"secret"}}
			s.Objects, s.Range, s.Requests = []Object{c.object}, 1000, requests
			if s.Arrivals == nil {
				s.Concurrency = 2
			}
			res, ops := runSpec(t, s)
			want := map[string]int64{"ok": requests}
			if c.others != "" {
				want = map[string]int64{"ok": c.from, c.others: requests - c.from}
			}
			for outcome, n := range want {
				if res.Outcomes[outcome] != n {
					t.Errorf("%v %v, want %v", res.Outcomes, res.Classes, want)
				}
			}
			if c.class != "" && res.Classes[c.class] != requests-c.from {
				t.Errorf("%v, want %q", res.Classes, c.class)
			}
			if n := dials.Load() + others.Swap(0); c.others == "" && res.Redirects != c.redirects ||
				c.dials > 0 && n > c.dials {
				t.Errorf("%d redirects, %d dials; want %d, at most %d", res.Redirects, n, c.redirects, c.dials)
			}
			for _, op := range ops {
				if op.Outcome == record.OK && (op.Bytes != 1000 || op.Status != http.StatusPartialContent ||
					op.FirstByte < op.Start) {
					t.Errorf("%+v", op)
				}
			}
		})
	}
}
