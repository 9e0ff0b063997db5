package chain

import (
	"errors"
	"fmt"
	"iter"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
	"go.sia.tech/coreutils/chain"
)

// OpenReadOnly opens the chain for a peer that serves it. Any number of processes
// may do so at the same time; they share one file and its pages in memory. Adding
// blocks that the chain has is no error; adding another panics, as every failure of
// a store does in the library.
func (c *Chain) OpenReadOnly() (_ *chain.Manager, shut func() error, err error) {
	db, err := bbolt.Open(c.store(), 0o600, &bbolt.Options{ReadOnly: true, Timeout: lockWait})
	if err != nil {
		return nil, nil, fmt.Errorf("sia-chain: open %s: %w", c.store(), err)
	}
	pad, err := db.Begin(false)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("sia-chain: %s: %w", c.store(), err), db.Close())
	}
	shut = func() error { return errors.Join(pad.Rollback(), db.Close()) }
	genesis := c.Spec.Genesis()
	store, err := chain.NewDBStore(shared{db, reading{pad}}, c.Spec.Network(), genesis, nil)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("sia-chain: %s: %w", c.store(), err), shut())
	}
	m := chain.NewManager(store)
	err = begins(m, genesis)
	if tip := m.Tip(); err == nil && tip != c.Tip {
		err = fmt.Errorf("its last block is %v instead of %v", tip, c.Tip)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("sia-chain: %s: %w", c.store(), err), shut())
	}
	return m, shut, nil
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
