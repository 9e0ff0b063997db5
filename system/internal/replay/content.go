package replay

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/http"
)

// Made is the content of the Kubo recordings: SHA-256(label ‖
// counter), the counter in 8 bytes, big-endian and from 0, cut to size.
func Made(label string, size int64) []byte {
	out := make([]byte, 0, size+sha256.Size)
	in := make([]byte, len(label)+8)
	copy(in, label)
	for n := uint64(0); int64(len(out)) < size; n++ {
		binary.BigEndian.PutUint64(in[len(label):], n)
		sum := sha256.Sum256(in)
		out = append(out, sum[:]...)
	}
	return out[:size]
}

// Sum is the SHA-256 of b as recordings write it.
func Sum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// contents are the bytes of bodies that were recorded as hashes, by these.
type contents map[string][]byte

// bytes of b. In an answer with h, a whole content counts, the front of
// one (where the body stopped) and the part that Content-Range names.
func (c contents) bytes(b Body, h http.Header) ([]byte, error) {
	if b.SHA256 == "" {
		return []byte(b.Text), nil
	}
	if whole, ok := c[b.SHA256]; ok {
		if int64(len(whole)) != b.Bytes {
			return nil, fmt.Errorf("replaces %d recorded bytes and has %d", b.Bytes, len(whole))
		}
		return whole, nil
	}
	var first int64
	_, _ = fmt.Sscanf(h.Get("Content-Range"), "bytes %d-", &first)
	for _, whole := range c {
		for _, from := range []int64{first, 0} {
			if to := from + b.Bytes; to <= int64(len(whole)) && Sum(whole[from:to]) == b.SHA256 {
				return whole[from:to], nil
			}
		}
	}
	return nil, fmt.Errorf("a body of %d bytes with SHA-256 %s was not kept and no content that the test gave has it",
		b.Bytes, b.SHA256)
}
