package siasim

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"

	"github.com/plimsoll-project/plimsoll/testbed"
)

// address is where the simulator is reached from Host.
const address = "198.51.100.1:9980"

// URL is what option `url` is.
func (s *Sim) URL() string { return "http://" + address }

// Host is the client's: Dial reaches the simulator, and nothing else.
func (s *Sim) Host() testbed.Host { return client{sim: s} }

// pipes is a listener of connections in memory.
//
// They are net.Pipe's, which have no buffer. net/http on both ends can live with
// that: it reads and writes a connection in different goroutines.
// All their waiting is on channels, which lets a bubble's clock move on.
type pipes struct {
	net.Listener // nil: a server calls only what is below
	conns        chan net.Conn
	ended        chan struct{}
}

// Accept implements net.Listener.
func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p pipes) Close() error {
	close(p.ended)
	return nil
}

// client is the host that requests come from. It can do nothing but dial.
type client struct {
	testbed.Host
	sim *Sim
}

func (client) Name() string     { return "client" }
func (client) Addr() netip.Addr { return netip.MustParseAddr("198.51.100.2") }

// Dial connects to the simulator.
func (c client) Dial(ctx context.Context, network, to string) (net.Conn, error) {
	refused := &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	unlock := c.sim.lock()
	down := c.sim.has(c.sim.conf.Faults.Down)
	unlock()
	if down || to != address {
		return nil, refused
	}
	ours, theirs := net.Pipe()
	select {
	case c.sim.pipes.conns <- theirs:
		return ours, nil
	case <-c.sim.pipes.ended:
		return nil, refused
	case <-ctx.Done():
		return nil, fmt.Errorf("dial %s: %w", to, context.Cause(ctx))
	}
}
