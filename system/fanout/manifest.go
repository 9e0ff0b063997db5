package fanout

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/plimsoll-project/plimsoll/system"
)

// block is the number of bytes verified at a time: the same as a piece in the swarms that this is
// compared with.
const block = 256 << 10

// manifest is the information by which a leecher verifies a content. It is part of the task, like a
// .torrent file.
type manifest struct {
	Size int64
	Sums []byte // concatenated SHA-256 of all blocks
}

// ref returns the name of the content: SHA-256 of its size and its blocks' hashes.
func (m manifest) ref() system.Ref {
	h := sha256.New()
	var size [8]byte
	binary.BigEndian.PutUint64(size[:], uint64(m.Size))
	h.Write(size[:])
	h.Write(m.Sums)
	return system.Ref(hex.EncodeToString(h.Sum(nil)))
}

// checkRef returns an error if ref cannot be a result of manifest.ref.
func checkRef(ref system.Ref) error {
	b, err := hex.DecodeString(string(ref))
	if err != nil || len(b) != sha256.Size || hex.EncodeToString(b) != string(ref) {
		return fmt.Errorf("fanout: %q is not 64 hex digits in lower case: %w", ref, system.ErrBadRef)
	}
	return nil
}

func (m manifest) blocks() int { return len(m.Sums) / sha256.Size }

// at returns the offset and size of block i.
func (m manifest) at(i int) (off, n int64) {
	off = int64(i) * block
	return off, min(block, m.Size-off)
}

// fits reports whether b is block i.
func (m manifest) fits(i int, b []byte) bool {
	sum := sha256.Sum256(b)
	return string(sum[:]) == string(m.Sums[i*sha256.Size:(i+1)*sha256.Size])
}

// add appends the next block.
func (m *manifest) add(b []byte) {
	sum := sha256.Sum256(b)
	m.Sums = append(m.Sums, sum[:]...)
	m.Size += int64(len(b))
}
