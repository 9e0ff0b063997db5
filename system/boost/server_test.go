package boost

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ipfs/boxo/blockservice"
	"github.com/ipfs/boxo/blockstore"
	chunk "github.com/ipfs/boxo/chunker"
	"github.com/ipfs/boxo/ipld/merkledag"
	"github.com/ipfs/boxo/ipld/unixfs/importer/balanced"
	"github.com/ipfs/boxo/ipld/unixfs/importer/helpers"
	"github.com/ipfs/go-cid"
	"github.com/ipfs/go-datastore"
	"github.com/ipld/go-car/v2"
	"github.com/ipld/go-car/v2/storage"

	"github.com/plimsoll-project/plimsoll/internal/commp"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

// piece is a real piece: a CAR of a UnixFS file, its commitment, and the zeros that pad it.
type piece struct {
	root   cid.Cid
	cid    cid.Cid
	car    []byte
	filled []byte // the CAR, then zeros
}

func newPiece(t *testing.T, size int64) piece {
	t.Helper()
	blocks := blockservice.New(blockstore.NewBlockstore(datastore.NewMapDatastore()), nil)
	prefix, err := merkledag.PrefixForCidVersion(1)
	must(t, err)
	dag := merkledag.NewDAGService(blocks)
	params := helpers.DagBuilderParams{Dagserv: dag, Maxlinks: helpers.DefaultLinksPerBlock, RawLeaves: true,
		CidBuilder: prefix}
	builder, err := params.New(chunk.NewSizeSplitter(systemtest.Content("piece", size), 256<<10))
	must(t, err)
	root, err := balanced.Layout(builder)
	must(t, err)
	var out bytes.Buffer
	w, err := storage.NewWritable(&out, []cid.Cid{root.Cid()}, car.WriteAsCarV1(true))
	must(t, err)
	must(t, merkledag.Walk(t.Context(), merkledag.GetLinksDirect(dag), root.Cid(), func(c cid.Cid) bool {
		b, err := blocks.GetBlock(t.Context(), c)
		must(t, err)
		must(t, w.Put(t.Context(), c.KeyString(), b.RawData()))
		return true
	}))
	p := piece{root: root.Cid(), car: out.Bytes()}
	var h commp.Hash
	h.Write(p.car)
	id, filled := h.Piece()
	p.cid, p.filled = id, append(bytes.Clone(p.car), make([]byte, filled-int64(len(p.car)))...)
	return p
}

// boosterHTTP behaves like booster-http: it pads the piece with zeros, copies in user space,
// answers 400 to an invalid CID, and streams CARs without a length.
func boosterHTTP(t *testing.T, p piece) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/info", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, `{"Version":"0.3.0"}`) })
	mux.HandleFunc("/piece/{cid}", func(w http.ResponseWriter, r *http.Request) {
		id, err := cid.Parse(r.PathValue("cid"))
		if err != nil {
			http.Error(w, "parsing piece CID: "+err.Error(), http.StatusBadRequest)
			return
		}
		if id != p.cid {
			http.Error(w, "there are no deals containing piece "+id.String()+": not found", http.StatusNotFound)
			return
		}
		w.Header().Set("Vary", "Accept-Encoding")
		w.Header().Set("Etag", `"`+id.String()+`"`)
		w.Header().Set("Content-Type", "application/piece")
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") { // booster-http would compress
			t.Error("a piece is asked for compressed")
		}
		// The wrapper hides ReadFrom, and with it sendfile.
		http.ServeContent(struct{ http.ResponseWriter }{w}, r, "", time.UnixMilli(1), bytes.NewReader(p.filled))
	})
	mux.HandleFunc("/ipfs/{cid}", func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.PathValue("cid") != p.root.String():
			http.NotFound(w, r)
		case r.FormValue("format") != "car":
			http.Error(w, "only CAR here", http.StatusBadRequest)
		default:
			w.Header().Set("Content-Type", "application/vnd.ipld.car; version=1")
			w.WriteHeader(http.StatusOK)
			if r.Method != http.MethodHead {
				w.(http.Flusher).Flush() // chunked: no length
				w.Write(p.car)
			}
		}
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}
