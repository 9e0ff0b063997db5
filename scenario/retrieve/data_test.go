package retrieve

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ipfs/go-cid"
	"github.com/ipld/go-car/v2"
	"github.com/ipld/go-car/v2/storage"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/httpload"
	"github.com/plimsoll-project/plimsoll/internal/commp"
	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/internal/synthetic"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/mem"
	"github.com/plimsoll-project/plimsoll/testbed"
	"github.com/plimsoll-project/plimsoll/workload"
)

// If a server cannot serve ranges, the error has a hint what to write instead.
func TestRangesThatAServerDoesNotServe(t *testing.T) {
	own := object{name: "own"}
	own.Size, own.Undivided = 1<<20, "the server answers ranges with the whole"
	err := own.fits(1000)
	var hint interface{ Hint() string }
	if !errors.As(err, &hint) || !strings.Contains(hint.Hint(), "retrieve.range to whole") ||
		!strings.HasPrefix(err.Error(), "own: ranges cannot be fetched") {
		t.Errorf("%v", err)
	}
}

// served is a node that accepts a limited number of objects, whose URLs are not fetched.
type served struct {
	*mem.Node
	room int
}

func (n *served) Seed(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	if n.room--; n.room < 0 {
		return "", fmt.Errorf("full: %w", system.ErrQuota)
	}
	return n.Node.Seed(ctx, name, size, r)
}

func (*served) Target(ref system.Ref) (system.HTTPTarget, error) {
	u, err := url.Parse("http://127.0.0.1:1/" + url.PathEscape(string(ref)))
	return system.HTTPTarget{URL: u}, err
}

func cellOf(objects int) experiment.Cell {
	return experiment.Cell{Data: experiment.Data{Objects: objects, Size: 1000},
		Retrieve: &experiment.Retrieve{Concurrency: 1}}
}

// A failed preparation leaves no objects in an attached system.
func TestFailedPrepareLeavesNothing(t *testing.T) {
	synthetic.Virtual(t, func(t *testing.T) {
		n := &served{synthetic.MemNode(t, nil), 3}
		_, err := scenario.Prepare(t.Context(), Scenario{}, system.Info{}, synthetic.Site(system.Attach, n),
			[]experiment.Cell{cellOf(4)})
		if !errors.Is(err, system.ErrQuota) || !strings.HasPrefix(err.Error(), "it: ") {
			t.Error(err)
		}
		if n.room != -1 || synthetic.Objects(t, n.Node) != 0 {
			t.Errorf("room for %d, %d objects are left", n.room, synthetic.Objects(t, n.Node))
		}
	})
}

func TestPreparesEachDataSetOnce(t *testing.T) {
	own := cellOf(3)
	own.Data.Size = 0
	if objects, bytes := (Scenario{}).Prepares([]experiment.Cell{cellOf(3), cellOf(3), cellOf(5), own}); objects != 8 ||
		bytes != 8000 {
		t.Errorf("%d objects, %d bytes", objects, bytes)
	}
}

const virtualHost = "pieces.example"

// pieces is a server of one large object, on a virtual host.
type pieces struct {
	system.Store
	url    *url.URL
	object system.Object
}

func (p *pieces) Objects(context.Context) ([]system.Object, error) {
	return []system.Object{p.object}, nil
}
func (p *pieces) Target(system.Ref) (system.HTTPTarget, error) {
	return system.HTTPTarget{URL: p.url, Header: http.Header{"Host": {virtualHost}}}, nil
}

type dialer struct{ testbed.Host }

func (dialer) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

// counted counts the bytes of bodies.
type counted struct {
	http.ResponseWriter
	n *atomic.Int64
}

func (c counted) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return c.ResponseWriter.Write(p)
}

func seeded(size int64) []byte {
	b := make([]byte, size)
	c := workload.Content{Seed: 5, Size: size}
	c.Reader().Read(b)
	return b
}

