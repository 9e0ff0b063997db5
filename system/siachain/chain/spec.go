// Package chain makes private Sia chains with the consensus code of go.sia.tech/core, caches them
// on disk by their parameters, opens them for peers that serve them, and replays them into a fresh
// store, which is what a syncing node does, without the network.
//
// A chain is completely determined by its [Spec]. Its blocks contain signed payments that spend
// outputs of earlier blocks. Their work is trivial: mining them costs nothing and is no measure of
// real mining.
package chain

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"go.sia.tech/core/consensus"
	"go.sia.tech/core/types"
	"go.sia.tech/coreutils/chain"

	"github.com/plimsoll-project/plimsoll/system"
)

// Forms of blocks and transactions.
const (
	V1 = "v1" // before the v2 hardfork: unlock conditions; proofs from the node's own store
	V2 = "v2" // after it: spend policies; proofs in the transactions, commitments in the blocks
)

// WatchedShare is the share of payments, block rewards and paying wallets that belong to the
// watched addresses. It determines how much a wallet that only follows its own addresses finds in a
// chain.
const WatchedShare = 0.1

// Limits of a chain's size.
const (
	MaxBlocks       = 1_000_000 // with more, timestamps would approach the present
	MaxTransactions = 1000      // per block: about a third of the heaviest block that consensus allows
)

const receivers = 16 // watched addresses that are only paid to

// interval is the time between two blocks, as on the main network. Every block comes exactly when
// expected, so the difficulty does not change.
const interval = 10 * time.Minute

// Spec specifies a chain. The same spec gives the same blocks; specs that differ only in Blocks
// share the blocks up to the lower number.
type Spec system.ChainSpec

// Network returns the consensus parameters of the spec: those of Sia's testnet with the easiest
// target, all hardforks before v2 at the first block, and v2 either at the first block or never.
func (s Spec) Network() *consensus.Network {
	n, _ := chain.TestnetZen()
	n.Name = "plimsoll-" + s.Form
	n.BlockInterval = interval
	n.HardforkDevAddr.Height = 1
	n.HardforkTax.Height = 1
	n.HardforkStorageProof.Height = 1
	n.HardforkOak.Height = 1
	n.HardforkOak.FixHeight = 1
	n.HardforkASIC.Height = 1
	n.HardforkASIC.NonceFactor = 1
	n.HardforkFoundation.Height = 1
	// no monthly subsidy, which would make some blocks differ from the others
	n.HardforkFoundation.PrimaryAddress = types.VoidAddress
	n.HardforkFoundation.FailsafeAddress = types.VoidAddress

	Ease(n, start())
	height := uint64(1)
	if s.Form == V1 {
		height = 1 << 32
	}
	n.HardforkV2.AllowHeight = height
	n.HardforkV2.RequireHeight = height
	n.HardforkV2.FinalCutHeight = height
	n.HardforkV2.EphemeralOutputHeight = height
	return n
}

// Ease gives a chain that begins at this time the easiest target: any hash meets it, at difficulty
// 1. The decaying sums of work and time start at their equilibrium of 200 blocks.
func Ease(n *consensus.Network, begin time.Time) {
	const memory = 200
	for i := range n.InitialTarget {
		n.InitialTarget[i] = 0xff
	}
	n.HardforkOak.GenesisTimestamp = begin
	n.HardforkASIC.OakTime = memory * n.BlockInterval
	n.HardforkASIC.OakTarget = types.BlockID{0: 1, 1: 0x47} // 2^256 / 200
}

// Genesis returns the first block, which pays the wallets that make the payments of the other
// blocks. Its text is part of the format, as is that of keys.
func (s Spec) Genesis() types.Block {
	coins := make([]types.SiacoinOutput, s.payers())
	for i := range coins {
		coins[i] = types.SiacoinOutput{Address: s.address("payer", i), Value: types.Siacoins(1_000_000_000)}
	}
	return types.Block{
		Timestamp: start(),
		Transactions: []types.Transaction{{
			SiacoinOutputs: coins,
			SiafundOutputs: []types.SiafundOutput{{Address: types.VoidAddress, Value: 10_000}},
			ArbitraryData:  [][]byte{fmt.Appendf(nil, "plimsoll %s seed %d foreign false", s.Form, s.Seed)},
		}},
	}
}

// Watched returns the addresses of the wallet that a following node may have: some pay and get
// change, others are only paid.
func (s Spec) Watched() []types.Address {
	var all []types.Address
	for i := range s.payers() {
		if s.watchedPayer(i) {
			all = append(all, s.address("payer", i))
		}
	}
	for i := range receivers {
		all = append(all, s.address("receiver", i))
	}
	return all
}

// start returns the time of genesis. It is early enough for the last of MaxBlocks to be in the
// past.
func start() time.Time { return time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC) }

// payers returns the number of paying wallets: enough for a block's payments to spend outputs of
// several ages.
func (s Spec) payers() int { return max(32, 4*s.Transactions) }

// watchedPayer reports whether a paying wallet is watched.
func (s Spec) watchedPayer(i int) bool { return float64(i) < WatchedShare*float64(s.payers()) }

// key returns the n-th key of a kind. It depends on the seed, but not on the number of blocks.
func (s Spec) key(kind string, n int) types.PrivateKey {
	b := fmt.Appendf(nil, "plimsoll %s key false ", kind)
	b = binary.BigEndian.AppendUint64(b, s.Seed)
	b = binary.BigEndian.AppendUint64(b, uint64(n))
	seed := sha256.Sum256(b)
	return types.NewPrivateKeyFromSeed(seed[:])
}

// address returns the standard address of a key in the spec's form.
func (s Spec) address(kind string, n int) types.Address {
	return s.addressOf(s.key(kind, n).PublicKey())
}

func (s Spec) addressOf(k types.PublicKey) types.Address {
	if s.Form == V1 {
		return types.StandardUnlockHash(k)
	}
	return types.StandardAddress(k)
}
