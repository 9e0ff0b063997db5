package siasim

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
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
func (s *Sim) Host() testbed.Host { return client{net: s.net} }

// outer is what happens to every request, whatever it asks for.
func (s *Sim) outer(inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if sleep(r.Context(), latency) != nil {
			return
		}
		unlock := s.lock()
		down, html := s.has(s.conf.Faults.Down), s.has(s.conf.Faults.HTML)
		unlock()
		switch {
		case down:
			panic(http.ErrAbortHandler) // a connection from before
		case html:
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = io.WriteString(w, "<!DOCTYPE html>\n<title>Maintenance</title><h1>We'll be back soon</h1>\n")
		default:
			inner.ServeHTTP(w, r)
		}
	})
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// report answers with a state.
func (s *Sim) report(state func() any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		defer s.lock()()
		answer(w, state())
	}
}

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
		d := &door{conns: make(chan net.Conn), closed: make(chan struct{})}
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
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
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

func (d *door) Addr() net.Addr { return &net.TCPAddr{} }

// client is the host that requests come from. It can do nothing but dial.
type client struct {
	testbed.Host
	net *network
}

func (client) Name() string     { return "client" }
func (client) Addr() netip.Addr { return netip.MustParseAddr("198.51.100.2") }

// Dial connects to the simulator.
func (c client) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	refused := &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	unlock := c.net.sim.lock()
	down := c.net.sim.has(c.net.sim.conf.Faults.Down)
	unlock()
	d := c.net.doors[address]
	if d == nil || down {
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
