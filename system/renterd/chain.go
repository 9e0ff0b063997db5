package renterd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"go.sia.tech/core/gateway"
	"go.sia.tech/core/types"
	"go.sia.tech/coreutils"
	"go.sia.tech/coreutils/chain"
	"go.sia.tech/coreutils/syncer"

	"github.com/plimsoll-project/plimsoll/system/internal/member"
	siachain "github.com/plimsoll-project/plimsoll/system/siachain/chain"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// A private chain for daemons that know public networks only. Renterd and hostd take the
// chain that they find in consensus.db when it is named as their network, without a look at
// its first block: ours is named zen, the test network, and has first blocks of our own,
// which pay the wallets, at a difficulty at which any hash will do. Blocks after them follow
// zen's rules, which the daemons hold them to.
const (
	started = 60 // blocks that the daemons find: version 2, which they need, is required from 50 on
	coins   = 50 // outputs that each wallet begins with, so that contracts need not wait for change
	coinSC  = 20_000
)

// privateChain is the chain, and the only one who makes blocks: it is a peer of all daemons.
type privateChain struct {
	manager *chain.Manager
	syncer  *syncer.Syncer
	file    []byte   // consensus.db as the daemons find it
	peers   []string // of the daemons

	making member.Background
	mu     sync.Mutex
	err    error // why there are no more blocks
}

// newChain makes a chain that pays the wallets. from is where its peers are reached from.
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
	if store, err = chain.NewDBStore(db, zen, public, nil); err != nil { // the rules of all blocks to come
		return nil, err
	}
	c.manager = chain.NewManager(store)
	// Daemons never connect to it: they get its blocks as those of a peer that has connected.
	header := gateway.Header{GenesisID: public.ID(), UniqueID: gateway.GenerateUniqueID(), NetAddress: "127.0.0.1:1"}
	c.syncer = syncer.New(closed{}, c.manager, siachain.NewBook(nil), header, syncer.WithDialer(dialer{from}))
	return c, nil
}

// payments are a first block with all the money, which anyone may spend, and the transaction
// that spends it on the wallets: hostd cannot be paid by a first block.
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

// next is a block with all that waits for one.
func next(m *chain.Manager) (types.Block, error) {
	b, found := coreutils.MineBlock(m, types.VoidAddress, 10*time.Second)
	if !found {
		return b, errors.New("no block was found in 10 s")
	}
	return b, nil
}

// give puts the chain where a daemon looks for it.
func (c *privateChain) give(ctx context.Context, files testbed.Files, dir string) error {
	return files.Write(ctx, filepath.Join(dir, siachain.StoreFile), 0o600, bytes.NewReader(c.file))
}

// block makes a block, and sends it to all daemons.
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

// join connects to the daemons, also to those that were lost.
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

// goOn makes blocks from now on.
func (c *privateChain) goOn(every time.Duration) {
	c.making.Begin(func(ctx context.Context) {
		for member.Sleep(ctx, every) {
			err := c.block(ctx)
			c.mu.Lock()
			c.err = err
			c.mu.Unlock()
		}
	})
}

// Err is why the last block was not made; nil: it was.
func (c *privateChain) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *privateChain) stop() {
	c.making.Stop()
	for _, p := range c.syncer.Peers() {
		p.Close()
	}
	_ = c.syncer.Close() // of no listener
}

// dialer is how peers are connected to: from a host.
type dialer struct{ from testbed.Host }

// DialContext implements syncer.Dialer.
func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return d.from.Dial(ctx, network, address)
}

// closed is the listener of one to whom no peer connects.
type closed struct{}

func (closed) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (closed) Close() error              { return nil }
func (closed) Addr() net.Addr            { return &net.TCPAddr{} }
