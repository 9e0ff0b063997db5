package chain

import (
	"errors"
	"fmt"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
	"go.sia.tech/coreutils"
	"go.sia.tech/coreutils/chain"
)

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
