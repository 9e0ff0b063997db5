package boost

import (
	"bytes"
	"crypto/sha256"
	"testing"

	"github.com/ipfs/go-cid"
	mh "github.com/multiformats/go-multihash"
)

// commP computes the piece commitment of data as a CID, and the size of the
// piece without Fr32 padding, 127/128 of a power of two: data, then zeros.
//
// Every 127 bytes become four elements of 254 bits, little-endian, in 32 bytes
// each; these are the leaves of a binary tree of SHA-256 with the two highest
// bits cleared (Filecoin specification, "Piece commitments").
func commP(data []byte) (cid.Cid, int64) {
	quads := 1
	for quads*127 < len(data) {
		quads *= 2
	}
	padded := append(bytes.Clone(data), make([]byte, quads*127-len(data))...)
	var layer [][32]byte
	for ; len(padded) > 0; padded = padded[127:] {
		for k := range 4 {
			var leaf [32]byte
			for bit := range 254 {
				at := k*254 + bit
				leaf[bit/8] |= padded[at/8] >> (at % 8) & 1 << (bit % 8)
			}
			layer = append(layer, leaf)
		}
	}
	for len(layer) > 1 {
		up := layer[:0]
		for i := 0; i < len(layer); i += 2 {
			up = append(up, node(layer[i], layer[i+1]))
		}
		layer = up
	}
	return pieceCID(layer[0]), int64(quads) * 127
}

func node(l, r [32]byte) [32]byte {
	sum := sha256.Sum256(append(l[:], r[:]...))
	sum[31] &= 0x3f
	return sum
}

func pieceCID(root [32]byte) cid.Cid {
	const filCommitmentUnsealed, sha256Trunc254Padded = 0xf101, 0x1012
	hash, err := mh.Encode(root[:], sha256Trunc254Padded)
	if err != nil {
		panic(err)
	}
	return cid.NewCidV1(filCommitmentUnsealed, hash)
}

// TestCommP holds the computation to published vectors.
func TestCommP(t *testing.T) {
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
		got, size := commP(bytes.Repeat([]byte{0xCC}, int(v.n)))
		if got.String() != v.want || size != v.size {
			t.Errorf("%d bytes: %s of %d bytes, want %s of %d", v.n, got, size, v.want, v.size)
		}
	}
	// The empty 32 GiB sector, known to every storage provider.
	var zero [32]byte
	for range 30 {
		zero = node(zero, zero)
	}
	if got, want := pieceCID(zero).String(), "baga6ea4seaqao7s73y24kcutaosvacpdjgfe5pw76ooefnyqw4ynr3d2y6x2mpq"; got != want {
		t.Errorf("empty 32 GiB: %s, want %s", got, want)
	}
}
