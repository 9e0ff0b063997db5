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
	h := report.WithToken(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
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
	const address = "http://127.0.0.1:7117/run/a/"
	status := func(want int, address string, change func(*http.Request)) []*http.Cookie {
		t.Helper()
		r := ask(address, change)
		if r.StatusCode != want || want == http.StatusForbidden && len(r.Cookies()) > 0 {
			t.Errorf("%s: %d, want %d; cookies %v", address, r.StatusCode, want, r.Cookies())
		}
		return r.Cookies()
	}
	for _, wrong := range []string{"", "?token=", "?token=WRONG", "?token=RIGHT2", "?token=RIGH"} {
		status(http.StatusForbidden, address+wrong, nil)
	}
	kept := status(http.StatusNoContent, address+"?token="+token, nil)
	if len(kept) != 1 || !kept[0].HttpOnly || kept[0].SameSite != http.SameSiteStrictMode {
		t.Fatalf("cookies %v", kept)
	}
	for value, want := range map[string]int{kept[0].Value: http.StatusNoContent, "WRONG": http.StatusForbidden} {
		cookie := *kept[0]
		cookie.Value = value
		status(want, address, func(r *http.Request) { r.AddCookie(&cookie) })
	}
	for bearer, want := range map[string]int{"Bearer " + token: http.StatusNoContent,
		"Bearer WRONG": http.StatusForbidden, "Bearer ": http.StatusForbidden} {
		status(want, address, func(r *http.Request) { r.Header.Set("Authorization", bearer) })
	}
}
