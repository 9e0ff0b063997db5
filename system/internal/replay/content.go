package replay

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/http"
)

// Made returns the content of the Kubo recordings: the concatenation of SHA-256(label ‖ counter),
// cut to size. The counter has 8 bytes, is big-endian and starts at 0.
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

// Sum returns the SHA-256 of b in the form of recordings.
func Sum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// contents holds the bytes of bodies that were recorded as hashes, by hash.
type contents map[string][]byte

// bytes returns the bytes of b. For an answer with header h, these can be a whole content, the
// beginning of one (where the body stopped), or the part that Content-Range names.
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
