package chain

import (
	"fmt"
	"path/filepath"

	"go.sia.tech/core/types"

	"github.com/plimsoll-project/plimsoll/system/chaincache"
)

// Chain is one on disk.
type Chain struct {
	Manifest
	chaincache.Got
}

// Manifest describes a chain beside its store.
type Manifest struct {
	Spec Spec             `json:"spec"`
	Tip  types.ChainIndex `json:"tip"`
	// of its blocks as SendV2Blocks sends them, genesis and framing aside
	Bytes        int64 `json:"bytes"`
	Transactions int64 `json:"transactions"` // after genesis
}

// Open opens the chain in dir, which [Get] made: for the process of a peer,
// which makes none.
func Open(dir string) (c *Chain, err error) {
	c = &Chain{Got: chaincache.Got{Dir: dir}}
	if c.Size, err = chaincache.Read(dir, &c.Manifest); err != nil {
		return nil, fmt.Errorf("sia-chain: %w", err)
	}
	return c, nil
}

// store is the path of the chain's database.
func (c *Chain) store() string { return filepath.Join(c.Dir, StoreFile) }

// StoreLimit is the most that the store of a node which syncs the chain takes on
// its disk, in bytes. It commits more often than the store that the chain was made
// in, and so has more pages that are half full or free: up to a quarter more was
// seen; and it grows in steps of 16 MiB.
func (c *Chain) StoreLimit() int64 { return c.Size*3/2 + 64<<20 }
