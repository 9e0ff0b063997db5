package siachain

import (
	"errors"
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
	wallet *wallet       // nil: nothing subscribes
	least  time.Duration // the shortest in which a request for blocks times out
	*running

	tip    atomic.Pointer[types.ChainIndex]
	target atomic.Int64
}

func (t task) follow(c *chain.Chain, l net.Listener) (_ doer, err error) {
	dir, err := filepath.Abs(t.Dir)
	if err != nil {
		return nil, fmt.Errorf("sia-chain: %w", err)
	}
	f := &follower{book: newBook(t.Peers)}
	f.store, err = chain.OpenStore(dir, c.Spec.Network(), c.Spec.Genesis(), chain.StoreOptions{NoSync: !t.settings.sync})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.store.Close())
		}
	}()
	cm := f.store.Manager()
	tip := cm.Tip()
	f.tip.Store(&tip)
	f.target.Store(int64(tip.Height))
	cm.OnReorg(func(tip types.ChainIndex) { f.tip.Store(&tip) })
	if f.wallet, err = openWallet(dir, t.settings, cm, c.Spec.Watched()); err != nil {
		return nil, err
	}
	f.least = t.settings.blocksTimeout
	if c.Spec.Form == chain.V2 { // a checkpoint comes before the blocks
		f.least = min(f.least, t.settings.blockTimeout)
	}
	log := zap.New(zapcore.NewTee(problems().Core(), listener{zapcore.DebugLevel, f}))
	f.running = run(syncer.New(l, cm, f.book, header(c, t.Listen), append(t.settings.syncer(),
		syncer.WithDialer(&dialer{book: f.book}), syncer.WithLogger(log))...))
	return f, nil
}

// state implements doer.
func (f *follower) state() state {
	tip := *f.tip.Load()
	s := system.Following{
		Height:  int64(tip.Height),
		Tip:     tip.ID.String(),
		Indexed: -1,
		Commits: f.store.Commits(),
	}
	s.Target = max(f.target.Load(), s.Height)
	if f.wallet != nil {
		s.Indexed = f.wallet.indexed.Load()
		s.Commits += f.wallet.commits.Load()
	}
	synced := 0
	for _, p := range f.syncer.Peers() {
		if p.Err() != nil || p.Inbound {
			continue
		}
		s.Connected++
		if p.Synced() {
			synced++
		}
	}
	s.Synced = s.Connected > 0 && synced == s.Connected
	s.Peers, s.TimedOut, s.Failed = f.book.shares()
	s.Trouble = f.trouble()
	return state{Following: &s}
}

// trouble is what does not pass by waiting.
func (f *follower) trouble() string {
	select {
	case <-f.ended:
		return fmt.Sprintf("the syncer has ended (%v)", f.err)
	default:
	}
	return f.book.hopeless()
}

// close implements doer.
func (f *follower) close() error {
	stopped := f.stop()
	var err error
	if f.wallet != nil {
		err = f.wallet.close()
	}
	if !stopped { // what is not committed by the end of the process is lost, as when it is killed
		go func() {
			<-f.ended
			f.store.Close()
		}()
		return err
	}
	return errors.Join(err, f.store.Close())
}
