package kubo

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

// TestEndlessAnswer: a server that goes on for ever does not fill our memory.
func TestEndlessAnswer(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, err := io.WriteString(w, `{"ID": "`)
		for x := bytes.Repeat([]byte("x"), 1<<20); err == nil; {
			_, err = w.Write(x)
		}
	}))
	defer srv.Close()
	u, err := url.Parse(srv.URL)
	must(t, err)
	r := kind(nil, "").Client((&net.Dialer{}).DialContext, u)
	defer r.Web.Close()
	if _, err := r.id(systemtest.Context(t)); err == nil || !strings.Contains(err.Error(), "more than 64 MiB") {
		t.Errorf("an endless answer: %v", err)
	}
}
