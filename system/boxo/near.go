package boxo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ipfs/boxo/blockstore"
	blocks "github.com/ipfs/go-block-format"
	"github.com/ipfs/go-cid"
	ipld "github.com/ipfs/go-ipld-format"
)

// near is the blocks that a node fetched from others: one file each, named by
// the hash, so that they can be forgotten one by one.
type near struct{ dir string }

var _ blockstore.Blockstore = near{}

func (n near) path(c cid.Cid) string { return filepath.Join(n.dir, c.Hash().HexString()) }

// DeleteBlock implements blockstore.Blockstore.
func (n near) DeleteBlock(_ context.Context, c cid.Cid) error {
	if err := os.Remove(n.path(c)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Has implements blockstore.Blockstore.
func (n near) Has(ctx context.Context, c cid.Cid) (bool, error) {
	_, err := n.GetSize(ctx, c)
	if ipld.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// Get implements blockstore.Blockstore.
func (n near) Get(_ context.Context, c cid.Cid) (blocks.Block, error) {
	b, err := os.ReadFile(n.path(c))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ipld.ErrNotFound{Cid: c}
	}
	if err != nil {
		return nil, err
	}
	return blocks.NewBlockWithCid(b, c)
}

// GetSize implements blockstore.Blockstore.
func (n near) GetSize(_ context.Context, c cid.Cid) (int, error) {
	info, err := os.Stat(n.path(c))
	if errors.Is(err, fs.ErrNotExist) {
		return -1, ipld.ErrNotFound{Cid: c}
	}
	if err != nil {
		return -1, err
	}
	return int(info.Size()), nil
}

// Put implements blockstore.Blockstore; the block appears whole or not at all.
func (n near) Put(_ context.Context, b blocks.Block) error {
	f, err := os.CreateTemp(n.dir, ".put-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails when renamed, as it should
	_, err = f.Write(b.RawData())
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), n.path(b.Cid()))
}

// PutMany implements blockstore.Blockstore.
func (n near) PutMany(ctx context.Context, all []blocks.Block) error {
	for _, b := range all {
		if err := n.Put(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// AllKeysChan implements blockstore.Blockstore; nobody here asks for it.
func (n near) AllKeysChan(context.Context) (<-chan cid.Cid, error) {
	return nil, errors.New("the blocks that are near are not listed")
}

// shelves reads from what the node imported itself and then from what is near,
// and writes to the latter.
type shelves struct {
	near
	own blockstore.Blockstore
}

// Has implements blockstore.Blockstore.
func (s shelves) Has(ctx context.Context, c cid.Cid) (bool, error) {
	if has, err := s.own.Has(ctx, c); has || err != nil {
		return has, err
	}
	return s.near.Has(ctx, c)
}

// Get implements blockstore.Blockstore.
func (s shelves) Get(ctx context.Context, c cid.Cid) (blocks.Block, error) {
	if b, err := s.own.Get(ctx, c); !ipld.IsNotFound(err) {
		return b, err
	}
	return s.near.Get(ctx, c)
}

// GetSize implements blockstore.Blockstore.
func (s shelves) GetSize(ctx context.Context, c cid.Cid) (int, error) {
	if n, err := s.own.GetSize(ctx, c); !ipld.IsNotFound(err) {
		return n, err
	}
	return s.near.GetSize(ctx, c)
}

// errKept: a block cannot be forgotten.
var errKept = errors.New("a block of it was imported here")

// forget removes the blocks of the DAG below root, as far as they are near, and
// checks that none of them is left on any shelf.
func (s shelves) forget(ctx context.Context, root cid.Cid) error {
	all, err := below(ctx, s, root)
	if err != nil {
		return err
	}
	// From the leaves up, so that what is left when this is broken off is still found.
	for i := len(all) - 1; i >= 0; i-- {
		if err := s.DeleteBlock(ctx, all[i]); err != nil {
			return err
		}
	}
	for _, c := range all {
		has, err := s.Has(ctx, c)
		if err != nil {
			return err
		}
		if has {
			return fmt.Errorf("%w: %s", errKept, c)
		}
	}
	return nil
}
