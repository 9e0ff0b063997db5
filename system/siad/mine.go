package siad

import (
	"bytes"
	"context"
	"embed"
	"encoding/binary"
	"fmt"
	"time"

	"go.sia.tech/core/types"
)

// Rules of siad's consensus that its API does not tell.
const (
	// nonceUnit divides every nonce from the height at which ASICs were let in
	// (types.ASICHardforkFactor); below it does no harm.
	nonceUnit = 1009
	// spacing of the blocks' timestamps, in seconds. Far more than the 12 at which
	// siad aims, so that the difficulty falls as fast as its rules let it, by 2 % a
	// block in the end; the first timestamp is of 2015, so that there is room for
	// half a million blocks before the present.
	spacing = 600
)

// template is the block after parent, without a nonce. All of the subsidy goes to
// an address that no one can spend from.
func (c consensusAnswer) template(to types.Address) types.Block {
	height := c.Height + 1
	coins := max(c.InitialCoinbase-min(uint64(height), c.InitialCoinbase), c.MinimumCoinbase)
	return types.Block{
		ParentID:     c.Tip,
		Timestamp:    time.Unix(c.GenesisTimestamp+height*spacing, 0).UTC(),
		MinerPayouts: []types.SiacoinOutput{{Value: types.Siacoins(uint32(coins)), Address: to}},
	}
}

// solve finds the least nonce with which b meets target.
func solve(ctx context.Context, b *types.Block, target types.Hash256) error {
	header := b.Header()
	var buf [80]byte
	copy(buf[:32], header.ParentID[:])
	binary.LittleEndian.PutUint64(buf[40:], uint64(header.Timestamp.Unix()))
	copy(buf[48:], header.Commitment[:])
	for nonce := uint64(0); ; nonce += nonceUnit {
		if nonce%(nonceUnit<<16) == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		binary.LittleEndian.PutUint64(buf[32:], nonce)
		if id := types.HashBytes(buf[:]); bytes.Compare(target[:], id[:]) >= 0 {
			b.Nonce = nonce
			return nil
		}
	}
}

// cheap is the height above which a block takes some ten thousand hashes and less.
// Below, where the difficulty is still that with which dev builds begin and falls
// slowly, it takes half a billion for all: minutes.
const cheap = 300

// found has a file for each first block that was met so far, that of dev builds of
// 1.5.9 and of the last revision, named by its first eight digits: the nonces of the
// blocks up to cheap, divided by nonceUnit, as uvarints. They are what solve finds,
// save its search, and decide nothing: one that does not fit is searched for.
//
//go:embed nonces/*.bin
var found embed.FS

// nonces are those above a first block; none when it was never met.
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

// solved says whether b has a nonce that does.
func solved(b *types.Block, target types.Hash256) bool {
	id := b.ID()
	return bytes.Compare(target[:], id[:]) >= 0
}
