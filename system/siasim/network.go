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

// address is the simulator's address for Host.
const address = "198.51.100.1:9980"

// URL returns the value of option `url`.
func (s *Sim) URL() string { return "http://" + address }

// Host returns the client's host. Its Dial reaches only the simulator.
func (s *Sim) Host() testbed.Host { return client{sim: s} }

// pipes is a listener for connections in memory.
//
// The connections are those of net.Pipe, which have no buffers. net/http works with them, because
// both ends read and write a connection in different goroutines. They only wait on channels, so
// that a bubble's clock can advance.
type pipes struct {
	net.Listener // nil: a server calls only the methods below
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

// client is the host that requests come from. It can only dial.
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
