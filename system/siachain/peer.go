package siachain

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"

	"go.sia.tech/core/gateway"
	"go.sia.tech/core/types"
	"go.sia.tech/coreutils/syncer"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/siachain/chain"
)

// run runs a syncer for the lifetime of the process. If the syncer stops, ended ends with the
// reason.
func run(s *syncer.Syncer) (ended context.Context) {
	ended, end := context.WithCancelCause(context.Background())
	go func() { end(fmt.Errorf("the syncer has ended (%v)", s.Run())) }()
	return ended
}

// problems returns a logger that writes the library's warnings to the process's log.
func problems() *zap.Logger {
	enc := zapcore.NewConsoleEncoder(zap.NewProductionEncoderConfig())
	return zap.New(zapcore.NewCore(enc, zapcore.AddSync(os.Stderr), zapcore.WarnLevel))
}

func header(c *chain.Chain, address string) gateway.Header {
	first := c.Spec.Genesis()
	return gateway.Header{GenesisID: first.ID(), UniqueID: gateway.GenerateUniqueID(), NetAddress: address}
}

// never is longer than the lifetime of a peer.
const never = 365 * 24 * time.Hour

// serve serves a chain that does not change.
func (t task) serve(c *chain.Chain, l net.Listener) error {
	cm, _, err := c.OpenReadOnly()
	if err != nil {
		return err
	}
	// A peer that also syncs would ask the fresh node for headers, take those of blocks that it
	// already has for new ones, and fetch all these blocks. That load would come and go with the
	// phase of its ticker, on the machine where the fresh node is measured.
	s := syncer.New(l, cm, chain.NewPeerStore(nil), header(c, t.Listen), syncer.WithLogger(problems()),
		syncer.WithSyncInterval(never))
	go func() { problems().Fatal("the syncer has ended", zap.Error(s.Run())) }()
	return nil
}

// refuse accepts connections and shakes hands, but answers no requests and keeps connections open.
// As a stranger, it has another genesis, so no handshake completes.
func (t task) refuse(c *chain.Chain, l net.Listener) {
	h := header(c, t.Listen)
	if t.Manner == system.Stranger {
		h.GenesisID[0]++
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go hush(conn, h)
	}
}

func hush(conn net.Conn, h gateway.Header) {
	conn.SetDeadline(time.Now().Add(time.Minute))
	t, err := gateway.Accept(conn, h)
	if err != nil {
		conn.Close()
		return
	}
	conn.SetDeadline(time.Time{})
	for err == nil { // accept requests, and never answer them
		_, err = t.AcceptStream()
	}
}

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

// listener counts failed requests in the syncer's log, because the syncer reports them nowhere
// else. The message is that of coreutils v0.24.0.
type listener struct {
	zapcore.LevelEnabler
	timedOut, failed *atomic.Int64 // of all peers: the log does not tell which peer a request was sent to
}

// With implements zapcore.Core.
func (l listener) With([]zapcore.Field) zapcore.Core { return l }

// Check implements zapcore.Core.
func (l listener) Check(e zapcore.Entry, c *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	return c.AddCore(e, l)
}

// Write implements zapcore.Core.
func (l listener) Write(e zapcore.Entry, fields []zapcore.Field) error {
	if e.Message != "failed to fetch blocks" {
		return nil
	}
	for _, field := range fields {
		err, ok := field.Interface.(error)
		switch {
		case !ok || errors.Is(err, context.Canceled):
		case errors.Is(err, os.ErrDeadlineExceeded):
			l.timedOut.Add(1)
		default:
			l.failed.Add(1)
		}
	}
	return nil
}

// Sync implements zapcore.Core.
func (listener) Sync() error { return nil }
