package redirect_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/internal/redirect"
)

// The user's headers are sent to the host for which they were given, and to no other.
func TestCredentialsStayWithTheirHost(t *testing.T) {
	seen := map[string]http.Header{}
	note := func(name string, then http.HandlerFunc) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen[name+r.URL.Path] = r.Header.Clone()
			then(w, r)
		}))
		t.Cleanup(s.Close)
		return s
	}
	other := note("other", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusPartialContent) })
	one := note("one", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/a" {
			http.Redirect(w, r, "/b", http.StatusFound)
			return
		}
		http.Redirect(w, r, other.URL+"/c", http.StatusTemporaryRedirect)
	})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, one.URL+"/a", nil)
	if err != nil {
		t.Fatal(err)
	}
	own := http.Header{"X-Key": {"secret"}}
	req.Header.Set("X-Key", "secret")
	req.Header.Set("Range", "bytes=1-2")
	resp, followed, err := redirect.Do(req, own, http.DefaultTransport.RoundTrip)
	if err != nil || resp.StatusCode != http.StatusPartialContent || followed != 2 {
		t.Fatalf("%v, %d followed, %v", resp, followed, err)
	}
	resp.Body.Close()
	if seen["one/b"].Get("X-Key") != "secret" || seen["other/c"].Get("X-Key") != "" ||
		seen["other/c"].Get("Range") != "bytes=1-2" {
		t.Errorf("headers: %v", seen)
	}
}

func TestEndlessRedirects(t *testing.T) {
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		n, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		http.Redirect(w, r, "/"+strconv.Itoa(n+1), http.StatusFound)
	}))
	defer s.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/0", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := redirect.Do(req, nil, http.DefaultTransport.RoundTrip); !errors.Is(err, redirect.ErrTooMany) ||
		asked != redirect.Most+1 {
		t.Errorf("%d requests, %v", asked, err)
	}
}
