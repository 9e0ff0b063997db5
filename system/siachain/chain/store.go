package chain

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
	"go.sia.tech/core/consensus"
	"go.sia.tech/core/types"
	"go.sia.tech/coreutils"
	"go.sia.tech/coreutils/chain"

	"github.com/plimsoll-project/plimsoll/system/chaincache"
)

// StoreFile is the name of a node's chain database in its directory.
const StoreFile = chaincache.Database

// storeWait is how long another process has to let go of the store.
const storeWait = time.Second

// Reasons why a store is not opened.
var (
	ErrDamaged      = errors.New("the store is damaged")
	ErrLocked       = errors.New("the store is in use by another process")
	ErrOtherGenesis = errors.New("the store is of another chain")
)

// StoreOptions are those of a node's store. Its zero value is what a node of the
// library has.
type StoreOptions struct {
	NoSync      bool // commits do not wait for the disk: a power failure may destroy the store
	MapFreelist bool // free pages in a hash map instead of a sorted list
}

// Store is the chain database of a node, and the manager on it.
type Store struct {
	path    string
	file    file
	chainDB *coreutils.BoltChainDB
	store   *chain.DBStore
	manager *chain.Manager
	commits atomic.Int64
}

// OpenStore opens the store in dir, or creates it with the genesis block where
// there is none. The errors name the file and tell damage ([ErrDamaged]), use by
// another process ([ErrLocked]) and another chain ([ErrOtherGenesis]) apart; the
// file stays as it is.
//
// Only what opening reads is seen: the database's own pages of
// description and free space, the tip and its state. Damage elsewhere ends the
// process when it comes to be read, as it does every node of the library.
func OpenStore(dir string, n *consensus.Network, genesis types.Block, o StoreOptions) (*Store, error) {
	s := &Store{path: filepath.Join(dir, StoreFile)}
	if err := guard(s.path, func() error { return s.open(n, genesis, o) }); err != nil {
		guard(s.path, func() error {
			if s.chainDB != nil {
				// looking for the tip has begun a transaction, for which closing waits
				s.chainDB.Scratchpad().Cancel()
			}
			s.file.abandon()
			return nil
		})
		return nil, err
	}
	return s, nil
}

func (s *Store) open(n *consensus.Network, genesis types.Block, o StoreOptions) error {
	b := &bbolt.Options{
		Timeout:      storeWait,
		NoSync:       o.NoSync,
		FreelistType: bbolt.FreelistArrayType,
	}
	if o.MapFreelist {
		b.FreelistType = bbolt.FreelistMapType
	}
	if err := s.file.open(s.path, b); err != nil {
		return err
	}
	if err := s.file.whole(); err != nil {
		return err
	}
	s.chainDB = coreutils.NewBoltChainDB(s.file.db)
	var err error
	s.store, err = chain.NewDBStore(counted{s.chainDB, &s.commits}, n, genesis, nil)
	if err != nil {
		if other(s.file.db, n) {
			return fmt.Errorf("%w: %w", ErrOtherGenesis, err)
		}
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	s.manager = chain.NewManager(s.store)
	return fits(s.manager, genesis)
}

// Manager is the chain of the store.
func (s *Store) Manager() *chain.Manager { return s.manager }

// Commits is how many transactions the store has committed since it was opened.
// Each waits for the disk twice, unless NoSync: for its pages, and for the page
// that makes them valid.
func (s *Store) Commits() int64 { return s.commits.Load() }

// Close commits what is pending and closes the file. Nothing may use the manager
// any more: snapshots that are not released keep it waiting.
func (s *Store) Close() error {
	if err := s.chainDB.Close(); err != nil {
		return fmt.Errorf("sia-chain: close %s: %w", s.path, err)
	}
	return nil
}

// other reports whether the database says that it is of another network.
func other(db *bbolt.DB, n *consensus.Network) bool {
	different := false
	db.View(func(tx *bbolt.Tx) error {
		if b := tx.Bucket([]byte("Network")); b != nil {
			name := b.Get([]byte("Network"))
			different = len(name) > 0 && string(name) != n.Name
		}
		return nil
	})
	return different
}

// fits checks that a chain begins at genesis and has its tip.
func fits(m *chain.Manager, genesis types.Block) error {
	first, ok := m.BestIndex(0)
	switch {
	case !ok:
		return fmt.Errorf("%w: it has no first block", ErrDamaged)
	case first.ID != genesis.ID():
		return fmt.Errorf("%w: its genesis is %v instead of %v", ErrOtherGenesis, first.ID, genesis.ID())
	}
	tip := m.TipState().Index
	best, ok := m.BestIndex(tip.Height)
	if _, has := m.Block(tip.ID); !ok || best != tip || !has {
		return fmt.Errorf("%w: block %v at its tip is missing", ErrDamaged, tip)
	}
	return nil
}

// counted is a database that counts the transactions which it commits.
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

// Flush implements chain.DBScratchpad. It is called only when something is to be
// committed.
func (c countedPad) Flush() error {
	err := c.DBScratchpad.Flush()
	if err == nil {
		c.commits.Add(1)
	}
	return err
}
