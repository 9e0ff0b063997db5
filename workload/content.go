package workload

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"slices"
)

// Content is one object of a seeded data set: Size bytes of an AES-128-CTR keystream whose key is
// derived from Seed and Index. It is incompressible, every byte can be computed without the bytes
// before it, and generating it takes a fraction of a nanosecond per byte, so verifying a server's
// answers requires no stored copy.
type Content struct {
	Seed  uint64 `json:"seed"`
	Index uint64 `json:"index"`
	Size  int64  `json:"size"` // bytes
}

// contentDomain separates these keys from other uses of the same seed. It names the version of the
// stream and must change whenever the bytes change.
const contentDomain = "plimsoll content v1"

func (c Content) cipher() cipher.Block {
	in := binary.BigEndian.AppendUint64([]byte(contentDomain), c.Seed)
	key := sha256.Sum256(binary.BigEndian.AppendUint64(in, c.Index))
	b, err := aes.NewCipher(key[:16])
	if err != nil {
		panic(err) // fails only for a wrong key length
	}
	return b
}

// Reader reads an object's content from any offset. It is not safe for concurrent use.
type Reader struct {
	block cipher.Block
	size  int64
	off   int64
	ctr   cipher.Stream // nil: must be set up at off
}

// Reader returns a reader at the start of the object.
func (c Content) Reader() *Reader { return &Reader{block: c.cipher(), size: c.Size} }

// Seek implements [io.Seeker]. Offsets beyond the end are allowed; reading there returns io.EOF.
func (r *Reader) Seek(off int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		off += r.off
	case io.SeekEnd:
		off += r.size
	}
	if off < 0 {
		return 0, errors.New("workload: seek: negative offset")
	}
	r.off, r.ctr = off, nil
	return off, nil
}

// Read implements [io.Reader].
func (r *Reader) Read(p []byte) (int, error) {
	if r.off >= r.size {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), r.size-r.off)]
	clear(p)
	r.xor(p)
	return len(p), nil
}

// checkChunk is the size of the pieces that Check compares; they fit into the first-level cache.
const checkChunk = 8 << 10

var zeros [checkChunk]byte

// Check reports whether p is the next len(p) bytes of the object, and moves past them; bytes beyond
// the end of the object are wrong. It overwrites p, which saves a second buffer.
func (r *Reader) Check(p []byte) bool {
	if r.off+int64(len(p)) > r.size {
		return false
	}
	for q := range slices.Chunk(p, checkChunk) {
		if r.xor(q); !bytes.Equal(q, zeros[:len(q)]) {
			return false
		}
	}
	return true
}

// Close implements [io.Closer]; it does nothing.
func (*Reader) Close() error { return nil }

// xor combines p with the keystream at the reader's position and advances it.
func (r *Reader) xor(p []byte) {
	if r.ctr == nil {
		var iv [aes.BlockSize]byte
		binary.BigEndian.PutUint64(iv[8:], uint64(r.off)/aes.BlockSize)
		r.ctr = cipher.NewCTR(r.block, iv[:])
		if skip := r.off % aes.BlockSize; skip > 0 {
			r.ctr.XORKeyStream(iv[:skip], iv[:skip])
		}
	}
	r.ctr.XORKeyStream(p, p)
	r.off += int64(len(p))
}

// Mix returns a hash of a seed and a counter: the k-th number of a random sequence, computed
// without its predecessors. (It is the output function of SplitMix64, Steele et al., OOPSLA 2014,
// applied twice so that nearby seeds give unrelated sequences.)
func Mix(seed, k uint64) uint64 {
	return mix64(mix64(seed+0x9e3779b97f4a7c15) + k*0x9e3779b97f4a7c15)
}

// Uniform returns the k-th of a sequence of random numbers between 0 and 1, both excluded.
func Uniform(seed, k uint64) float64 {
	return (float64(Mix(seed, k)>>11) + 0.5) / (1 << 53) // 53 bits and a half
}

func mix64(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
