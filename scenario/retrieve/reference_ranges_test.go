package retrieve

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/httpload"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
	"github.com/plimsoll-project/plimsoll/workload"
)

// pieces is a server of one large object.
type pieces struct {
	system.Store
	url    *url.URL
	object system.Object
}

func (p *pieces) Objects(context.Context) ([]system.Object, error) {
	return []system.Object{p.object}, nil
}
func (p *pieces) Target(system.Ref) (system.HTTPTarget, error) {
	return system.HTTPTarget{URL: p.url, Follow: true}, nil
}

type dialer struct{ testbed.Host }

func (dialer) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

type counted struct {
	http.ResponseWriter
	n *atomic.Int64
}

func (c counted) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return c.ResponseWriter.Write(p)
}

// ignored is a sink of operations.
type ignored struct{}

func (ignored) Ops([]record.Op) error { return nil }

// Ranges of a large object are verified without a copy of it.
func TestRangesOfALargeObjectNeedNoFullCopy(t *testing.T) {
	const size, most, length = 64 << 20, 4 << 20, 100_000
	content := workload.Content{Seed: 3, Size: size}
	right := make([]byte, size)
	content.ReadAt(right, 0)
	wrong := bytes.Clone(right) // from the first byte, which is in the first window
	for i := range most {
		wrong[i] ^= 1
	}
	for name, c := range map[string]struct {
		largest    int64
		answer     func(n int64) []byte // the n-th request's
		late       []byte               // what the trial gets; nil: as before
		refused    bool
		wrongBytes bool
		whole      bool
	}{
		"healthy":               {answer: func(int64) []byte { return right }, largest: length},
		"always the same wrong": {answer: func(int64) []byte { return wrong }, largest: length}, // cannot be found
		"another the second time": {answer: func(n int64) []byte {
			if n == 1 {
				return wrong
			}
			return right
		}, largest: length, refused: true},
		"another in the trial": {answer: func(int64) []byte { return right }, late: wrong, largest: length, wrongBytes: true},
		"whole objects too":    {answer: func(int64) []byte { return right }, largest: 0, whole: true},
	} {
		t.Run(name, func(t *testing.T) {
			var requests, served atomic.Int64
			var trial atomic.Bool
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				data := c.answer(requests.Add(1))
				if trial.Load() && c.late != nil {
					data = c.late
				}
				w.Header().Set("Content-Type", "application/octet-stream")
				http.ServeContent(counted{w, &served}, r, "", time.Time{}, bytes.NewReader(data))
			}))
			defer s.Close()
			u, _ := url.Parse(s.URL + "/piece")
			node := &pieces{url: u, object: system.Object{Name: "piece", Size: size}}
			r := &runner{node: node, server: node, copyMost: most, site: scenario.Site{
				Client: dialer{}, Dir: t.TempDir(), Seed: 7,
				Say: func(string) {}, Event: func(string, string, string, time.Duration) {},
			}}
			set, err := r.ownObjects(t.Context(), node, true, c.largest)
			if refused := err != nil && strings.Contains(err.Error(), "wrong bytes"); refused != c.refused {
				t.Fatal(err)
			}
			if c.refused {
				return
			}
			if got := served.Load(); c.whole && got != size || !c.whole && (got > most || got == 0) {
				t.Errorf("%d bytes were fetched as reference of %d, at most %d are allowed", got, size, most)
			}
			trial.Store(true)
			for _, order := range []string{"random", "aligned", "sequential"} {
				cell := experiment.Cell{Retrieve: &experiment.Retrieve{
					Concurrency: 2, Range: length, Order: order, Requests: 300,
				}}
				r.sets = map[string][]object{cell.Data.Key(): set}
				spec, err := r.spec(cell, 11)
				if err != nil {
					t.Fatal(err)
				}
				res, err := httpload.Run(t.Context(), spec, ignored{})
				if err != nil {
					t.Fatal(err)
				}
				if ok := res.Outcomes["ok"]; (ok == 300) == c.wrongBytes || ok+res.Outcomes["wrong-bytes"] != 300 {
					t.Errorf("%s: %v", order, res.Outcomes)
				}
				want := []string{noteConsistent, noteWindows}
				if c.whole {
					want = []string{noteFullCopy}
				}
				if got := verifiedBy(set, spec.Receive); !slices.Equal(got, want) {
					t.Errorf("%q", got)
				}
			}
		})
	}
}
