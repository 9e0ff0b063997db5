package siachain

import (
	"context"
	"net"
	"sync/atomic"

	"go.sia.tech/core/types"
	"go.sia.tech/coreutils/syncer"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/siachain/chain"
)

// follower is the fresh node. It updates its state when the libraries call it, so that a request
// for the state neither waits for a database nor delays one.
type follower struct {
	book   *chain.PeerStore
	store  *chain.Store
	syncer *syncer.Syncer
	wallet *wallet // nil without a subscriber
	ended  context.Context

	tip              atomic.Pointer[types.ChainIndex]
	timedOut, failed atomic.Int64 // requests for blocks, of all peers
}

// maxPeers is how many peers a node connects to by default.
const maxPeers = 16

func (t task) follow(c *chain.Chain, l net.Listener) (func() system.Following, error) {
	f := &follower{book: chain.NewPeerStore(t.Peers)}
	var err error
	f.store, err = chain.OpenStore(t.Dir, c.Spec.Network(), c.Spec.Genesis(), t.Settings["db_sync"] == "off")
	if err != nil {
		return nil, err
	}
	cm := f.store.Manager()
	tip := cm.Tip()
	f.tip.Store(&tip)
	cm.OnReorg(func(tip types.ChainIndex) { f.tip.Store(&tip) })
	if f.wallet, err = openWallet(t.Dir, t.Settings, cm, c.Spec.Watched()); err != nil {
		return nil, err
	}
	log := zap.New(zapcore.NewTee(problems().Core(), listener{zapcore.DebugLevel, &f.timedOut, &f.failed}))
	o := t.Settings
	f.syncer = syncer.New(l, cm, f.book, header(c, t.Listen), syncer.WithSyncInterval(o.Duration("sync_interval")),
		syncer.WithConnectTimeout(o.Duration("connect_timeout")),
		syncer.WithSendBlocksTimeout(o.Duration("send_blocks_timeout")),
		syncer.WithSendBlockTimeout(o.Duration("send_block_timeout")),
		syncer.WithMaxOutboundPeers(max(maxPeers, len(t.Peers))), syncer.WithLogger(log))
	f.ended = run(f.syncer)
	return f.state, nil
}

func (f *follower) state() system.Following {
	tip := *f.tip.Load()
	s := system.Following{
		Height:  int64(tip.Height),
		Tip:     tip.ID.String(),
		Indexed: -1,
		Commits: f.store.Commits(),
		Peers:   f.book.Shares(), TimedOut: f.timedOut.Load(), Failed: f.failed.Load(),
	}
	if f.wallet != nil {
		s.Indexed = f.wallet.indexed.Load()
		s.Commits += f.wallet.commits.Load()
	}
	for _, p := range f.syncer.Peers() {
		if p.Err() == nil && !p.Inbound {
			s.Connected++
		}
	}
	if f.ended.Err() != nil {
		s.Trouble = context.Cause(f.ended).Error()
	}
	return s
}
