package kubo

import (
	"fmt"
	"io"
	"slices"

	"github.com/ipfs/boxo/ipld/merkledag"
	"github.com/ipfs/boxo/ipld/unixfs"
	"github.com/ipfs/go-cid"
	"github.com/ipld/go-car/v2"
)

// fileOfCAR writes the file root, of which r is the CARv1 in depth-first order
// with duplicates. Each block is checked against its CID, and each CID against
// the links that came before, so a CAR that was cut is never a whole file.
func fileOfCAR(r io.Reader, root cid.Cid, w io.Writer) error {
	blocks, err := car.NewBlockReader(r)
	if err != nil {
		return fmt.Errorf("header: %w", early(err))
	}
	want := []cid.Cid{root} // a stack
	for len(want) > 0 {
		next := want[len(want)-1]
		want = want[:len(want)-1]
		block, err := blocks.Next()
		if err != nil {
			return fmt.Errorf("at block %s: %w", next, early(err))
		}
		if !block.Cid().Equals(next) {
			return fmt.Errorf("at block %s: block %s comes in its place", next, block.Cid())
		}
		data := block.RawData()
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
	if _, err := blocks.Next(); err == nil {
		return fmt.Errorf("more than the blocks of %s", root)
	} else if err != io.EOF {
		return err
	}
	return nil
}

// early is the end of a CAR where more belongs.
func early(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
