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

// atPiece is a runner at a server of one object, and the events that it records.
func atPiece(t *testing.T, path string, size, most int64, answer http.HandlerFunc) (*runner, *pieces, *[]string) {
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL + "/" + path)
	must(t, err)
	node, events := &pieces{url: u, object: system.Object{Name: "piece", Size: size}}, new([]string)
	return &runner{node: node, server: node, copyMost: most, site: scenario.Site{
		Client: dialer{}, Dir: t.TempDir(), Seed: 7, Say: func(string) {},
		Event: func(_, _, what string, _ time.Duration) { *events = append(*events, what) },
	}}, node, events
}

// load fetches 300 ranges.
func load(t *testing.T, r *runner, set []object, length experiment.Bytes, order string) httpload.Result {
	t.Helper()
	cell := experiment.Cell{Retrieve: &experiment.Retrieve{Concurrency: 2, Range: length, Order: order, Requests: 300}}
	r.sets = map[string][]object{cell.Data.Key(): set}
	spec, err := r.spec(cell, 11)
	must(t, err)
	res, err := httpload.Run(t.Context(), spec, ignored{})
	must(t, err)
	return res
}

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
		"healthy": {largest: length, fetched: most, notes: []string{noteConsistent, noteBeginning}},
		"another in the trial": {largest: length, fetched: most, notes: []string{noteConsistent, noteBeginning},
			late: wrong},
		"whole objects too": {fetched: size, notes: []string{noteFullCopy}},
		"larger ranges":     {largest: 2 * most, fetched: 2 * most, notes: []string{noteConsistent, noteBeginning}},
	} {
		t.Run(name, func(t *testing.T) {
			var served atomic.Int64
			data := right
			r, node, _ := atPiece(t, "piece", size, most, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/octet-stream")
				http.ServeContent(counted{w, &served}, r, "", time.Time{}, bytes.NewReader(data))
			})
			set, err := r.ownObjects(t.Context(), node, true, c.largest)
			must(t, err)
			if got := served.Load(); got != c.fetched {
				t.Errorf("%d bytes were fetched as reference, want %d", got, c.fetched)
			}
			if c.late != nil {
				data = c.late
			}
			for _, order := range []string{"random", "aligned", "sequential"} {
				res := load(t, r, set, length, order)
				if ok := res.Outcomes["ok"]; (ok == 300) == (c.late != nil) || ok+res.Outcomes["wrong-bytes"] != 300 {
					t.Errorf("%s: %v", order, res.Outcomes)
				}
				if got := verifiedBy(set, "verify"); !slices.Equal(got, c.notes) {
					t.Errorf("%q", got)
				}
			}
		})
	}
}
