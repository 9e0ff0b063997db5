package kubo

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net/url"
	"testing"

	chunk "github.com/ipfs/boxo/chunker"
	"github.com/ipfs/boxo/ipld/merkledag"
	mdtest "github.com/ipfs/boxo/ipld/merkledag/test"
	"github.com/ipfs/boxo/ipld/unixfs/importer/balanced"
	"github.com/ipfs/boxo/ipld/unixfs/importer/helpers"
	"github.com/ipfs/go-cid"

	"github.com/plimsoll-project/plimsoll/system/internal/replay"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

// carOf is the CAR that a gateway makes of a file, depth first.
func carOf(t *testing.T, data []byte, cidVersion int, rawLeaves bool, size int64) (cid.Cid, []byte) {
	t.Helper()
	dag := mdtest.Mock()
	prefix, err := merkledag.PrefixForCidVersion(cidVersion)
	if err != nil {
		t.Fatal(err)
	}
	params := helpers.DagBuilderParams{Dagserv: dag, Maxlinks: helpers.DefaultLinksPerBlock, RawLeaves: rawLeaves, CidBuilder: prefix}
	builder, err := params.New(chunk.NewSizeSplitter(bytes.NewReader(data), size))
	if err != nil {
		t.Fatal(err)
	}
	root, err := balanced.Layout(builder)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	section := func(parts ...[]byte) {
		whole := bytes.Join(parts, nil)
		out.Write(binary.AppendUvarint(nil, uint64(len(whole))))
		out.Write(whole)
	}
	id := append([]byte{0}, root.Cid().Bytes()...) // in CBOR a CID begins with a zero
	section([]byte("\xa2eroots\x81\xd8\x2aX"), []byte{byte(len(id))}, id, []byte("gversion\x01"))
	var walk func(c cid.Cid)
	walk = func(c cid.Cid) {
		n, err := dag.Get(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		section(c.Bytes(), n.RawData())
		for _, l := range n.Links() {
			walk(l.Cid)
		}
	}
	walk(root.Cid())
	return root.Cid(), out.Bytes()
}

func TestFileOfCAR(t *testing.T) {
	for _, c := range []struct {
		name  string
		data  []byte
		v     int
		raw   bool
		chunk int64
	}{
		{"empty", nil, 1, true, 256 << 10},
		{"a leaf", systemtest.Bytes("leaf", 1000), 1, true, 256 << 10},
		{"leaves that are nodes", systemtest.Bytes("nodes", 1_000_000), 0, false, 256 << 10},
		{"two levels, the same block many times", make([]byte, 400*100+1), 1, true, 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			root, whole := carOf(t, c.data, c.v, c.raw, c.chunk)
			var got bytes.Buffer
			if err := fileOfCAR(bytes.NewReader(whole), root, &got); err != nil || !bytes.Equal(got.Bytes(), c.data) {
				t.Fatalf("%d bytes, %v", got.Len(), err)
			}
			for _, cut := range []int{0, 1, 20, len(whole) / 2, len(whole) - 1} {
				if err := fileOfCAR(bytes.NewReader(whole[:cut]), root, io.Discard); !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("cut after %d of %d bytes: %v", cut, len(whole), err)
				}
			}
			if err := fileOfCAR(bytes.NewReader(append(whole[:len(whole):len(whole)], whole[len(whole)-10:]...)), root, io.Discard); err == nil {
				t.Error("more than the CAR passes")
			}
			if len(c.data) > 0 {
				wrong := bytes.Clone(whole)
				wrong[len(wrong)-1] ^= 1
				if err := fileOfCAR(bytes.NewReader(wrong), root, io.Discard); err == nil {
					t.Error("a flipped bit passes")
				}
			}
		})
	}
}

// TestCARThatStops: a trustless gateway that reaches its limit ends a CAR as
// "0\r\n", with status 200.
func TestCARThatStops(t *testing.T) {
	query, err := url.ParseQuery(carQuery)
	if err != nil {
		t.Fatal(err)
	}
	data := made("1MiB", 1<<20)
	_, whole := carOf(t, data, 1, true, 256<<10)
	recorded := func(step string) replay.Exchange { return asked(t, "frisbii-response-limit", step, query) }
	front := recorded("car-1MiB-default-limit")
	front.Answer.Body, front.Answer.End = replay.Body{Bytes: 600_000, SHA256: replay.Sum(whole[:600_000])}, replay.NoLastRow
	all := recorded("car-1MiB-default-limit")
	all.Answer.End = replay.NoLastRow
	for name, c := range map[string]struct {
		answer replay.Exchange
		ok     bool
	}{
		"whole":                              {recorded("car-1MiB-default-limit"), true}, // the hash is that of our CAR: carOf is right
		"nothing of it":                      {recorded("car-1MiB-limit-200KiB"), false},
		"half of it":                         {front, false},
		"all of it, and not a proper ending": {all, false},
	} {
		t.Run(name, func(t *testing.T) {
			n := one(t, "car", []replay.Exchange{c.answer}, whole)
			var got bytes.Buffer
			err := n.Get(systemtest.Context(t), medium, &got)
			if c.ok && (err != nil || !bytes.Equal(got.Bytes(), data)) || !c.ok && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%d bytes, %v", got.Len(), err)
			}
		})
	}
}
