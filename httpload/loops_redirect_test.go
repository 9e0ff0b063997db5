package httpload_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/httpload"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/workload"
)

type noOps struct{}

func (noOps) Ops([]record.Op) error { return nil }

// Ranges of an object that is served elsewhere are fetched, compared and counted.
func TestRedirectsAreFollowed(t *testing.T) {
	content := &workload.Content{Seed: 1, Size: 100_000}
	data := make([]byte, content.Size)
	content.ReadAt(data, 0)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	}))
	defer other.Close()
	one := httptest.NewServer(http.RedirectHandler(other.URL+"/x", http.StatusFound))
	defer one.Close()
	for _, follow := range []bool{true, false} {
		res, err := httpload.Run(t.Context(), httpload.Spec{
			Objects:     []httpload.Object{{URL: one.URL + "/x", Size: content.Size, Content: content, Follow: follow}},
			Concurrency: 2, Range: 1000, Requests: 20,
		}, noOps{})
		if err != nil {
			t.Fatal(err)
		}
		want, redirects := "ok", int64(20)
		if !follow {
			want, redirects = "error", 0
		}
		if res.Outcomes[want] != 20 || res.Redirects != redirects || res.Reconnects != 0 {
			t.Errorf("follow %v: %v, %d redirects, %d reconnects", follow, res.Outcomes, res.Redirects, res.Reconnects)
		}
	}
}
