package chain

import (
	"errors"
	"fmt"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
	"go.sia.tech/coreutils"
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
	r := readOnly{BoltChainDB: coreutils.NewBoltChainDB(db)}
	snapshot, release := r.Snapshot()
	r.pad = readPad{snapshot}
	shut = func() error {
		release()
		return db.Close()
	}
	genesis := c.Spec.Genesis()
	var m *chain.Manager
	store, err := chain.NewDBStore(r, c.Spec.Network(), genesis, nil)
	if err == nil {
		m = chain.NewManager(store)
		err = begins(m, genesis)
	}
	if err == nil && m.Tip() != c.Tip {
		err = fmt.Errorf("its last block is %v instead of %v", m.Tip(), c.Tip)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("sia-chain: %s: %w", c.store(), err), shut())
	}
	return m, shut, nil
}

// readOnly is a chain.DB on a file that is opened for reading: its scratchpad is a
// snapshot, too, which lasts as long as the file is open.
type readOnly struct {
	*coreutils.BoltChainDB
	pad readPad
}

// Scratchpad implements chain.DB.
func (r readOnly) Scratchpad() chain.DBScratchpad { return r.pad }

// readPad writes nothing.
type readPad struct{ chain.DBSnapshot }

// CreateBucket implements chain.DBScratchpad.
func (readPad) CreateBucket([]byte) (chain.DBBucket, error) { return nil, bbolterrors.ErrTxNotWritable }

// Flush implements chain.DBScratchpad: there is nothing to commit.
func (readPad) Flush() error { return nil }

// Cancel implements chain.DBScratchpad.
func (readPad) Cancel() {}
