package boxo

import (
	"context"
	"errors"
	"fmt"

	"github.com/ipfs/boxo/blockstore"
	"github.com/ipfs/boxo/ipld/merkledag"
	blocks "github.com/ipfs/go-block-format"
	"github.com/ipfs/go-cid"
	ipld "github.com/ipfs/go-ipld-format"
)

// checked is a store whose blocks are hashed when they are read: one that is not
// what it was is removed, and not there.
type checked struct{ near }

var _ blockstore.Blockstore = checked{}

// Get implements blockstore.Blockstore.
func (s checked) Get(ctx context.Context, c cid.Cid) (blocks.Block, error) {
	b, err := s.near.Get(ctx, c)
	if err != nil {
		return nil, err
	}
	is, err := c.Prefix().Sum(b.RawData())
	if err != nil {
		return nil, err
	}
	if is.Equals(c) {
		return b, nil
	}
	if err := s.DeleteBlock(ctx, c); err != nil {
		return nil, err
	}
	return nil, ipld.ErrNotFound{Cid: c}
}

// adding is a store that knows which blocks it did not have before.
type adding struct {
	checked
	fresh []cid.Cid
}

// Put implements blockstore.Blockstore.
func (s *adding) Put(ctx context.Context, b blocks.Block) error {
	has, err := s.Has(ctx, b.Cid())
	if err != nil {
		return err
	}
	if !has {
		s.fresh = append(s.fresh, b.Cid())
	}
	return s.checked.Put(ctx, b)
}

// PutMany implements blockstore.Blockstore.
func (s *adding) PutMany(ctx context.Context, all []blocks.Block) error {
	for _, b := range all {
		if err := s.Put(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// undo removes the blocks that were added.
func (s *adding) undo() error {
	var errs []error
	for _, c := range s.fresh {
		errs = append(errs, s.DeleteBlock(context.Background(), c))
	}
	return errors.Join(errs...)
}

// below lists the blocks of the graph below root, each after the one that links
// to it, as far as the store can tell.
func below(ctx context.Context, store blockstore.Blockstore, root cid.Cid) ([]cid.Cid, error) {
	var all []cid.Cid
	seen := cid.NewSet()
	for todo := []cid.Cid{root}; len(todo) > 0; {
		c := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !seen.Visit(c) {
			continue
		}
		all = append(all, c)
		if c.Type() == cid.Raw {
			continue // has no links
		}
		b, err := store.Get(ctx, c)
		if ipld.IsNotFound(err) {
			continue // what is below it was fetched after it: there is nothing
		}
		if err != nil {
			return nil, err
		}
		node, err := merkledag.DecodeProtobufBlock(b)
		if err != nil {
			return nil, fmt.Errorf("block %s: %w", c, err)
		}
		for _, l := range node.Links() {
			todo = append(todo, l.Cid)
		}
	}
	return all, nil
}
