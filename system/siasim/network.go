package siasim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"syscall"

	"github.com/plimsoll-project/plimsoll/testbed"
)

// Addresses at which the simulator is reached from Host.
const (
	siadAddress    = "198.51.100.1:9980"
	renterdAddress = "198.51.100.1:9981"
)

// SiadURL and RenterdURL are what option `url` of the two systems is.
func (s *Sim) SiadURL() string    { return "http://" + siadAddress }
func (s *Sim) RenterdURL() string { return "http://" + renterdAddress }

// Host is the client's: Dial reaches the simulator, and nothing else.
func (s *Sim) Host() testbed.Host { return client{s.net} }

// network is what lies between the client and the two daemons.
//
// Its connections are net.Pipe's. They have no buffer, which net/http on both
// ends can live with: it reads and writes a connection in different goroutines.
// All their waiting is on channels, which lets a bubble's clock move on.
type network struct {
	sim     *Sim
	servers []*http.Server
	served  sync.WaitGroup // servers and connections
	doors   map[string]*door
}

func newNetwork(s *Sim) *network {
	n := &network{sim: s, doors: map[string]*door{}}
	for address, handler := range map[string]http.Handler{siadAddress: s.Siad(), renterdAddress: s.Renterd()} {
		d := &door{address: address, conns: make(chan net.Conn), closed: make(chan struct{})}
		server := &http.Server{Handler: handler, ConnState: n.count}
		n.doors[address] = d
		n.servers = append(n.servers, server)
		n.served.Go(func() { _ = server.Serve(d) })
	}
	return n
}

func (n *network) count(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		n.served.Add(1)
	case http.StateClosed, http.StateHijacked:
		n.served.Done()
	}
}

func (n *network) close() {
	for _, server := range n.servers {
		_ = server.Close()
	}
	n.served.Wait()
}

// door is where a daemon accepts connections.
type door struct {
	address string
	conns   chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

func (d *door) Accept() (net.Conn, error) {
	select {
	case c := <-d.conns:
		return c, nil
	case <-d.closed:
		return nil, net.ErrClosed
	}
}

func (d *door) Close() error {
	d.once.Do(func() { close(d.closed) })
	return nil
}

func (d *door) Addr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(d.address))
}

// client is the host that requests come from.
type client struct{ net *network }

var errNone = errors.New("siasim: a simulated host can only dial")

func (client) Name() string     { return "client" }
func (client) Addr() netip.Addr { return netip.MustParseAddr("198.51.100.2") }

// Dial connects to the simulator.
func (c client) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	refused := &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	d := c.net.doors[address]
	if d == nil || c.net.sim.down() {
		return nil, refused
	}
	ours, theirs := net.Pipe()
	select {
	case d.conns <- theirs:
		return ours, nil
	case <-d.closed:
		return nil, refused
	case <-ctx.Done():
		return nil, fmt.Errorf("dial %s: %w", address, context.Cause(ctx))
	}
}

func (client) Start(context.Context, testbed.Command) (*testbed.Process, error) { return nil, errNone }
func (client) Listen(context.Context, string, string) (net.Listener, error)     { return nil, errNone }
func (client) ListenPacket(context.Context, string, string) (net.PacketConn, error) {
	return nil, errNone
}
func (client) FreePort(context.Context) (int, error) { return 0, errNone }
