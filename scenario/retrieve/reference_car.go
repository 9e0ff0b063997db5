package retrieve

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/ipfs/go-cid"
	"github.com/ipld/go-car/v2"
)

const (
	notCAR       = "it is not a CAR"
	maxCARHeader = 1 << 20
	maxSection   = 8 << 20 // of a CAR: length, CID, block
	minDigest    = 16      // bytes; shorter ones agree by chance
)

// carBlocks reads a CAR of version 1 or 2, checks each block against its CID, and gives the
// CIDs to each. why says why r is not a CAR, or only so far; err is that of wrong bytes.
func carBlocks(r io.Reader, each func(cid.Cid)) (blocks int, why string, err error) {
	c, err := car.NewBlockReader(bufio.NewReaderSize(r, 1<<20), car.MaxAllowedHeaderSize(maxCARHeader), car.WithTrustedCAR(true))
	if err != nil {
		return 0, notCAR, nil
	}
	for ; ; blocks++ {
		b, err := c.Next()
		if errors.Is(err, io.EOF) {
			return blocks, "", nil
		}
		if err != nil {
			return blocks, fmt.Sprintf("after %d blocks it is not a CAR: %v", blocks, err), nil
		}
		sum, err := b.Cid().Prefix().Sum(b.RawData())
		if err != nil {
			return blocks, fmt.Sprintf("its block %s cannot be checked: %v", b.Cid(), err), nil
		}
		if !sum.Equals(b.Cid()) {
			return blocks, "", wrongBytes("the block that has the CID %s has another hash", b.Cid())
		}
		each(b.Cid())
	}
}

// checkBlocks checks the blocks in the windows of a CAR and narrows the windows to them, so
// that every byte of a range is in a checked block. why says why it cannot be done; the
// windows are then as they were.
func (o *object) checkBlocks(f io.ReaderAt, largest int64) (blocks int, why string, err error) {
	var shapes [][]byte // how the CIDs of this CAR begin, up to the digest
	_, why, err = carBlocks(io.NewSectionReader(f, 0, o.window), func(c cid.Cid) {
		shape := c.Bytes()[:c.ByteLen()-max(c.Prefix().MhLength, 0)]
		known := slices.ContainsFunc(shapes, func(s []byte) bool { return bytes.Equal(s, shape) })
		if c.Prefix().MhLength >= minDigest && !known {
			shapes = append(shapes, shape)
		}
	})
	switch {
	case err != nil || why == notCAR:
		return 0, why, err
	case shapes == nil:
		return 0, "it is a CAR without a block that can be checked in the first window", nil
	}
	windows, length := []int64(nil), o.window
	buf := make([]byte, o.window)
	for _, at := range o.windows {
		if _, err := f.ReadAt(buf, at); err != nil {
			return 0, "", err
		}
		from, to, n, wrong := longestRun(buf, shapes)
		if wrong >= 0 {
			return 0, "", wrongBytes("the block at byte %d of the CAR has another hash than its CID", at+int64(wrong))
		}
		if int64(to-from) < largest {
			return 0, fmt.Sprintf("it is a CAR, but the window at byte %d has no blocks in a row that hold a range", at), nil
		}
		windows, length, blocks = append(windows, at+int64(from)), min(length, int64(to-from)), blocks+n
	}
	o.windows, o.window = windows, length
	return blocks, "", nil
}

// longestRun finds the longest run of sections of a CAR, from somewhere within it, whose
// blocks all agree with their CIDs. wrong is where one does not; -1: none.
//
// Nothing says where a section begins: it is found by the hash of its block. A block may hold
// a CAR itself, whose sections end somewhere in a section of the outer one. So a hash that
// disagrees is an error only where no right section begins before its end.
func longestRun(b []byte, shapes [][]byte) (from, to, blocks, wrong int) {
	start, suspect := nextSection(b, 0, shapes)
	for start >= 0 {
		if suspect >= 0 {
			return 0, 0, 0, suspect
		}
		end := start
		size, right := section(b[end:])
		for ; right; size, right = section(b[end:]) {
			end += size
			blocks++
		}
		if end-start > to-from {
			from, to = start, end
		}
		start, suspect = nextSection(b, end, shapes)
		if size > 0 && (start < 0 || start >= end+size) {
			return 0, 0, 0, end
		}
	}
	return from, to, blocks, -1
}

// nextSection finds the first section from a place on whose block agrees with its CID; -1:
// none. suspect is one that does not agree and ends there; -1: none.
func nextSection(b []byte, from int, shapes [][]byte) (at, suspect int) {
	suspects := map[int]int{} // by their ends
	for p := from + 1; p < len(b); p++ {
		if !slices.ContainsFunc(shapes, func(s []byte) bool { return bytes.HasPrefix(b[p:], s) }) {
			continue
		}
		for at := p - 1; at >= max(from, p-binary.MaxVarintLen32); at-- {
			if _, n := binary.Uvarint(b[at:]); n != p-at {
				continue
			}
			size, right := section(b[at:])
			if !right {
				suspects[at+size] = at
				continue
			}
			if suspect, ok := suspects[at]; ok {
				return at, suspect
			}
			return at, -1
		}
	}
	return -1, -1
}

// section reads what may be a section of a CAR. size is 0 where b begins with none.
func section(b []byte) (size int, right bool) {
	length, n := binary.Uvarint(b)
	if n <= 0 || length > maxSection || length > uint64(len(b)-n) {
		return 0, false
	}
	size = n + int(length)
	m, c, err := cid.CidFromBytes(b[n:size])
	if err != nil || c.Prefix().MhLength < minDigest {
		return 0, false
	}
	sum, err := c.Prefix().Sum(b[n+m : size])
	if err != nil {
		return 0, false
	}
	return size, sum.Equals(c)
}
