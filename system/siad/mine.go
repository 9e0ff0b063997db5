package siad

import (
	"context"
	"embed"
	"encoding/binary"
	"fmt"
	"time"

	"go.sia.tech/core/types"
)

// Consensus rules of siad that its API does not report.
const (
	// nonceUnit divides every nonce from the height at which ASICs were admitted
	// (types.ASICHardforkFactor). Below that height it does no harm.
	nonceUnit = 1009
	// spacing is the interval between the blocks' timestamps, in seconds. It is far above siad's
	// target of 12 s, so that the difficulty falls as fast as the rules allow, in the end by 2 %
	// per block. The first timestamp is in 2015, which leaves room for half a million blocks before
	// the present.
	spacing = 600
)

// template returns the block after the tip, without a nonce. The whole subsidy goes to an address
// from which no one can spend.
func (c consensusAnswer) template(to types.Address) types.Block {
	height := c.Height + 1
	coins := max(c.InitialCoinbase-min(uint64(height), c.InitialCoinbase), c.MinimumCoinbase)
	return types.Block{
		ParentID:     c.Tip,
		Timestamp:    time.Unix(c.GenesisTimestamp+height*spacing, 0).UTC(),
		MinerPayouts: []types.SiacoinOutput{{Value: types.Siacoins(uint32(coins)), Address: to}},
	}
}

// solve sets the smallest nonce with which b meets target.
func solve(ctx context.Context, b *types.Block, target types.Hash256) error {
	header := b.Header()
	for header.Nonce = 0; header.ID().CmpWork(types.BlockID(target)) < 0; header.Nonce += nonceUnit {
		if header.Nonce%(nonceUnit<<16) == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	b.Nonce = header.Nonce
	return nil
}

// cheap is the height above which a block takes about ten thousand hashes or fewer. Below it, the
// difficulty is still near the initial one of dev builds and falls slowly: these blocks take half a
// billion hashes in total, and thus minutes.
const cheap = 300

// found has a file for each known first block: that of dev builds of 1.5.9 and that of the last
// revision, named after its first eight hexadecimal digits. A file holds the nonces of the blocks
// up to cheap, divided by nonceUnit, as uvarints. They are the results of solve, stored only to
// save its search: a nonce that does not fit is searched for.
//
//go:embed nonces/*.bin
var found embed.FS

// nonces returns the known nonces of the blocks after a first block, if any.
func nonces(first types.BlockID) (all []uint64) {
	rest, err := found.ReadFile(fmt.Sprintf("nonces/%x.bin", first[:4]))
	if err != nil {
		return nil
	}
	for len(rest) > 0 {
		n, size := binary.Uvarint(rest)
		if size <= 0 {
			return all
		}
		rest, all = rest[size:], append(all, n*nonceUnit)
	}
	return all
}

// solved reports whether the block's nonce meets target.
func solved(b *types.Block, target types.Hash256) bool {
	return b.ID().CmpWork(types.BlockID(target)) >= 0
}
