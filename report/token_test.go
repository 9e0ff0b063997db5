package report_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/plimsoll-project/plimsoll/report"
)

// Nothing is served without the token, in any of its three places, and a browser
// that has opened the address once goes on with its cookie.
func TestToken(t *testing.T) {
	const token = "RIGHT"
	h := report.WithToken(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	}), token)
	ask := func(address string, change func(*http.Request)) *http.Response {
		req := httptest.NewRequest("GET", address, nil)
		if change != nil {
			change(req)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		return w.Result()
	}
	for _, path := range []string{"/", "/metrics", "/events", "/run/a/", "/nothing"} {
		address := "http://127.0.0.1:7117" + path
		for _, wrong := range []string{"", "?token=", "?token=WRONG", "?token=RIGHT2", "?token=RIGH"} {
			if r := ask(address+wrong, nil); r.StatusCode != http.StatusForbidden || len(r.Cookies()) > 0 {
				t.Errorf("%s%s: %d, cookies %v", path, wrong, r.StatusCode, r.Cookies())
			}
		}
		r := ask(address+"?token="+token, nil)
		if r.StatusCode != http.StatusNoContent || len(r.Cookies()) != 1 || !r.Cookies()[0].HttpOnly ||
			r.Cookies()[0].SameSite != http.SameSiteStrictMode {
			t.Fatalf("%s: %d, cookies %v", path, r.StatusCode, r.Cookies())
		}
		kept := r.Cookies()[0]
		if r := ask(address, func(req *http.Request) { req.AddCookie(kept) }); r.StatusCode != http.StatusNoContent {
			t.Errorf("%s with the cookie: %d", path, r.StatusCode)
		}
		kept.Value = "WRONG"
		if r := ask(address, func(req *http.Request) { req.AddCookie(kept) }); r.StatusCode != http.StatusForbidden {
			t.Errorf("%s with another cookie: %d", path, r.StatusCode)
		}
		for bearer, want := range map[string]int{"Bearer " + token: http.StatusNoContent,
			"Bearer WRONG": http.StatusForbidden, "Bearer ": http.StatusForbidden} {
			if r := ask(address, func(req *http.Request) {
				req.Header.Set("Authorization",
					bearer)
			}); r.StatusCode != want {
				t.Errorf("%s with %q: %d", path, bearer, r.StatusCode)
			}
		}
	}
}
