// Package chain makes private Sia chains with the consensus code of go.sia.tech/core, caches them
// on disk by their parameters, opens them for peers that serve them, and replays them into a fresh
// store, which is what a syncing node does, without the network.
//
// A chain is completely determined by its [Spec]. Its blocks contain signed payments that spend
// outputs of earlier blocks. Their work is trivial: mining them costs nothing and is no measure of
// real mining.
package chain

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"go.sia.tech/core/consensus"
	"go.sia.tech/core/types"
	"go.sia.tech/coreutils/chain"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/chaincache"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
)

// Forms of blocks and transactions.
const (
	V1 = "v1" // before the v2 hardfork: unlock conditions; proofs from the node's own store
	V2 = "v2" // after it: spend policies; proofs in the transactions, commitments in the blocks
)

// watchedShare is the share of payments, block rewards and paying wallets that belong to the
// watched addresses. It determines how much a wallet that only follows its own addresses finds in a
// chain.
const watchedShare = 0.1

// maxBlocks limits a chain, by info.yaml: with more, timestamps would approach the present.
const maxBlocks = 1_000_000

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

// start returns the time of genesis. It is early enough for the last of maxBlocks to be in the
// past.
func start() time.Time { return time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC) }

// payers returns the number of paying wallets: enough for a block's payments to spend outputs of
// several ages.
func (s Spec) payers() int { return max(32, 4*s.Transactions) }

// watchedPayer reports whether a paying wallet is watched.
func (s Spec) watchedPayer(i int) bool { return float64(i) < watchedShare*float64(s.payers()) }

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

// Chain is a chain on disk.
type Chain struct {
	Manifest
	Dir  string
	Size int64 // of its database, in bytes
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
	c = &Chain{Dir: dir}
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

// format is the version of the blocks made from a spec and of the files. It increases when either
// changes.
const format = 2

// Get returns the chain of the spec from a directory of chains. Each chain's directory is named
// after everything that determines it: its spec, the format and the versions of the libraries. A
// missing chain is made now, which takes longer the longer the chain is. If another process is
// making the same chain, Get waits for it until ctx ends.
func Get(ctx context.Context, cache string, s Spec, say Progress) (*Chain, error) {
	chain := &Chain{Dir: filepath.Join(cache, key(s))}
	var err error
	chain.Size, err = chaincache.Cache{Dir: cache, System: "sia-chain"}.Get(ctx, key(s), &chain.Manifest,
		func(dir string) (err error) {
			chain.Manifest, err = build(ctx, dir, s, say)
			return err
		})
	return chain, err
}

// build makes the chain in the empty directory dir.
func build(ctx context.Context, dir string, s Spec, say Progress) (m Manifest, err error) {
	store, err := OpenStore(dir, s.Network(), s.Genesis(), true) // a power failure leaves only a temporary directory
	if err != nil {
		return m, err
	}
	if m, err = generate(ctx, s, store.store, say); err == nil {
		err = store.bolt.Sync()
	}
	return m, errors.Join(err, store.Close())
}

// key returns the name of a chain, which depends on everything that determines the chain. The part
// before the hash is for human readers.
func key(s Spec) string {
	text, _ := json.Marshal(s) // numbers and strings cannot fail
	made := fmt.Sprint(format, string(text), Version("go.sia.tech/core"), Version("go.sia.tech/coreutils"),
		Version("go.etcd.io/bbolt"))
	name := fmt.Sprintf("%s-%dx%d-seed%d", s.Form, s.Blocks, s.Transactions, s.Seed)
	return fmt.Sprintf("%s-%x", name, sha256.Sum256([]byte(made)))[:len(name)+1+16]
}

// Version returns the name and version of a library in this binary.
func Version(path string) string {
	return filepath.Base(strings.TrimSuffix(path, "/v2")) + " " + group.Library(path)
}
