package chain

import (
	"fmt"
	"path/filepath"

	"go.sia.tech/core/types"

	"github.com/plimsoll-project/plimsoll/system/chaincache"
)

// Chain is a chain on disk.
type Chain struct {
	Manifest
	chaincache.Got
}

// Manifest describes a chain next to its store.
type Manifest struct {
	Spec Spec             `json:"spec"`
	Tip  types.ChainIndex `json:"tip"`
	// size of its blocks as SendV2Blocks sends them, without genesis and framing
	Bytes        int64 `json:"bytes"`
	Transactions int64 `json:"transactions"` // without those of genesis
}

// Open opens the chain in dir that [Get] has made. The process of a peer uses it, since it makes no
// chains.
func Open(dir string) (c *Chain, err error) {
	c = &Chain{Got: chaincache.Got{Dir: dir}}
	if c.Size, err = chaincache.Read(dir, &c.Manifest); err != nil {
		return nil, fmt.Errorf("sia-chain: %w", err)
	}
	return c, nil
}

// store returns the path of the chain's database.
func (c *Chain) store() string { return filepath.Join(c.Dir, StoreFile) }

// StoreLimit returns the maximum disk space in bytes that the store of a node takes when it syncs
// the chain. Such a store commits more often than the one in which the chain was made, so it has
// more half-full and free pages: up to 25 % more space was observed. It grows in steps of 16 MiB.
func (c *Chain) StoreLimit() int64 { return c.Size*3/2 + 64<<20 }
