package link

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A datagram of a measurement begins with its size (2 bytes) and the time when it was sent, in nanoseconds
// of the initiator's clock (8 bytes). Those of pingSize are pings: they are returned with the number of other
// datagrams received so far (8 bytes) and the time of arrival by the responder's clock (8 bytes).
const (
	pingSize = 64
	pingWire = pingSize + 8 + 40 + Framing
	stampAt  = 2
	countAt  = 10
	cameAt   = 18
)

// Listener is the host of a responder.
type Listener interface {
	Addr() netip.Addr
	Listen(ctx context.Context, network, address string) (net.Listener, error)
	ListenPacket(ctx context.Context, network, address string) (net.PacketConn, error)
}

// Respond is the far end of a measurement, on a TCP and a UDP port with the same number on a host. It counts
// datagrams, returns pings, and discards bulk streams until stop is called, which ends all connections to it.
func Respond(ctx context.Context, h Listener) (at netip.AddrPort, stop func(), err error) {
	l, err := h.Listen(ctx, "tcp", net.JoinHostPort(h.Addr().String(), "0"))
	if err != nil {
		return at, nil, err
	}
	udp, err := h.ListenPacket(ctx, "udp", l.Addr().String())
	if err != nil {
		l.Close()
		return at, nil, err
	}
	_ = setsockopt(udp, unix.IPPROTO_UDP, unix.UDP_GRO, 1) // otherwise datagrams arrive one by one
	enlarge(udp)
	var running sync.WaitGroup
	running.Go(func() { datagrams(udp) })
	running.Go(func() { streams(l, &running) })
	return l.Addr().(*net.TCPAddr).AddrPort(), func() {
		l.Close()
		udp.Close()
		running.Wait()
	}, nil
}

// datagrams counts and answers until the socket is closed.
func datagrams(c net.PacketConn) {
	start, n := time.Now(), 0
	b := make([]byte, 1<<16)
	for {
		k, peer, err := c.ReadFrom(b)
		if err != nil {
			return
		}
		came := time.Since(start)
		size := int(binary.BigEndian.Uint16(b)) // of each of those that the kernel has merged
		if size != pingSize {
			n += (k + size - 1) / max(size, 1)
			continue
		}
		for all := b[:k]; len(all) >= pingSize; all = all[pingSize:] {
			binary.BigEndian.PutUint64(all[countAt:], uint64(n))
			binary.BigEndian.PutUint64(all[cameAt:], uint64(came))
			_, _ = c.WriteTo(all[:pingSize], peer)
		}
	}
}

// streams accepts connections until the listener is closed, which closes them all.
func streams(l net.Listener, running *sync.WaitGroup) {
	var open []net.Conn
	for {
		c, err := l.Accept()
		if err != nil {
			break
		}
		open = append(open, c)
		running.Go(func() { discard(c.(*net.TCPConn)) })
	}
	for _, c := range open {
		c.Close()
	}
}

// discard receives and discards without copying: MSG_TRUNC does not touch the buffer
// (tcp(7)).
func discard(c *net.TCPConn) {
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	b := make([]byte, 1<<20)
	for {
		var k int
		var e error
		err := raw.Read(func(fd uintptr) bool {
			k, _, e = unix.Recvfrom(int(fd), b, unix.MSG_TRUNC)
			return e != syscall.EAGAIN
		})
		if err != nil || e != nil || k <= 0 {
			return
		}
	}
}
