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
	status := func(want int, query string, header http.Header) []*http.Cookie {
		t.Helper()
		req := httptest.NewRequest("GET", "http://127.0.0.1:7117/run/a/"+query, nil)
		req.Header = header
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		cookies := w.Result().Cookies()
		if w.Code != want || want == http.StatusForbidden && len(cookies) > 0 {
			t.Errorf("%s with %v: %d, want %d; cookies %v", query, header, w.Code, want, cookies)
		}
		return cookies
	}
	for _, wrong := range []string{"", "?token=", "?token=WRONG", "?token=RIGHT2", "?token=RIGH"} {
		status(http.StatusForbidden, wrong, nil)
	}
	kept := status(http.StatusNoContent, "?token="+token, nil)
	if len(kept) != 1 || !kept[0].HttpOnly || kept[0].SameSite != http.SameSiteStrictMode {
		t.Fatalf("cookies %v", kept)
	}
	for value, want := range map[string]int{kept[0].Value: http.StatusNoContent, "WRONG": http.StatusForbidden} {
		status(want, "", http.Header{"Cookie": {kept[0].Name + "=" + value}})
	}
	for bearer, want := range map[string]int{"Bearer " + token: http.StatusNoContent,
		"Bearer WRONG": http.StatusForbidden, "Bearer ": http.StatusForbidden} {
		status(want, "", http.Header{"Authorization": {bearer}})
	}
}
