package link

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Responder is the far end of a measurement, wherever that is: a TCP and a UDP port of the same
// number. Datagrams it sends back, one by one, and bulk streams it throws away. While a connection
// that begins with a [question] is open, it counts the datagrams instead.
type Responder struct {
	l       net.Listener
	at      net.PacketConn
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu   sync.Mutex
	size int // of the datagrams to count; 0: they are sent back
	n    int // that have come
	log  []arrival
}

// arrival is when so many datagrams had come.
type arrival struct {
	at time.Time
	n  int
}

// Listener is the host of a responder.
type Listener interface {
	Addr() netip.Addr
	Listen(ctx context.Context, network, address string) (net.Listener, error)
	ListenPacket(ctx context.Context, network, address string) (net.PacketConn, error)
}

// question asks to count datagrams.
type question struct {
	Size  int           `json:"size"`
	Quiet time.Duration `json:"quiet"` // all have come when none has for so long
}

// arrivals are how counted datagrams came: said empty when the count begins, and when the initiator has
// sent all, which it says by closing its side of the connection. The first fifth is the start: the queue is
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
	at, err := h.ListenPacket(ctx, "udp", l.Addr().String())
	if err != nil {
		l.Close()
		return nil, err
	}
	setsockopt(at, unix.IPPROTO_UDP, unix.UDP_GRO, 1) // without it they arrive one by one
	enlarge(at)
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r := &Responder{l: l, at: at, cancel: cancel}
	r.running.Go(r.datagrams)
	r.running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // closed
			}
			r.running.Go(func() {
				defer c.Close()
				defer context.AfterFunc(ctx, func() { c.Close() })()
				r.respond(ctx, c.(*net.TCPConn))
			})
		}
	})
	return r, nil
}

// Addr is where it answers.
func (r *Responder) Addr() netip.AddrPort { return r.l.Addr().(*net.TCPAddr).AddrPort() }

// Close ends it and all its connections.
func (r *Responder) Close() {
	r.l.Close()
	r.at.Close()
	r.cancel()
	r.running.Wait()
}

func (r *Responder) respond(ctx context.Context, c *net.TCPConn) {
	var q question
	if json.NewDecoder(c).Decode(&q) != nil || q.Size <= 0 {
		discard(c)
		return
	}
	say := json.NewEncoder(c).Encode
	r.mu.Lock()
	r.size, r.n, r.log = q.Size, 0, nil
	r.mu.Unlock()
	say(arrivals{})
	io.Copy(io.Discard, c)
	quiet := time.Now()
	for time.Since(quiet) < q.Quiet && ctx.Err() == nil {
		time.Sleep(q.Quiet / 20)
		r.mu.Lock()
		if n := len(r.log); n > 0 && r.log[n-1].at.After(quiet) {
			quiet = r.log[n-1].at
		}
		r.mu.Unlock()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var a arrivals
	if r.n > 0 {
		first, last := r.log[len(r.log)/5], r.log[len(r.log)-1]
		a = arrivals{N: r.n, Late: last.n - first.n, Span: last.at.Sub(first.at)}
	}
	r.size = 0
	say(a)
}

// datagrams counts datagrams, or sends them back, until the socket is closed.
func (r *Responder) datagrams() {
	b := make([]byte, 1<<16)
	for {
		k, peer, err := r.at.ReadFrom(b)
		if err != nil {
			return
		}
		r.mu.Lock()
		size := r.size
		if size > 0 {
			r.n += (k + size - 1) / size
			r.log = append(r.log, arrival{time.Now(), r.n})
		}
		r.mu.Unlock()
		for all := b[:k]; size == 0 && len(all) >= pingSize; all = all[pingSize:] {
			r.at.WriteTo(all[:pingSize], peer)
		}
	}
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
