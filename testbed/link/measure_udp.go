package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// burst is a UDP socket pair through which many datagrams pass at little cost:
// the kernel cuts what is written into datagrams of size bytes, and joins what
// arrives (UDP GSO and GRO, udp(7)).
type burst struct {
	to   net.PacketConn
	from net.Conn
	size int
	most int // datagrams in one write
}

func newBurst(ctx context.Context, from, to Endpoint, size int) (*burst, error) {
	at, conn, err := udpPair(ctx, from, to)
	if err != nil {
		return nil, err
	}
	b := &burst{at, conn, size, min(64, 64000/size)}
	if setsockopt(conn, unix.IPPROTO_UDP, unix.UDP_SEGMENT, size) != nil {
		b.most = 1
	}
	setsockopt(at, unix.IPPROTO_UDP, unix.UDP_GRO, 1) // without it they arrive one by one
	const buffer = 16 << 20
	if setsockopt(at, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, buffer) != nil {
		setsockopt(at, unix.SOL_SOCKET, unix.SO_RCVBUF, buffer)
	}
	return b, nil
}

func (b *burst) close() {
	b.from.Close()
	b.to.Close()
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
		if _, err := b.from.Write(buf[:k*b.size]); err != nil && !errors.Is(err, unix.ENOBUFS) {
			return sent, err
		}
		sent += k
		due += float64(k) * every
	}
	return sent, nil
}

// arrival is how many datagrams had arrived by a moment.
type arrival struct {
	at time.Time
	n  int
}

// receive collects arrivals until none has come for quiet after over is closed.
func (b *burst) receive(over <-chan struct{}, quiet time.Duration) []arrival {
	var log []arrival
	buf := make([]byte, 1<<16)
	n := 0
	for {
		b.to.SetReadDeadline(time.Now().Add(quiet))
		k, _, err := b.to.ReadFrom(buf)
		if err != nil {
			select {
			case <-over:
				return log
			default:
				if errors.Is(err, net.ErrClosed) {
					return log
				}
				continue
			}
		}
		n += (k + b.size - 1) / b.size
		log = append(log, arrival{time.Now(), n})
	}
}

// pass sends n datagrams of size bytes at a wire rate and returns how they
// arrived and how many were sent.
func pass(ctx context.Context, from, to Endpoint, want Want, size, n int, rate float64) ([]arrival, int, error) {
	b, err := newBurst(ctx, from, to, size)
	if err != nil {
		return nil, 0, err
	}
	defer b.close()
	if err := drain(ctx, from, to, want); err != nil {
		return nil, 0, err
	}
	defer context.AfterFunc(ctx, b.close)()
	over := make(chan struct{})
	log := make(chan []arrival, 1)
	// Quiet must outlast the way, or what is still under way would count as lost.
	go func() { log <- b.receive(over, 500*time.Millisecond+want.RTT+want.Jitter) }()
	sent, err := b.send(ctx, n, rate)
	close(over)
	a := <-log
	if err != nil {
		return nil, 0, err
	}
	if len(a) == 0 {
		return nil, 0, fmt.Errorf("none of %d datagrams arrived", sent)
	}
	return a, sent, nil
}

// measureFlood offers more full segments than the link can carry and returns
// the payload rate, in bit/s, of a TCP stream of the segments that arrived.
func measureFlood(ctx context.Context, from, to Endpoint, want Want, ipv6 bool) (float64, error) {
	const seconds, excess = 0.5, 1.15
	perSecond := want.Rate / 8 / FullFrame
	n := int(max(seconds*excess*perSecond, 200))
	log, _, err := pass(ctx, from, to, want, udpPayload(ipv6), n, want.Rate*excess)
	if err != nil {
		return 0, err
	}
	// The first fifth is the start: the queue is not full yet.
	first, last := log[len(log)/5], log[len(log)-1]
	span := last.at.Sub(first.at).Seconds()
	if span <= 0 {
		return 0, errors.New("too few datagrams arrived to tell a rate")
	}
	return float64(last.n-first.n) / span * 8 * float64(tcpPayload(ipv6)), nil
}

// measureLoss counts small datagrams, sent well below the link's rate so that no
// queue overflows, and returns the share lost and the number sent.
func measureLoss(ctx context.Context, from, to Endpoint, want Want) (float64, int, error) {
	const (
		size   = 64
		wire   = size + 28 + Framing
		fast   = 20000.0 // datagrams per second
		enough = 20000
	)
	rate := fast * wire * 8
	if want.Rate > 0 {
		rate = min(rate, want.Rate/2)
	}
	n := min(enough, max(500, int(rate/8/wire)))
	log, sent, err := pass(ctx, from, to, want, size, n, rate)
	if err != nil {
		return 0, 0, err
	}
	return 1 - float64(log[len(log)-1].n)/float64(sent), sent, nil
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
