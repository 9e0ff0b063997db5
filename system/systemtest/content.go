package systemtest

import (
	"crypto/sha256"
	"encoding/binary"
	"io"
	"math/rand/v2"
)

// Content is size bytes that differ by seed and repeat no block.
func Content(seed string, size int64) io.Reader {
	return io.LimitReader(rand.NewChaCha8(sha256.Sum256([]byte(seed))), size)
}

// Bytes is Content in memory.
func Bytes(seed string, size int64) []byte {
	b := make([]byte, size)
	if _, err := io.ReadFull(Content(seed, size), b); err != nil {
		panic(err) // a generator has no end
	}
	return b
}

// digest is a writer that keeps a count and a hash of what it saw.
type digest struct {
	n   int64
	sum [8]byte
}

func digestOf(r io.Reader) (digest, error) {
	h := sha256.New()
	n, err := io.Copy(h, r)
	d := digest{n: n}
	binary.BigEndian.PutUint64(d.sum[:], binary.BigEndian.Uint64(h.Sum(nil)))
	return d, err
}