// carOf returns a CAR of data in blocks of a given size; every eighth has another codec.
func carOf(t *testing.T, data []byte, block int, opts ...car.Option) []byte {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "car"))
	must(t, err)
	defer f.Close()
	root, err := cid.V1Builder{Codec: cid.Raw, MhType: 0x12}.Sum(data)
	must(t, err)
	w, err := storage.NewWritable(f, []cid.Cid{root}, opts...)
	must(t, err)
	i := 0
	for b := range slices.Chunk(data, block) {
		codec := uint64(cid.Raw)
		if i++; i%8 == 0 {
			codec = cid.DagProtobuf
		}
		c, err := cid.V1Builder{Codec: codec, MhType: 0x12}.Sum(b)
		if err == nil {
			err = w.Put(t.Context(), c.KeyString(), b)
		}
		must(t, err)
	}
	must(t, w.Finalize())
	out, err := os.ReadFile(f.Name())
	must(t, err)
	return out
}

func pieceName(data []byte) string {
	var h commp.Hash
	h.Write(data)
	c, _ := h.Piece()
	return c.String()
}

// spoilt returns b with some bytes changed.
func spoilt(b []byte, from, to int) []byte {
	b = bytes.Clone(b)
	for i := from; i < to; i++ {
		b[i] ^= 1
	}
	return b
}

