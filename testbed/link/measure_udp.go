package link

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// burst is a UDP socket through which many datagrams pass at little cost: the kernel
// cuts what is written into datagrams of size bytes (UDP GSO, udp(7)).
type burst struct {
	*socket
	size int
	most int // datagrams in one write
}

func (i *initiator) newBurst(ctx context.Context, size int) (*burst, error) {
	// Quiet must outlast the way, or what is still under way would count as lost.
	s, err := i.ask(ctx, question{Size: size, Quiet: 500*time.Millisecond + i.want.RTT + i.want.Jitter})
	if err != nil {
		return nil, err
	}
	b := &burst{s, size, min(64, 64000/size)}
	if setsockopt(s.Conn, unix.IPPROTO_UDP, unix.UDP_SEGMENT, size) != nil {
		b.most = 1
	}
	return b, nil
}

// send sends n datagrams at the given wire rate and returns how many it could. A
// sender that was held up does not catch up: a burst would overflow the queue
// that it is to measure.
func (b *burst) send(ctx context.Context, n int, rate float64) (int, error) {
	const (
		nap     = 200 * time.Microsecond
		atMost  = 2 * time.Millisecond // at once
		headers = 28 + Framing         // IPv6 has 20 more; the pace need not be exact
	)
	every := float64(b.size+headers) * 8e9 / rate // ns
	buf := make([]byte, b.most*b.size)
	sent, start := 0, time.Now()
	for due := 0.0; sent < n; { // due: when the next one is, since start
		if err := ctx.Err(); err != nil {
			return sent, err
		}
		now := float64(time.Since(start))
		due = max(due, now-float64(atMost))
		if due > now {
			time.Sleep(nap)
			continue
		}
		k := min(1+int((now-due)/every), b.most, n-sent)
		if _, err := b.Write(buf[:k*b.size]); err != nil && !errors.Is(err, unix.ENOBUFS) {
			return sent, err
		}
		sent += k
		due += float64(k) * every
	}
	return sent, nil
}

// pass sends n datagrams of size bytes at a wire rate and returns how they
// arrived and how many were sent.
func (i *initiator) pass(ctx context.Context, size, n int, rate float64) (arrivals, int, error) {
	b, err := i.newBurst(ctx, size)
	if err != nil {
		return arrivals{}, 0, err
	}
	defer b.Close()
	if err := i.settle(ctx); err != nil {
		return arrivals{}, 0, err
	}
	defer context.AfterFunc(ctx, func() { b.Close() })()
	began := time.Now()
	sent, err := b.send(ctx, n, rate)
	if err == nil {
		err = b.control.CloseWrite()
	}
	if err != nil {
		return arrivals{}, 0, err
	}
	a, err := hear(b.control, i.patience()+time.Since(began))
	if err != nil {
		return arrivals{}, 0, err
	}
	if a.Arrivals.N == 0 {
		return arrivals{}, 0, fmt.Errorf("none of %d datagrams arrived", sent)
	}
	return a.Arrivals, sent, nil
}

// measureFlood offers more full segments than the link can carry and returns
// the payload rate, in bit/s, of a TCP stream of the segments that arrived.
func (i *initiator) measureFlood(ctx context.Context) (float64, error) {
	const seconds, excess = 0.5, 1.15
	perSecond := i.want.Rate / 8 / FullFrame
	n := int(max(seconds*excess*perSecond, 200))
	a, _, err := i.pass(ctx, udpPayload(i.ipv6), n, i.want.Rate*excess)
	if err != nil {
		return 0, err
	}
	if a.Span <= 0 {
		return 0, errors.New("too few datagrams arrived to tell a rate")
	}
	return float64(a.Late) / a.Span.Seconds() * 8 * float64(tcpPayload(i.ipv6)), nil
}

// measureLoss counts small datagrams, sent well below the link's rate so that no
// queue overflows, and returns the share lost and the number sent.
func (i *initiator) measureLoss(ctx context.Context) (float64, int, error) {
	const (
		size   = 64
		wire   = size + 28 + Framing
		fast   = 20000.0 // datagrams per second
		enough = 20000
	)
	rate := fast * wire * 8
	if i.want.Rate > 0 {
		rate = min(rate, i.want.Rate/2)
	}
	n := min(enough, max(500, int(rate/8/wire)))
	a, sent, err := i.pass(ctx, size, n, rate)
	if err != nil {
		return 0, 0, err
	}
	return 1 - float64(a.N)/float64(sent), sent, nil
}

func setsockopt(c any, level, opt, value int) error {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return errors.ErrUnsupported
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return err
	}
	e := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), level, opt, value) })
	if e != nil {
		return e
	}
	return err
}
