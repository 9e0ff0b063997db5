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
	"syscall"

	"github.com/plimsoll-project/plimsoll/testbed"
)

// address is where the simulator is reached from Host.
const address = "198.51.100.1:9980"

// URL is what option `url` is.
func (s *Sim) URL() string { return "http://" + address }

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

// network is what lies between the client and the daemon: its listener.
//
// Its connections are net.Pipe's. They have no buffer, which net/http on both
// ends can live with: it reads and writes a connection in different goroutines.
// All their waiting is on channels, which lets a bubble's clock move on.
type network struct {
	sim    *Sim
	server *http.Server
	conns  chan net.Conn
	ended  context.Context // when the listener is closed
	end    context.CancelFunc
}

func newNetwork(s *Sim) *network {
	n := &network{sim: s, conns: make(chan net.Conn)}
	n.ended, n.end = context.WithCancel(context.Background())
	n.server = &http.Server{Handler: s.Siad()}
	go func() { _ = n.server.Serve(n) }()
	return n
}

// Accept implements net.Listener.
func (n *network) Accept() (net.Conn, error) {
	select {
	case c := <-n.conns:
		return c, nil
	case <-n.ended.Done():
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (n *network) Close() error {
	n.end()
	return nil
}

// Addr implements net.Listener.
func (n *network) Addr() net.Addr { return &net.TCPAddr{} }

// client is the host that requests come from. It can do nothing but dial.
type client struct {
	testbed.Host
	net *network
}

func (client) Name() string     { return "client" }
func (client) Addr() netip.Addr { return netip.MustParseAddr("198.51.100.2") }

// Dial connects to the simulator.
func (c client) Dial(ctx context.Context, network, to string) (net.Conn, error) {
	refused := &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	unlock := c.net.sim.lock()
	down := c.net.sim.has(c.net.sim.conf.Faults.Down)
	unlock()
	if down || to != address {
		return nil, refused
	}
	ours, theirs := net.Pipe()
	select {
	case c.net.conns <- theirs:
		return ours, nil
	case <-c.net.ended.Done():
		return nil, refused
	case <-ctx.Done():
		return nil, fmt.Errorf("dial %s: %w", to, context.Cause(ctx))
	}
}
