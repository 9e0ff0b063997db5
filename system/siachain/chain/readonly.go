package chain

import (
	"errors"
	"fmt"
	"iter"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
	"go.sia.tech/coreutils/chain"
)

// lockWait is how long opening a chain to be served waits for a process that has it
// open to write. Once the chain is made there is none.
const lockWait = 5 * time.Second

// OpenReadOnly opens the chain for a peer that serves it. Any number of processes
// may do so at the same time; they share one file and its pages in memory. Adding
// blocks that the chain has is no error; adding another panics, as every failure of
// a store does in the library.
func (c *Chain) OpenReadOnly() (*chain.Manager, func() error, error) {
	var f file
	var db shared
	var m *chain.Manager
	err := guard(c.store(), func() (err error) {
		if err := f.open(c.store(), &bbolt.Options{ReadOnly: true, Timeout: lockWait}); err != nil {
			return err
		}
		if err := f.whole(); err != nil {
			return err
		}
		db.db = f.db
		if db.pad.Tx, err = f.db.Begin(false); err != nil {
			return err
		}
		genesis := c.Spec.Genesis()
		store, err := chain.NewDBStore(db, c.Spec.Network(), genesis, nil)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		m = chain.NewManager(store)
		if err := fits(m, genesis); err != nil {
			return err
		}
		if tip := m.Tip(); tip != c.Tip {
			return fmt.Errorf("%w: its tip is %v instead of %v", ErrDamaged, tip, c.Tip)
		}
		return nil
	})
	if err != nil {
		db.release()
		f.abandon()
		return nil, nil, err
	}
	return m, func() error { return errors.Join(db.release(), f.db.Close()) }, nil
}

// shared is a chain.DB on a file that is opened for reading: its scratchpad is a
// transaction, too, and lasts as long as the file is open.
type shared struct {
	db  *bbolt.DB
	pad reading
}

// Snapshot implements chain.DB.
func (s shared) Snapshot() (chain.DBSnapshot, func()) {
	tx, err := s.db.Begin(false)
	if err != nil {
		panic(err)
	}
	return reading{tx}, func() { tx.Rollback() }
}

// Scratchpad implements chain.DB.
func (s shared) Scratchpad() chain.DBScratchpad { return s.pad }

// release ends the scratchpad, for which closing the file waits.
func (s shared) release() error {
	if s.pad.Tx == nil {
		return nil
	}
	return s.pad.Rollback()
}

// reading is a transaction that writes nothing.
type reading struct{ *bbolt.Tx }

// Bucket implements chain.DBScratchpad.
func (r reading) Bucket(name []byte) chain.DBBucket {
	if b := r.Tx.Bucket(name); b != nil {
		return bucket{b}
	}
	return nil
}

// CreateBucket implements chain.DBScratchpad.
func (reading) CreateBucket([]byte) (chain.DBBucket, error) { return nil, bbolterrors.ErrTxNotWritable }

// Flush implements chain.DBScratchpad: there is nothing to commit.
func (reading) Flush() error { return nil }

// Cancel implements chain.DBScratchpad.
func (reading) Cancel() {}

// bucket is one of them; Put and Delete fail.
type bucket struct{ *bbolt.Bucket }

// Iter implements chain.DBBucket.
func (b bucket) Iter() iter.Seq2[[]byte, []byte] {
	return func(yield func(k, v []byte) bool) {
		c := b.Cursor()
		for k, v := c.First(); k != nil && yield(k, v); k, v = c.Next() {
		}
	}
}
