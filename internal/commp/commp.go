// Package commp computes Filecoin's piece commitment (CommP), which identifies a piece.
package commp

import (
	"crypto/sha256"
	"math/bits"
	"strings"

	"github.com/ipfs/go-cid"
	mh "github.com/multiformats/go-multihash"
)

const (
	unsealed   = 0xf101 // multicodec fil-commitment-unsealed
	sha254     = 0x1012 // multihash sha2-256-trunc254-padded
	quad       = 127    // bytes that become four leaves
	mostLevels = 29     // over quads: the largest sector has 64 GiB
)

// Parse extracts the CID of a piece from the end of a path.
func Parse(path string) (piece cid.Cid, ok bool) {
	c, err := cid.Decode(path[strings.LastIndexByte(path, '/')+1:])
	if err != nil || c.Type() != unsealed || c.Prefix().MhType != sha254 {
		return cid.Undef, false
	}
	return c, true
}

// Hash hashes a piece. The commitment is the root of a binary tree over the whole piece; a part of
// a piece has none. The zero value is ready for use.
type Hash struct {
	buf   [quad]byte
	n     int // bytes in buf
	count uint64
	tree  [64][32]byte // roots of complete trees, at the one bits of count
}

// Write implements io.Writer.
func (h *Hash) Write(p []byte) (int, error) {
	all := len(p)
	for len(p) > 0 {
		n := copy(h.buf[h.n:], p)
		h.n, p = h.n+n, p[n:]
		if h.n == quad {
			h.add()
		}
	}
	return all, nil
}

// add hashes buf: every 254 bits become a leaf of 32 bytes (Fr32).
func (h *Hash) add() {
	b, leaf := &h.buf, [4][32]byte{}
	for i := range 32 {
		leaf[0][i] = b[i]
		leaf[1][i] = b[31+i]>>6 | b[32+i]<<2
		leaf[2][i] = b[63+i]>>4 | b[64+i]<<4
		leaf[3][i] = b[95+i] >> 2
		if i < 31 {
			leaf[3][i] |= b[96+i] << 6
		}
	}
	for i := range leaf {
		leaf[i][31] &= 0x3f
	}
	root, level := node(node(leaf[0], leaf[1]), node(leaf[2], leaf[3])), 0
	for ; h.count>>level&1 == 1; level++ {
		root = node(h.tree[level], root)
	}
	h.tree[level] = root
	h.count++
	h.buf, h.n = [quad]byte{}, 0
}

// sum pads with zeros to the next piece size, 127 bytes times a power of two, and returns the root
// and that power.
func (h Hash) sum() (root [32]byte, levels int) {
	if h.n > 0 || h.count == 0 {
		h.add()
	}
	levels = bits.Len64(h.count - 1)
	low := bits.TrailingZeros64(h.count)
	root = h.tree[low]
	for level := low; level < levels; level++ {
		if level > low && h.count>>level&1 == 1 {
			root = node(h.tree[level], root)
		} else {
			root = node(root, zeros(level))
		}
	}
	return root, levels
}

// Piece returns the CID of the smallest piece that contains what was written, and its size without
// Fr32 padding.
func (h *Hash) Piece() (cid.Cid, int64) {
	root, levels := h.sum()
	return toCID(root), quad << levels
}

// Is reports whether what was written is the piece, or the piece without zeros at its end: the CID
// does not contain the piece's size.
func (h *Hash) Is(piece cid.Cid) bool {
	root, levels := h.sum()
	for ; levels <= mostLevels; levels++ {
		if toCID(root).Equals(piece) {
			return true
		}
		root = node(root, zeros(levels))
	}
	return false
}

// zeros returns the root over 2^level quads of zeros.
func zeros(level int) (root [32]byte) {
	for range level + 2 {
		root = node(root, root)
	}
	return root
}

// node returns SHA-256 with the two highest bits cleared.
func node(l, r [32]byte) [32]byte {
	var both [64]byte
	copy(both[:], l[:])
	copy(both[32:], r[:])
	sum := sha256.Sum256(both[:])
	sum[31] &= 0x3f
	return sum
}

func toCID(root [32]byte) cid.Cid {
	hash, _ := mh.Encode(root[:], sha254) // it fails only for an unknown hash function
	return cid.NewCidV1(unsealed, hash)
}