// A provider's content is checked by its piece commitment or by the hashes of its blocks, and the
// trial's notes name the method.
func TestHowAProvidersBytesAreChecked(t *testing.T) {
	const most, length, size = 4 << 20, 50_000, 16 << 20
	v1 := car.WriteAsCarV1(true)
	plain := seeded(size)
	large := carOf(t, plain, 20_000, v1)
	small := carOf(t, plain[:1<<20], 20_000, v1)
	nested := carOf(t, carOf(t, plain, 7_000, v1), 20_000, v1)
	damaged := func(b []byte, at int) []byte { return spoilt(b, at, at+1) }
	for name, c := range map[string]struct {
		data    []byte
		path    string
		padding int
		largest int64  // largest range; 0: length, −1: whole objects, too
		late    []byte // content served during the trial; nil: data
		by      string
		fetched int64 // bytes fetched before anything is measured; 0: not checked
		event   string
		refused string
	}{
		"large CAR": {data: large, by: noteBlocks,
			event: " of " + strconv.Itoa(len(large)) + "; content: "},
		"large CAR, version 2": {data: carOf(t, plain, 20_000), by: noteBlocks},
		"CAR of a CAR":         {data: nested, by: noteBlocks},
		"large piece, a CAR": {data: large, padding: len(large), path: "piece/" + pieceName(large),
			by: noteBlocks},
		"large piece, no CAR":              {data: plain, path: pieceName(plain), by: noteConsistent},
		"large blocks":                     {data: carOf(t, plain, 500_000, v1), by: noteBlocks},
		"blocks that reach three quarters": {data: carOf(t, plain, 3<<20, v1), by: noteBlocks},
		"blocks larger than the copy":      {data: carOf(t, plain, 5<<20, v1), by: noteConsistent},
		"plain bytes":                      {data: plain, by: noteConsistent, fetched: most},
		"plain bytes, others in the trial": {data: plain, late: spoilt(plain, 0, most), by: noteConsistent},
		"plain bytes, larger ranges":       {data: plain, largest: 2 * most, by: noteConsistent, fetched: 2 * most},
		"plain bytes, whole objects too":   {data: plain, largest: -1, by: noteFullCopy, fetched: size},
		"first block damaged":              {data: damaged(large, 200), refused: "another hash"},
		"last block of the copy damaged":   {data: damaged(large, most-30_000), refused: "another hash"},
		"block behind the copy":            {data: damaged(large, most+100_000), by: noteBlocks},
		"large CAR, damaged in the trial":  {data: large, late: spoilt(large, 0, 1<<20), by: noteBlocks},
		"small piece": {data: small, path: pieceName(small), by: noteCommP,
			event: "; " + noteCommP},
		"small piece with its padding": {data: small, padding: 127<<14 - len(small), path: pieceName(small),
			by: noteCommP},
		"small piece, damaged": {data: damaged(small, 300_000), path: pieceName(small),
			refused: "its piece commitment (CommP) is baga6ea4seaq"},
		"small CAR":                       {data: small, by: noteBlocks, event: "; " + noteBlocks},
		"small CAR, damaged":              {data: damaged(small, 300_000), refused: "another hash"},
		"small CAR, cut":                  {data: small[:len(small)-100], by: noteFullCopy},
		"small CAR, damaged in the trial": {data: small, late: spoilt(small, 0, 1<<19), by: noteBlocks},
	} {
		t.Run(name, func(t *testing.T) {
			data := append(bytes.Clone(c.data), make([]byte, c.padding)...)
			var served atomic.Int64
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Host != virtualHost {
					http.Error(w, "another host", http.StatusNotFound)
					return
				}
				w.Header().Set("Content-Type", "application/octet-stream")
				http.ServeContent(counted{w, &served}, r, "", time.Time{}, bytes.NewReader(data))
			}))
			defer s.Close()
			u, err := url.Parse(s.URL + "/" + c.path)
			must(t, err)
			node := &pieces{url: u, object: system.Object{Name: "piece", Size: int64(len(data))}}
			var events []string
			r := &runner{node: node, server: node, copyMost: most, site: scenario.Site{
				Use:    experiment.SystemUse{Mode: "attach"},
				Client: dialer{}, Dir: t.TempDir(), Seed: 7, Limits: synthetic.Limits(), Say: func(string) {},
				Event: func(_, _, what string, _ time.Duration) { events = append(events, what) },
			}}
			if c.padding > 0 {
				node.object.Payload = int64(len(c.data))
			}
			set, err := r.ownObjects(t.Context(), true, max(0, cmp.Or(c.largest, length)))
			if c.refused != "" {
				if ui.Hint(err) == "" || !strings.Contains(err.Error(), c.refused) {
					t.Fatalf("error %v, want one with %q", err, c.refused)
				}
				return
			}
			must(t, err)
			copied := served.Load()
			if c.fetched > 0 && copied != c.fetched {
				t.Errorf("%d bytes were fetched as reference, want %d", copied, c.fetched)
			}
			if len(events) != 1 || !strings.Contains(events[0], c.event) {
				t.Errorf("events %q, want one with %q", events, c.event)
			}
			if by := verifiedBy(set, "verify"); !strings.HasPrefix(by[0], c.by) ||
				strings.HasSuffix(by[0], noteBeginning) != (copied < set[0].Size) {
				t.Errorf("%q, want %q", by, c.by)
			}
			if c.late != nil {
				data = c.late
			}
			for _, order := range []string{"random", "aligned", "sequential"} {
				cell := experiment.Cell{Retrieve: &experiment.Retrieve{Concurrency: 2, Range: length, Order: order,
					Requests: 300}}
				r.sets = map[string][]object{cell.Data.Key(): set}
				spec, err := r.spec(cell, 11)
				must(t, err)
				sum := record.NewSummary()
				_, err = httpload.Run(t.Context(), spec, sum.Ops)
				must(t, err)
				n := sum.Counts().OutcomeMap()
				if ok := n["ok"]; (ok == 300) == (c.late != nil) || ok+n["wrong-bytes"] != 300 {
					t.Errorf("%s: %v", order, n)
				}
			}
		})
	}
}

// A copy that a server does not finish ends at the stall limit.
func TestCopyStalls(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000")
		w.Write(make([]byte, 500))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	defer s.Close()
	u, err := url.Parse(s.URL)
	must(t, err)
	node := &pieces{url: u, object: system.Object{Name: "piece", Size: 1000}}
	limits := synthetic.Limits()
	limits.Stall = experiment.Duration(100 * time.Millisecond)
	r := &runner{node: node, server: node, copyMost: copyMost, site: scenario.Site{
		Use: experiment.SystemUse{Mode: "attach"}, Client: dialer{}, Dir: t.TempDir(), Limits: limits, Say: func(string) {},
	}}
	if _, err := r.ownObjects(t.Context(), true, 0); err == nil || !strings.Contains(err.Error(), "limits.stall") {
		t.Errorf("error %v", err)
	}
}
