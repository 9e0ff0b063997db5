package kubo

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/ipfs/boxo/ipld/merkledag"
	"github.com/ipfs/boxo/ipld/unixfs"
	"github.com/ipfs/go-cid"
)

// maxSection is more than the header of a CAR, or a block with its CID, takes.
const maxSection = 4 << 20

// fileOfCAR writes the file root, of which r is the CARv1 in depth-first order
// with duplicates. Each block is checked against its CID, and each CID against
// the links that came before, so a CAR that was cut is never a whole file. One
// block at a time is in memory, in the same buffer: go-car makes one for each.
func fileOfCAR(r io.Reader, root cid.Cid, w io.Writer) error {
	c := carReader{r: bufio.NewReaderSize(r, 64<<10)}
	if _, err := c.section(); err != nil { // names the roots, which the client knows better
		return fmt.Errorf("header: %w", early(err))
	}
	want := []cid.Cid{root} // a stack
	for len(want) > 0 {
		next := want[len(want)-1]
		want = want[:len(want)-1]
		data, err := c.block(next)
		if err != nil {
			return fmt.Errorf("at block %s: %w", next, early(err))
		}
		if next.Type() == cid.DagProtobuf {
			pb, err := merkledag.DecodeProtobuf(data)
			if err != nil {
				return fmt.Errorf("block %s: %w", next, err)
			}
			file, err := unixfs.FSNodeFromBytes(pb.Data())
			if err != nil {
				return fmt.Errorf("block %s: %w", next, err)
			}
			for _, l := range slices.Backward(pb.Links()) {
				want = append(want, l.Cid)
			}
			data = file.Data()
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
	// The answer must end well, too.
	if _, err := c.section(); err == nil {
		return fmt.Errorf("more than the blocks of %s", root)
	} else if err != io.EOF {
		return err
	}
	return nil
}

// carReader reads the sections of a CARv1: their length as a varint, then a CID
// and its block.
type carReader struct {
	r   *bufio.Reader
	buf []byte
}

// section is valid until the next call; io.EOF means that there is none.
func (c *carReader) section() ([]byte, error) {
	n, err := binary.ReadUvarint(c.r)
	if err != nil {
		return nil, err
	}
	if n > maxSection {
		return nil, fmt.Errorf("a section of %d bytes", n)
	}
	c.buf = slices.Grow(c.buf[:0], int(n))[:n]
	if _, err := io.ReadFull(c.r, c.buf); err != nil {
		return nil, early(err)
	}
	return c.buf, nil
}

// block reads the next block, which must be id.
func (c *carReader) block(id cid.Cid) ([]byte, error) {
	s, err := c.section()
	if err != nil {
		return nil, err
	}
	n, got, err := cid.CidFromBytes(s)
	if err != nil {
		return nil, err
	}
	if !got.Equals(id) {
		return nil, fmt.Errorf("block %s comes in its place", got)
	}
	is, err := id.Prefix().Sum(s[n:])
	if err != nil {
		return nil, err
	}
	if !is.Equals(id) {
		return nil, fmt.Errorf("its bytes are those of %s", is)
	}
	return s[n:], nil
}

// early is the end of a CAR where more belongs.
func early(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
