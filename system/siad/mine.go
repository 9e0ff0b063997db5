package siad

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/big"
	"runtime"
	"time"

	"go.sia.tech/core/types"
	"golang.org/x/sync/errgroup"
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

// target is what the identity of the next block is at most.
func (c consensusState) target() (t types.Hash256, err error) {
	if err := json.Unmarshal(c.Target, (*[32]byte)(&t)); err != nil {
		return t, fmt.Errorf("siad: GET /consensus: %.80q is no target: %w", c.Target, err)
	}
	return t, nil
}

// template is the block after parent, without a nonce. All of the subsidy goes to
// an address that no one can spend from.
func (c consensusState) template(to types.Address) types.Block {
	height := c.height + 1
	coins := max(c.InitialCoinbase-min(uint64(height), c.InitialCoinbase), c.MinimumCoinbase)
	return types.Block{
		ParentID:     c.tip,
		Timestamp:    time.Unix(c.GenesisTimestamp+height*spacing, 0).UTC(),
		MinerPayouts: []types.SiacoinOutput{{Value: types.Siacoins(uint32(coins)), Address: to}},
	}
}

// solve finds the least nonce with which b meets target. It takes all cores while
// it lasts; nothing is measured then.
func solve(ctx context.Context, b *types.Block, target types.Hash256) error {
	header := b.Header()
	var buf [80]byte
	copy(buf[:32], header.ParentID[:])
	binary.LittleEndian.PutUint64(buf[40:], uint64(header.Timestamp.Unix()))
	copy(buf[48:], header.Commitment[:])
	// What one core tries before all compare what they have: the less there is to
	// try, the less it should try in vain.
	share := uint64(min(max(hashes(target)/8, 1<<10), 1<<20))
	best := make([]uint64, runtime.GOMAXPROCS(0))
	for from := uint64(0); ; from += share * uint64(len(best)) {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		var g errgroup.Group
		for core := range best {
			g.Go(func() error {
				best[core] = try(buf, target, from+uint64(core)*share, share)
				return nil
			})
		}
		_ = g.Wait() // they have no errors
		for _, n := range best {
			if n != none {
				b.Nonce = n
				return nil
			}
		}
	}
}

const none = ^uint64(0) // no multiple of nonceUnit

// try is the first of count nonces that does, or none.
func try(header [80]byte, target types.Hash256, from, count uint64) uint64 {
	for i := from; i < from+count; i++ {
		binary.LittleEndian.PutUint64(header[32:], i*nonceUnit)
		if id := types.HashBytes(header[:]); bytes.Compare(target[:], id[:]) >= 0 {
			return i * nonceUnit
		}
	}
	return none
}

// hashes is how many hashes a block of that target takes on average.
func hashes(target types.Hash256) float64 {
	all := new(big.Float).SetInt(new(big.Int).Lsh(big.NewInt(1), 256))
	one := new(big.Float).SetInt(new(big.Int).Add(new(big.Int).SetBytes(target[:]), big.NewInt(1)))
	f, _ := new(big.Float).Quo(all, one).Float64()
	return f
}

// ahead is about how many hashes the blocks above height up to last take, when the
// next takes that many and the timestamps are ours: dev builds lower the
// difficulty by a sixth each ten blocks below 100, and then by 2 % a block.
func ahead(next float64, height, last int64) (sum float64) {
	for h := height + 1; h <= last && next > 1; h++ {
		sum += next
		switch {
		case h > 100:
			next /= 1.02
		case h%10 == 0:
			next /= 1.2
		}
	}
	return sum
}

// seconds is how long this machine takes for so many hashes.
func seconds(hashes float64) time.Duration {
	const count = 1 << 17
	from := time.Now()
	var g errgroup.Group
	for range runtime.GOMAXPROCS(0) {
		g.Go(func() error {
			try([80]byte{}, types.Hash256{}, 0, count)
			return nil
		})
	}
	_ = g.Wait()
	rate := count * float64(runtime.GOMAXPROCS(0)) / time.Since(from).Seconds()
	return time.Duration(hashes / rate * float64(time.Second)).Round(time.Second)
}
