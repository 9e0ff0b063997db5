package boxo

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ipfs/boxo/blockservice"
	"github.com/ipfs/boxo/exchange/offline"
	"github.com/ipfs/boxo/ipld/merkledag"
	blocks "github.com/ipfs/go-block-format"
	"github.com/ipfs/go-cid"
	ipld "github.com/ipfs/go-ipld-format"
)

// store holds the blocks of a node: one file each, named by the hash, so that they can be removed
// individually. Blocks are hashed when they are read: a corrupt block is removed and counts as
// missing.
type store struct{ dir string }

func (s store) path(c cid.Cid) string { return filepath.Join(s.dir, c.Hash().HexString()) }

// DeleteBlock implements blockstore.Blockstore.
func (s store) DeleteBlock(_ context.Context, c cid.Cid) error {
	if err := os.Remove(s.path(c)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Has implements blockstore.Blockstore.
func (s store) Has(ctx context.Context, c cid.Cid) (bool, error) {
	_, err := s.GetSize(ctx, c)
	if ipld.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// Get implements blockstore.Blockstore.
func (s store) Get(ctx context.Context, c cid.Cid) (blocks.Block, error) {
	b, err := s.unchecked(c)
	if err != nil {
		return nil, err
	}
	if is, err := c.Prefix().Sum(b.RawData()); err != nil || is.Equals(c) {
		return b, err
	}
	if err := s.DeleteBlock(ctx, c); err != nil {
		return nil, err
	}
	return nil, ipld.ErrNotFound{Cid: c}
}

func (s store) unchecked(c cid.Cid) (blocks.Block, error) {
	b, err := os.ReadFile(s.path(c))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ipld.ErrNotFound{Cid: c}
	}
	if err != nil {
		return nil, err
	}
	return blocks.NewBlockWithCid(b, c)
}

// GetSize implements blockstore.Blockstore.
func (s store) GetSize(_ context.Context, c cid.Cid) (int, error) {
	info, err := os.Stat(s.path(c))
	if errors.Is(err, fs.ErrNotExist) {
		return -1, ipld.ErrNotFound{Cid: c}
	}
	if err != nil {
		return -1, err
	}
	return int(info.Size()), nil
}

// Put implements blockstore.Blockstore; the block appears completely or not at all.
func (s store) Put(_ context.Context, b blocks.Block) error {
	f, err := os.CreateTemp(s.dir, ".put-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails after the rename, as it should
	_, err = f.Write(b.RawData())
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), s.path(b.Cid()))
}

// PutMany implements blockstore.Blockstore.
func (s store) PutMany(ctx context.Context, all []blocks.Block) error {
	for _, b := range all {
		if err := s.Put(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// AllKeysChan implements blockstore.Blockstore; it is never called.
func (s store) AllKeysChan(context.Context) (<-chan cid.Cid, error) {
	return nil, errors.New("the blocks are not listed")
}

// served is the store for peers that fetch from it: they verify the hashes, so that it need not.
type served struct{ store }

// Get implements blockstore.Blockstore.
func (s served) Get(_ context.Context, c cid.Cid) (blocks.Block, error) { return s.unchecked(c) }

// graph returns the nodes whose blocks are in the store.
func (s store) graph() ipld.DAGService {
	return merkledag.NewDAGService(blockservice.New(s, offline.Exchange(s)))
}
