package commp

import (
	"bytes"
	"testing"

	"github.com/ipfs/go-cid"
)

// TestVectors compares with published vectors, with bytes written in different portions.
func TestVectors(t *testing.T) {
	for _, v := range []struct {
		n, size int64
		want    string
	}{ // n bytes of 0xCC: the vectors of go-fil-commp-hashhash
		{96, 127, "baga6ea4seaqhwcjhi4krhl3ht6dewnwevkpxbepxy7p7onwgz65t52typbsysby"},
		{126, 127, "baga6ea4seaqapbh46gdnszvb7fcinevsy5bzg3b4higkh7groptswf6zas6jamy"},
		{127, 127, "baga6ea4seaqmfldjtozgne6adk7eve2vdxte7vzlivae7nzsbrawobo546zkijq"},
		{253, 254, "baga6ea4seaql6ldbyafhiecr36xba5tufreyo4km2ts3lfknhl2zogp3aztxijy"},
		{255, 508, "baga6ea4seaqg7celu5y2iwbi2ra5koygvotxtzr5lj6vzvxi6gfub6mpa6niwpi"},
		{1017, 2032, "baga6ea4seaqf3n5ob5qonkwnxfcbjzftsagbnrjfzualqvzhcylz46b7sgz6wmi"},
	} {
		for _, step := range []int{1, 100, 2000} {
			var h Hash
			for rest := bytes.Repeat([]byte{0xCC}, int(v.n)); len(rest) > 0; {
				n, _ := h.Write(rest[:min(step, len(rest))])
				rest = rest[n:]
			}
			if got, size := h.Piece(); got.String() != v.want || size != v.size {
				t.Errorf("%d bytes: %s of %d bytes, want %s of %d", v.n, got, size, v.want, v.size)
			}
		}
	}
}

// A piece may be larger than its data, and the CID does not contain its size.
func TestPieceOfDataAndZeros(t *testing.T) {
	empty, ok := Parse("/piece/baga6ea4seaqao7s73y24kcutaosvacpdjgfe5pw76ooefnyqw4ynr3d2y6x2mpq")
	if !ok {
		t.Fatal("the empty sector of 32 GiB is a piece")
	}
	var h Hash
	h.Write(make([]byte, 1000))
	if !h.Is(empty) {
		t.Error("1000 zeros begin the empty sector of 32 GiB")
	}
	for n := range 40 { // every shape of the tree, complete or padded
		data := bytes.Repeat([]byte{1, 2, 3}, n*50+30)
		var short, long Hash
		short.Write(data)
		long.Write(append(data, make([]byte, 40_000-len(data))...))
		piece, _ := long.Piece()
		if !short.Is(piece) || !long.Is(piece) {
			t.Errorf("%d bytes are not recognised in a larger piece", len(data))
		}
		data[len(data)/2] ^= 1
		var wrong Hash
		wrong.Write(data)
		if wrong.Is(piece) {
			t.Errorf("%d bytes, one of them wrong, are taken for the piece", len(data))
		}
	}
}

func TestParse(t *testing.T) {
	raw, err := cid.V1Builder{Codec: cid.Raw, MhType: 0x12}.Sum([]byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "piece", raw.String()} {
		if _, ok := Parse(name); ok {
			t.Errorf("%q is taken for a piece", name)
		}
	}
}
