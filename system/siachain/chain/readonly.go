package chain

import (
	"errors"
	"fmt"
	"iter"
	"time"

	"go.etcd.io/bbolt"
	"go.sia.tech/coreutils/chain"
)

// lockWait is how long opening a chain to be served waits for a process that has it
// open to write. Once the chain is made there is none.
const lockWait = 5 * time.Second

var errReadOnly = errors.New("the chain is served from a file that several processes share: nothing can be added to it")

// OpenReadOnly opens the chain for a peer that serves it. Any number of processes
// may do so at the same time; they share one file and its pages in memory. Adding
// blocks that the chain has is no error; adding another panics, as every failure of
// a store does in the library.
func (c *Chain) OpenReadOnly(o ...chain.ManagerOption) (*chain.Manager, func() error, error) {
	var f file
	var m *chain.Manager
	err := guard(c.store(), func() error {
		if err := f.open(c.store(), &bbolt.Options{ReadOnly: true, Timeout: lockWait}); err != nil {
			return err
		}
		if err := f.whole(false); err != nil {
			return err
		}
		genesis := c.Spec.Genesis()
		store, err := chain.NewDBStore(sharedDB{f.db}, c.Spec.Network(), genesis, nil)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		m = chain.NewManager(store, o...)
		if err := fits(m, genesis); err != nil {
			return err
		}
		if tip := m.Tip(); tip != c.Tip {
			return fmt.Errorf("%w: its tip is %v instead of %v", ErrDamaged, tip, c.Tip)
		}
		return nil
	})
	if err != nil {
		f.abandon()
		return nil, nil, err
	}
	return m, f.db.Close, nil
}

// sharedDB is a chain.DB on a file that is opened for reading. It holds no
// transaction longer than a read or a snapshot takes.
type sharedDB struct{ db *bbolt.DB }

// Snapshot implements chain.DB.
func (s sharedDB) Snapshot() (chain.DBSnapshot, func()) {
	tx, err := s.db.Begin(false)
	if err != nil {
		panic(err)
	}
	return sharedSnapshot{tx}, func() { tx.Rollback() }
}

// Scratchpad implements chain.DB.
func (s sharedDB) Scratchpad() chain.DBScratchpad { return sharedPad(s) }

type sharedSnapshot struct{ tx *bbolt.Tx }

// Bucket implements chain.DBSnapshot.
func (s sharedSnapshot) Bucket(name []byte) chain.DBBucket {
	if b := s.tx.Bucket(name); b != nil {
		return sharedBucket{b}
	}
	return nil
}

// sharedPad implements chain.DBScratchpad for what is only read. Values are
// copied, so that no transaction has to stay open.
type sharedPad struct{ db *bbolt.DB }

// Bucket implements chain.DBScratchpad.
func (p sharedPad) Bucket(name []byte) chain.DBBucket {
	found := false
	p.db.View(func(tx *bbolt.Tx) error { found = tx.Bucket(name) != nil; return nil })
	if !found {
		return nil
	}
	return padBucket{p.db, name}
}

// CreateBucket implements chain.DBScratchpad.
func (sharedPad) CreateBucket([]byte) (chain.DBBucket, error) { return nil, errReadOnly }

// Flush implements chain.DBScratchpad: there is nothing to commit.
func (sharedPad) Flush() error { return nil }

// Cancel implements chain.DBScratchpad.
func (sharedPad) Cancel() {}

// sharedBucket is a bucket of a snapshot.
type sharedBucket struct{ b *bbolt.Bucket }

func (b sharedBucket) Get(key []byte) []byte { return b.b.Get(key) }
func (sharedBucket) Put(_, _ []byte) error   { return errReadOnly }
func (sharedBucket) Delete(_ []byte) error   { return errReadOnly }
func (b sharedBucket) Iter() iter.Seq2[[]byte, []byte] {
	return func(yield func(k, v []byte) bool) {
		c := b.b.Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			if !yield(k, v) {
				return
			}
		}
	}
}

// padBucket is a bucket of the scratchpad.
type padBucket struct {
	db   *bbolt.DB
	name []byte
}

func (b padBucket) Get(key []byte) (value []byte) {
	b.db.View(func(tx *bbolt.Tx) error {
		if v := tx.Bucket(b.name).Get(key); v != nil {
			value = append([]byte{}, v...)
		}
		return nil
	})
	return value
}
func (padBucket) Put(_, _ []byte) error { return errReadOnly }
func (padBucket) Delete(_ []byte) error { return errReadOnly }
func (b padBucket) Iter() iter.Seq2[[]byte, []byte] {
	return func(yield func(k, v []byte) bool) {
		b.db.View(func(tx *bbolt.Tx) error {
			for k, v := range (sharedBucket{tx.Bucket(b.name)}).Iter() {
				if !yield(k, v) {
					break
				}
			}
			return nil
		})
	}
}
