package testbed

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"

	"github.com/vishvananda/netlink"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// host is a network namespace on this machine, or, without namespaces, one
// address of the loopback interface.
type host struct {
	t      *Testbed
	name   string
	index  int
	addr   netip.Addr
	addrs  []netip.Addr // IPv4 and, where that is wanted, IPv6
	keeper *keeper
	ns     *os.File        // nil: plain
	nl     *netlink.Handle // nil: no interface of its own
	veth   netlink.Link

	mu      sync.Mutex
	procs   []*process // running ones
	started []Process  // all
}

// Name implements Host.
func (h *host) Name() string { return h.name }

// Addr implements Host.
func (h *host) Addr() netip.Addr { return h.addr }

// Files implements Host.
func (h *host) Files() Files { return LocalFiles{} }

// Machine implements Host.
func (h *host) Machine() Machine { return here{h.t} }

// Processes implements Host.
func (h *host) Processes() []Process {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.started)
}

// Dial connects from the host.
func (h *host) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	// A socket belongs to the namespace it was created in. Each dial has its own
	// thread, so slow links do not delay other callers.
	c, err := inNamespace(h.ns, func() (net.Conn, error) { return d.DialContext(ctx, network, address) })
	if err != nil {
		return nil, fmt.Errorf("testbed: dial from host %s: %w", h.name, err)
	}
	return c, nil
}

// Listen listens on the host with TCP, at a numeric address.
func (h *host) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	var lc net.ListenConfig
	lc.SetMultipathTCP(false) // Go's default since 1.24, but nothing else here uses it
	return inNamespace(h.ns, func() (net.Listener, error) { return lc.Listen(ctx, network, address) })
}

// ListenPacket listens on the host with UDP, at a numeric address.
func (h *host) ListenPacket(ctx context.Context, network, address string) (net.PacketConn, error) {
	var lc net.ListenConfig
	return inNamespace(h.ns, func() (net.PacketConn, error) { return lc.ListenPacket(ctx, network, address) })
}

// Respond implements Host.
func (h *host) Respond(ctx context.Context) (at netip.AddrPort, stop func(), err error) {
	return link.Respond(ctx, h)
}

// Measure implements Host.
func (h *host) Measure(ctx context.Context, to netip.AddrPort, want link.Want, tol float64) (record.LinkCheck, error) {
	return link.Measure(ctx, h, to, want, tol)
}

// Port implements Host. Free ports lie below the kernel's ephemeral range (from 10000 on a
// host with a namespace, from 32768 elsewhere), so no outgoing connection or other listener
// takes the port before the daemon binds it.
func (h *host) Port(ctx context.Context, want int) (int, error) {
	const first, last, tries = 2048, 9999, 64
	for range tries {
		port := want
		if want == 0 {
			port = first + rand.IntN(last-first+1)
		}
		l, err := h.Listen(ctx, "tcp", netip.AddrPortFrom(h.addr, uint16(port)).String())
		if want == 0 && errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("testbed: host %s: %w", h.name, err)
		}
		return port, l.Close()
	}
	return 0, fmt.Errorf("testbed: no free port on host %s: each of %d tried between %d and %d is in use", h.name,
		tries, first, last)
}

func (h *host) close() error {
	h.keeper.stop()
	if h.nl != nil {
		h.nl.Close()
	}
	if h.ns != nil {
		return h.ns.Close()
	}
	return nil
}
