package siachain

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"go.sia.tech/core/gateway"
	"go.sia.tech/coreutils/syncer"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/siachain/chain"
)

// running is a syncer at work.
type running struct {
	syncer *syncer.Syncer
	ended  chan struct{}
	err    error // why it ended; set before ended is closed
}

func run(s *syncer.Syncer) *running {
	r := &running{syncer: s, ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		r.err = s.Run()
	}()
	return r
}

// stopTime bounds how long a syncer may take to end, which adds the blocks that it
// has before it does. Who stops the process becomes rude after 5 s.
const stopTime = 4 * time.Second

// stop ends the syncer and its connections. It reports whether nothing of it runs
// any more.
func (r *running) stop() bool {
	for _, p := range r.syncer.Peers() {
		p.Close()
	}
	go r.syncer.Close() // waits as Run does
	select {
	case <-r.ended:
		return true
	case <-time.After(stopTime):
		return false
	}
}

// problems is a logger that writes what a library warns of to the process's log.
func problems() *zap.Logger {
	enc := zapcore.NewConsoleEncoder(zap.NewProductionEncoderConfig())
	return zap.New(zapcore.NewCore(enc, zapcore.AddSync(os.Stderr), zapcore.WarnLevel))
}

func header(c *chain.Chain, address string) gateway.Header {
	return gateway.Header{GenesisID: c.Genesis, UniqueID: gateway.GenerateUniqueID(), NetAddress: address}
}

// peer serves a chain that does not change.
type peer struct {
	*running
	closeStore func() error
}

// never is longer than a peer lives.
const never = 365 * 24 * time.Hour

func (t task) serve(c *chain.Chain, l net.Listener) (doer, error) {
	cm, closeStore, err := c.OpenReadOnly()
	if err != nil {
		return nil, err
	}
	// A peer that syncs, too, would ask the fresh node for headers, take those of blocks
	// that it has for new ones, and fetch them all: load that comes and goes with the
	// phase of its ticker, on the machine that the fresh node is measured on.
	opts := append(t.settings.syncer(), syncer.WithLogger(problems()), syncer.WithSyncInterval(never))
	return &peer{run(syncer.New(l, cm, newBook(nil), header(c, t.Listen), opts...)), closeStore}, nil
}

func (p *peer) state() state {
	select {
	case <-p.ended:
		return state{Failed: fmt.Sprintf("sia-chain: the syncer has ended (%v)", p.err)}
	default:
		return state{}
	}
}

func (p *peer) close() error {
	if !p.stop() {
		return nil // the file is in use, and read only
	}
	return p.closeStore()
}

// mute takes connections and shakes hands; it answers no request, and closes no
// connection. A stranger is one whose genesis is another, so that no handshake
// comes to its end.
type mute struct {
	l net.Listener

	mu    sync.Mutex
	conns []net.Conn
}

func (t task) refuse(c *chain.Chain, l net.Listener) doer {
	h := header(c, t.Listen)
	if t.Manner == system.Stranger {
		h.GenesisID[0]++
	}
	m := &mute{l: l}
	go m.accept(h)
	return m
}

func (m *mute) accept(h gateway.Header) {
	for {
		conn, err := m.l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		} else if err != nil {
			time.Sleep(time.Millisecond) // no descriptors left: those of others may be closed soon
			continue
		}
		m.mu.Lock()
		m.conns = append(m.conns, conn)
		m.mu.Unlock()
		go func() {
			conn.SetDeadline(time.Now().Add(time.Minute))
			t, err := gateway.Accept(conn, h)
			if err != nil {
				conn.Close()
				return
			}
			conn.SetDeadline(time.Time{})
			for { // requests are taken, and never answered
				if _, err := t.AcceptStream(); err != nil {
					return
				}
			}
		}()
	}
}

func (m *mute) state() state { return state{} }

func (m *mute) close() error {
	m.l.Close()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.conns {
		c.Close()
	}
	return nil
}
