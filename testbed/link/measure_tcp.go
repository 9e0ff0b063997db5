package link

import (
	"context"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// measureTCP measures the payload rate in bit/s with one bulk stream and, when
// that does not reach what the link should carry, with eight at once: slow start
// may end far too early when something else delays a few acknowledgements
// (HyStart), and a single stream over a long link then takes minutes to recover.
// That is no fault of the link.
func measureTCP(ctx context.Context, from, to Endpoint, want Want, tol float64, ipv6 bool) (rate float64, congestion string, err error) {
	rate, congestion, err = measureStreams(ctx, from, to, want, tol, ipv6, 1)
	if err != nil || want.hardForTCP() || rate >= (1-tol)*TCPPayloadRate(want.Rate, ipv6) {
		return rate, congestion, err
	}
	if err := drain(ctx, from, to, want); err != nil {
		return 0, congestion, err
	}
	again, congestion, err := measureStreams(ctx, from, to, want, tol, ipv6, 8)
	return max(rate, again), congestion, err
}

// measureStreams sends bulk streams until their rate is steady at what the link
// should carry, or the time is up, and returns the rate of the best two
// successive windows.
//
// Two windows, because a stream that is still starting doubles its rate every
// round trip: it must not be stopped where it happens to pass the rate wanted.
// The rate is that of segments delivered, as the sender's kernel counts them
// (tcpi_delivered, selective acknowledgements included): what the receiver can
// read comes in jumps while a lost segment is repeated.
func measureStreams(ctx context.Context, from, to Endpoint, want Want, tol float64, ipv6 bool, streams int) (rate float64, congestion string, err error) {
	window := max(100*time.Millisecond, 2*want.RTT)
	budget := 3*window + 10*want.RTT
	if want.Rate > 0 && !want.hardForTCP() {
		window = max(window, wireTime(100*FullFrame, want.Rate))
		budget = max(time.Second+20*want.RTT, 5*window)
	}
	var senders []*net.TCPConn
	for range streams {
		sender, receiver, err := tcpPair(ctx, from, to)
		if err != nil {
			return 0, "", err
		}
		congestion = congestionOf(sender)
		stop := stream(sender, receiver)
		defer stop()
		defer context.AfterFunc(ctx, stop)()
		senders = append(senders, sender)
	}

	payload := TCPPayloadRate(want.Rate, ipv6)
	before, start, err := delivered(senders)
	if err != nil {
		return 0, congestion, err
	}
	at := start
	var last, best float64
	for {
		select {
		case <-ctx.Done():
			return 0, congestion, ctx.Err()
		case <-time.After(window):
		}
		n, now, err := delivered(senders)
		if err != nil {
			return 0, congestion, err
		}
		r := float64(n-before) * 8 / now.Sub(at).Seconds()
		before, at = n, now
		mean := (r + last) / 2
		best = max(best, mean)
		if payload > 0 && near(r, last, 0.02) && near(mean, payload, tol/2) {
			return mean, congestion, nil
		}
		last = r
		if now.Sub(start) >= budget {
			return best, congestion, nil
		}
	}
}

// stream sends as fast as it can and throws away what arrives, until stop. The
// connections end with a reset: what is still queued is of no use to anyone.
func stream(sender, receiver *net.TCPConn) (stop func()) {
	sender.SetLinger(0)
	go discard(receiver)
	go func() {
		b := make([]byte, 256<<10)
		for {
			if _, err := sender.Write(b); err != nil {
				return // closed
			}
		}
	}()
	return func() {
		sender.Close()
		receiver.Close()
	}
}

// delivered is the payload bytes that have reached the receivers at a moment. It
// asks again when it was interrupted between the question and the clock.
func delivered(senders []*net.TCPConn) (sum int64, at time.Time, err error) {
	for range 10 {
		start := time.Now()
		sum = 0
		for _, c := range senders {
			info, err := tcpInfo(c)
			if err != nil {
				return 0, start, err
			}
			sum += int64(info.Delivered) * int64(info.Snd_mss)
		}
		at = time.Now()
		if at.Sub(start) < 200*time.Microsecond {
			break
		}
	}
	return sum, at, nil
}

func near(a, b, tol float64) bool { return a >= b*(1-tol) && a <= b*(1+tol) }

// tcpPair connects from to to.
func tcpPair(ctx context.Context, from, to Endpoint) (sender, receiver *net.TCPConn, err error) {
	l, err := to.Listen(ctx, "tcp", net.JoinHostPort(to.Addr().String(), "0"))
	if err != nil {
		return nil, nil, err
	}
	defer l.Close()
	type accepted struct {
		c   net.Conn
		err error
	}
	ch := make(chan accepted, 1)
	go func() {
		c, err := l.Accept()
		ch <- accepted{c, err}
	}()
	c, err := from.Dial(ctx, "tcp", l.Addr().String())
	if err != nil {
		return nil, nil, err
	}
	select {
	case a := <-ch:
		if a.err != nil {
			c.Close()
			return nil, nil, a.err
		}
		return c.(*net.TCPConn), a.c.(*net.TCPConn), nil
	case <-ctx.Done():
		c.Close()
		return nil, nil, ctx.Err()
	case <-time.After(10 * time.Second):
		c.Close()
		return nil, nil, context.DeadlineExceeded
	}
}

func tcpInfo(c *net.TCPConn) (info *unix.TCPInfo, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	e := raw.Control(func(fd uintptr) { info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) })
	if e != nil {
		return nil, e
	}
	return info, err
}

func congestionOf(c *net.TCPConn) (name string) {
	if raw, err := c.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) {
			name, _ = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
		})
	}
	return name
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
