package chain

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
	"go.sia.tech/core/consensus"
	"go.sia.tech/core/types"
	"go.sia.tech/coreutils"
	"go.sia.tech/coreutils/chain"

	"github.com/plimsoll-project/plimsoll/system/chaincache"
)

// StoreFile is the name of a node's chain database in its directory.
const StoreFile = chaincache.Database

// lockWait is how long to wait for another process to release a database.
const lockWait = time.Second

// Store is the chain database of a node, with its manager.
type Store struct {
	path    string
	bolt    *bbolt.DB
	db      *coreutils.BoltChainDB
	store   *chain.DBStore
	manager *chain.Manager
	commits atomic.Int64
}

// OpenStore opens the store in dir, or creates it with the genesis block if there is none. With
// noSync, commits do not wait for the disk, and a power failure may destroy the store. Errors name
// the file, which is not changed. Damage that opening does not detect ends the process when it is
// read, as in every node of the library.
func OpenStore(dir string, n *consensus.Network, genesis types.Block, noSync bool) (_ *Store, err error) {
	s := &Store{path: filepath.Join(dir, StoreFile)}
	if s.bolt, err = bbolt.Open(s.path, 0o600, &bbolt.Options{Timeout: lockWait, NoSync: noSync}); err != nil {
		return nil, fmt.Errorf("sia-chain: open %s: %w", s.path, err)
	}
	s.db = coreutils.NewBoltChainDB(s.bolt)
	if s.store, s.manager, err = manage(counted{s.db, &s.commits}, n, genesis); err != nil {
		s.db.Scratchpad().Cancel() // a pending transaction, for which Close would wait
		return nil, errors.Join(fmt.Errorf("sia-chain: %s: %w", s.path, err), s.bolt.Close())
	}
	return s, nil
}

// Manager returns the manager of the store's chain.
func (s *Store) Manager() *chain.Manager { return s.manager }

// Commits returns how many transactions the store has committed since it was opened. Unless NoSync,
// each waits for the disk twice: for its pages, and for the page that makes them valid.
func (s *Store) Commits() int64 { return s.commits.Load() }

// Close commits what is pending and closes the file. The manager must no longer be in use: Close
// waits for snapshots that are not released.
func (s *Store) Close() error {
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("sia-chain: close %s: %w", s.path, err)
	}
	return nil
}

// File returns the database of a node that has these blocks after genesis.
func File(n *consensus.Network, genesis types.Block, blocks []types.Block) ([]byte, error) {
	dir, err := os.MkdirTemp("", "plimsoll-chain-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	s, err := OpenStore(dir, n, genesis, true)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(s.manager.AddBlocks(blocks), s.Close()); err != nil {
		return nil, err
	}
	return os.ReadFile(s.path)
}

// manage returns the store and the manager of a database whose chain must begin with genesis.
func manage(db chain.DB, n *consensus.Network, genesis types.Block) (*chain.DBStore, *chain.Manager, error) {
	store, err := chain.NewDBStore(db, n, genesis, nil)
	if err != nil {
		return nil, nil, err
	}
	m := chain.NewManager(store)
	if first, _ := m.BestIndex(0); first.ID != genesis.ID() {
		err = fmt.Errorf("it is of another chain: its first block is %v instead of %v", first.ID, genesis.ID())
	}
	return store, m, err
}

// counted is a database that counts its committed transactions.
type counted struct {
	*coreutils.BoltChainDB
	commits *atomic.Int64
}

// Scratchpad implements chain.DB.
func (c counted) Scratchpad() chain.DBScratchpad {
	return countedPad{c.BoltChainDB.Scratchpad(), c.commits}
}

type countedPad struct {
	chain.DBScratchpad
	commits *atomic.Int64
}

// Flush implements chain.DBScratchpad. It is only called if there is something to commit.
func (c countedPad) Flush() error {
	err := c.DBScratchpad.Flush()
	if err == nil {
		c.commits.Add(1)
	}
	return err
}

// OpenReadOnly opens the chain for a peer that serves it. Any number of processes may do so at the
// same time; they share the file and its pages in memory. Adding blocks that the chain already has
// is not an error. Adding other blocks panics, as the library does on every failure of a store.
func (c *Chain) OpenReadOnly() (_ *chain.Manager, shut func() error, err error) {
	db, err := bbolt.Open(c.store(), 0o600, &bbolt.Options{ReadOnly: true, Timeout: lockWait})
	if err != nil {
		return nil, nil, fmt.Errorf("sia-chain: open %s: %w", c.store(), err)
	}
	r := readOnly{BoltChainDB: coreutils.NewBoltChainDB(db)}
	snapshot, release := r.Snapshot()
	r.pad = readPad{snapshot}
	shut = func() error {
		release()
		return db.Close()
	}
	_, m, err := manage(r, c.Spec.Network(), c.Spec.Genesis())
	if err == nil && m.Tip() != c.Tip {
		err = fmt.Errorf("its last block is %v instead of %v", m.Tip(), c.Tip)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("sia-chain: %s: %w", c.store(), err), shut())
	}
	return m, shut, nil
}

// readOnly is a chain.DB on a file that is opened for reading. Its scratchpad is also a snapshot,
// which exists until the file is closed.
type readOnly struct {
	*coreutils.BoltChainDB
	pad readPad
}

// Scratchpad implements chain.DB.
func (r readOnly) Scratchpad() chain.DBScratchpad { return r.pad }

// readPad is a scratchpad that writes nothing.
type readPad struct{ chain.DBSnapshot }

// CreateBucket implements chain.DBScratchpad.
func (readPad) CreateBucket([]byte) (chain.DBBucket, error) { return nil, bbolterrors.ErrTxNotWritable }

// Flush implements chain.DBScratchpad. There is nothing to commit.
func (readPad) Flush() error { return nil }

// Cancel implements chain.DBScratchpad.
func (readPad) Cancel() {}
