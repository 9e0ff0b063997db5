package siachain

import (
	"fmt"
	"net"
	"path/filepath"
	"sync/atomic"
	"time"

	"go.sia.tech/core/types"
	"go.sia.tech/coreutils/syncer"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/siachain/chain"
)

// follower is the fresh node. It stores its state when the libraries call it, so that
// a request for the state neither waits for a database nor delays one.
type follower struct {
	book   *book
	store  *chain.Store
	syncer *syncer.Syncer
	wallet *wallet       // nil: nothing subscribes
	least  time.Duration // the shortest in which a request for blocks times out
	ended  func() string

	tip atomic.Pointer[types.ChainIndex]
}

func (t task) follow(c *chain.Chain, l net.Listener) (func() state, error) {
	dir, err := filepath.Abs(t.Dir)
	if err != nil {
		return nil, fmt.Errorf("sia-chain: %w", err)
	}
	f := &follower{book: newBook(t.Peers)}
	f.store, err = chain.OpenStore(dir, c.Spec.Network(), c.Spec.Genesis(),
		chain.StoreOptions{NoSync: !t.settings.sync})
	if err != nil {
		return nil, err
	}
	cm := f.store.Manager()
	tip := cm.Tip()
	f.tip.Store(&tip)
	cm.OnReorg(func(tip types.ChainIndex) { f.tip.Store(&tip) })
	if f.wallet, err = openWallet(dir, t.settings, cm, c.Spec.Watched()); err != nil {
		return nil, err
	}
	f.least = t.settings.blocksTimeout
	if c.Spec.Form == chain.V2 { // a checkpoint comes before the blocks
		f.least = min(f.least, t.settings.blockTimeout)
	}
	log := zap.New(zapcore.NewTee(problems().Core(), listener{zapcore.DebugLevel, f}))
	f.syncer = syncer.New(l, cm, f.book, header(c, t.Listen), append(t.settings.syncer(),
		syncer.WithDialer(&dialer{book: f.book}), syncer.WithLogger(log))...)
	f.ended = run(f.syncer)
	return f.state, nil
}

func (f *follower) state() state {
	tip := *f.tip.Load()
	s := system.Following{
		Height:  int64(tip.Height),
		Tip:     tip.ID.String(),
		Indexed: -1,
		Commits: f.store.Commits(),
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
	s.Peers, s.TimedOut, s.Failed = f.book.shares()
	if s.Trouble = f.ended(); s.Trouble == "" { // what does not pass by waiting
		s.Trouble = f.book.hopeless()
	}
	return state{Following: &s}
}
