package siachain

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"go.sia.tech/core/gateway"
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
