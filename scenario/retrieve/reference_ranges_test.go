package retrieve

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
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
	wrong := bytes.Clone(right)
	for i := range most {
		wrong[i] ^= 1
	}
	for name, c := range map[string]struct {
		largest int64
		late    []byte // what the trial gets; nil: as before
		notes   []string
		fetched int64
	}{
		"healthy":              {largest: length, fetched: most, notes: []string{noteConsistent, noteBeginning}},
		"another in the trial": {largest: length, fetched: most, notes: []string{noteConsistent, noteBeginning}, late: wrong},
		"whole objects too":    {fetched: size, notes: []string{noteFullCopy}},
		"larger ranges":        {largest: 2 * most, fetched: 2 * most, notes: []string{noteConsistent, noteBeginning}},
	} {
		t.Run(name, func(t *testing.T) {
			var served atomic.Int64
			data := right
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
			if err != nil {
				t.Fatal(err)
			}
			if got := served.Load(); got != c.fetched {
				t.Errorf("%d bytes were fetched as reference, want %d", got, c.fetched)
			}
			if c.late != nil {
				data = c.late
			}
			for _, order := range []string{"random", "aligned", "sequential"} {
				cell := experiment.Cell{Retrieve: &experiment.Retrieve{Concurrency: 2, Range: length, Order: order, Requests: 100}}
				r.sets = map[string][]object{cell.Data.Key(): set}
				spec, err := r.spec(cell, 11)
				if err != nil {
					t.Fatal(err)
				}
				res, err := httpload.Run(t.Context(), spec, ignored{})
				if err != nil {
					t.Fatal(err)
				}
				if ok := res.Outcomes["ok"]; (ok == 100) == (c.late != nil) || ok+res.Outcomes["wrong-bytes"] != 100 {
					t.Errorf("%s: %v", order, res.Outcomes)
				}
				if got := verifiedBy(set, spec.Receive); !slices.Equal(got, c.notes) {
					t.Errorf("%q", got)
				}
			}
		})
	}
}
