package renterd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"go.sia.tech/core/gateway"
	"go.sia.tech/core/types"
	"go.sia.tech/coreutils"
	"go.sia.tech/coreutils/chain"
	"go.sia.tech/coreutils/syncer"

	"github.com/plimsoll-project/plimsoll/internal/timing"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	siachain "github.com/plimsoll-project/plimsoll/system/siachain/chain"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// A private chain for daemons that only know public networks. renterd and hostd accept the chain
// that they find in consensus.db under the name of their network without checking its first block.
// The private chain is therefore named zen, after the test network. It has its own first blocks,
// which pay the wallets, at a difficulty at which any hash will do. The daemons check later blocks
// by zen's rules.
const (
	started = 60 // blocks that the daemons start with; they need version 2, which is required from block 50 on
	coins   = 50 // initial outputs of each wallet, so that contracts need not wait for change
	coinSC  = 20_000
)

// privateChain is the chain and its only miner. It is a peer of all daemons.
type privateChain struct {
	manager *chain.Manager
	syncer  *syncer.Syncer
	file    []byte   // consensus.db as the daemons find it
	peers   []string // addresses of the daemons

	making member.Background
	err    atomic.Pointer[error] // why the last block was not made; nil before the first one
}

// newChain returns a chain that pays the wallets. It connects to its peers from the host from.
func newChain(from testbed.Host, wallets []types.Address) (*privateChain, error) {
	zen, public := chain.TestnetZen()
	easy, _ := chain.TestnetZen()
	now := time.Now().Truncate(time.Second)
	begin := now.Add(-started * zen.BlockInterval)
	siachain.Ease(easy, begin)
	first, pay := payments(wallets)
	first.Timestamp = begin
	db := chain.NewMemDB()
	store, err := chain.NewDBStore(db, easy, first, nil)
	if err != nil {
		return nil, err
	}
	m := chain.NewManager(store)
	if _, err := m.AddPoolTransactions([]types.Transaction{pay}); err != nil {
		return nil, err
	}
	var blocks []types.Block
	for i := range started {
		b, err := next(m)
		if err != nil {
			return nil, err
		}
		b.Timestamp = begin.Add(time.Duration(i+1) * zen.BlockInterval)
		if err := m.AddBlocks([]types.Block{b}); err != nil {
			return nil, fmt.Errorf("block %d: %w", i+1, err)
		}
		blocks = append(blocks, b)
	}
	c := &privateChain{}
	if c.file, err = siachain.File(easy, first, blocks); err != nil {
		return nil, err
	}
	if store, err = chain.NewDBStore(db, zen, public, nil); err != nil { // the rules of all later blocks
		return nil, err
	}
	c.manager = chain.NewManager(store)
	// Daemons never connect to it: it connects to them, and they get its blocks as from any peer.
	header := gateway.Header{GenesisID: public.ID(), UniqueID: gateway.GenerateUniqueID(), NetAddress: "127.0.0.1:1"}
	c.syncer = syncer.New(closed{}, c.manager, siachain.NewPeerStore(nil), header, syncer.WithDialer(dialer{from}))
	return c, nil
}

// payments returns a first block with all the money, which anyone may spend, and the transaction
// that spends it on the wallets: a first block cannot pay hostd.
func payments(wallets []types.Address) (first types.Block, pay types.Transaction) {
	for _, w := range wallets {
		for range coins {
			pay.SiacoinOutputs = append(pay.SiacoinOutputs, types.SiacoinOutput{Address: w,
				Value: types.Siacoins(coinSC)})
		}
	}
	var anyone types.UnlockConditions
	all := types.SiacoinOutput{Address: anyone.UnlockHash(),
		Value: types.Siacoins(uint32(coinSC * len(pay.SiacoinOutputs)))}
	first.Transactions = []types.Transaction{{SiacoinOutputs: []types.SiacoinOutput{all}}}
	pay.SiacoinInputs = []types.SiacoinInput{{ParentID: first.Transactions[0].SiacoinOutputID(0),
		UnlockConditions: anyone}}
	return first, pay
}

// next mines a block with all pending transactions.
func next(m *chain.Manager) (types.Block, error) {
	b, found := coreutils.MineBlock(m, types.VoidAddress, 10*time.Second)
	if !found {
		return b, errors.New("no block was found in 10 s")
	}
	return b, nil
}

// give writes the chain's file where a daemon looks for it.
func (c *privateChain) give(ctx context.Context, files testbed.Files, dir string) error {
	return files.Write(ctx, filepath.Join(dir, siachain.StoreFile), 0o600, bytes.NewReader(c.file))
}

// block makes a block and sends it to all daemons.
func (c *privateChain) block(ctx context.Context) error {
	err := c.join(ctx)
	var b types.Block
	if err == nil {
		b, err = next(c.manager)
	}
	if err == nil {
		err = c.manager.AddBlocks([]types.Block{b})
	}
	if err == nil {
		err = c.syncer.BroadcastV2BlockOutline(gateway.OutlineBlock(b, nil, nil))
	}
	if err != nil {
		return fmt.Errorf("renterd: private chain: %w", err)
	}
	return nil
}

// join connects to all daemons that it is not connected to, including lost ones.
func (c *privateChain) join(ctx context.Context) error {
	for _, at := range c.peers {
		if slices.ContainsFunc(c.syncer.Peers(), func(p *syncer.Peer) bool {
			return p.ConnAddr == at && p.Err() == nil
		}) {
			continue
		}
		if _, err := c.syncer.Connect(ctx, at); err != nil {
			return fmt.Errorf("connect to %s: %w", at, err)
		}
	}
	return nil
}

// goOn makes a block at each interval until stop.
func (c *privateChain) goOn(every time.Duration) {
	c.making.Begin(func(ctx context.Context) {
		for timing.Pause(ctx, every) {
			err := c.block(ctx)
			c.err.Store(&err)
		}
	})
}

// Err returns why the last block was not made, or nil if it was.
func (c *privateChain) Err() error {
	if err := c.err.Load(); err != nil {
		return *err
	}
	return nil
}

func (c *privateChain) stop() {
	c.making.Stop()
	for _, p := range c.syncer.Peers() {
		p.Close()
	}
	_ = c.syncer.Close() // there is no listener to close
}

// dialer connects to peers from a host.
type dialer struct{ from testbed.Host }

// DialContext implements syncer.Dialer.
func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return d.from.Dial(ctx, network, address)
}

// closed is a listener that accepts no connections.
type closed struct{}

func (closed) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (closed) Close() error              { return nil }
func (closed) Addr() net.Addr            { return &net.TCPAddr{} }
