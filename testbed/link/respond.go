package link

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Responder is the far end of measurements, wherever that is. Bulk streams it throws
// away. A connection that begins with a [question] gets a UDP socket for as long as it
// is open, which sends back what comes, or counts it.
type Responder struct {
	l       net.Listener
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// Listener is the host of a responder.
type Listener interface {
	Addr() netip.Addr
	Listen(ctx context.Context, network, address string) (net.Listener, error)
	ListenPacket(ctx context.Context, network, address string) (net.PacketConn, error)
}

// question asks for a UDP socket. Size 0: it sends back what comes.
type question struct {
	Size  int           `json:"size,omitempty"`  // of the datagrams to count
	Quiet time.Duration `json:"quiet,omitempty"` // all have come when none has for so long
}

// responderSays is the responder's: first the port; when the initiator has said that it sent
// all, by closing its side of the connection, how they arrived.
type responderSays struct {
	Port     uint16   `json:"port,omitempty"`
	Err      string   `json:"error,omitempty"`
	Arrivals arrivals `json:"arrivals,omitzero"`
}

// arrivals are how counted datagrams came. The first fifth is the start: the queue is
// not full yet.
type arrivals struct {
	N    int           `json:"n"`
	Late int           `json:"late"` // of them, those after the first fifth
	Span time.Duration `json:"span"` // in which these came
}

// Respond begins to answer at a free port of a host. The caller must Close it.
func Respond(ctx context.Context, h Listener) (*Responder, error) {
	l, err := h.Listen(ctx, "tcp", net.JoinHostPort(h.Addr().String(), "0"))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r := &Responder{l: l, cancel: cancel}
	r.running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // closed
			}
			r.running.Go(func() { respond(ctx, h, c.(*net.TCPConn)) })
		}
	})
	return r, nil
}

// Addr is where it answers.
func (r *Responder) Addr() netip.AddrPort { return r.l.Addr().(*net.TCPAddr).AddrPort() }

// Close ends it and all its connections.
func (r *Responder) Close() {
	r.l.Close()
	r.cancel()
	r.running.Wait()
}

func respond(ctx context.Context, h Listener, c *net.TCPConn) {
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	var q question
	if json.NewDecoder(c).Decode(&q) != nil {
		discard(c)
		return
	}
	say := json.NewEncoder(c).Encode
	at, err := h.ListenPacket(ctx, "udp", net.JoinHostPort(h.Addr().String(), "0"))
	if err != nil {
		say(responderSays{Err: err.Error()})
		return
	}
	defer at.Close()
	if q.Size > 0 {
		setsockopt(at, unix.IPPROTO_UDP, unix.UDP_GRO, 1) // without it they arrive one by one
		const buffer = 16 << 20
		if setsockopt(at, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, buffer) != nil {
			setsockopt(at, unix.SOL_SOCKET, unix.SO_RCVBUF, buffer)
		}
	}
	if say(responderSays{Port: at.LocalAddr().(*net.UDPAddr).AddrPort().Port()}) != nil {
		return
	}
	over := make(chan struct{})
	go func() {
		io.Copy(io.Discard, c)
		close(over)
	}()
	if q.Size > 0 {
		say(responderSays{Arrivals: count(at, q, over)})
		return
	}
	go echo(at)
	<-over
}

// echo sends datagrams back until the socket is closed.
func echo(at net.PacketConn) {
	b := make([]byte, 2048)
	for {
		n, peer, err := at.ReadFrom(b)
		if err != nil {
			return
		}
		at.WriteTo(b[:n], peer)
	}
}

// count counts until, after over is closed, none has come for a while.
func count(at net.PacketConn, q question, over <-chan struct{}) arrivals {
	type arrival struct {
		at time.Time
		n  int // that had come by then
	}
	var log []arrival
	buf := make([]byte, 1<<16)
	n := 0
	for {
		at.SetReadDeadline(time.Now().Add(q.Quiet))
		k, _, err := at.ReadFrom(buf)
		if err == nil {
			n += (k + q.Size - 1) / q.Size
			log = append(log, arrival{time.Now(), n})
			continue
		}
		select {
		case <-over:
		default:
			if errors.Is(err, os.ErrDeadlineExceeded) {
				continue
			}
		}
		break
	}
	if n == 0 {
		return arrivals{}
	}
	first, last := log[len(log)/5], log[len(log)-1]
	return arrivals{N: n, Late: last.n - first.n, Span: last.at.Sub(first.at)}
}

// discard receives and throws away without copying: MSG_TRUNC leaves the buffer
// alone (tcp(7)).
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
