package link

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// measureTCP measures the payload rate in bit/s with one bulk stream and, when
// that does not reach what the link should carry, with eight at once: slow start
// may end far too early when something else delays a few acknowledgements
// (HyStart), and a single stream over a long link then takes minutes to recover.
// That is no fault of the link. Of a link that is wanted as it is, what it
// should carry is not known.
func (i *initiator) measureTCP(ctx context.Context) (rate float64, congestion string, err error) {
	rate, congestion, err = i.measureStreams(ctx, 1)
	if err != nil || i.want.hardForTCP() || !i.want.Any && rate >= (1-i.tol)*TCPPayloadRate(i.want.Rate, i.ipv6) {
		return rate, congestion, err
	}
	if _, err := i.settle(i.now()); err != nil {
		return 0, congestion, err
	}
	again, congestion, err := i.measureStreams(ctx, 8)
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
func (i *initiator) measureStreams(ctx context.Context, streams int) (rate float64, congestion string, err error) {
	want := i.want
	window := max(100*time.Millisecond, 2*want.RTT)
	budget := 3*window + 10*want.RTT
	if want.Rate > 0 && !want.hardForTCP() {
		window = max(window, wireTime(100*FullFrame, want.Rate))
		budget = max(time.Second+20*want.RTT, 5*window)
	}
	var senders []*net.TCPConn
	for range streams {
		sender, err := i.dial(ctx)
		if err != nil {
			return 0, "", err
		}
		congestion = congestionOf(sender)
		stop := stream(sender)
		defer stop()
		defer context.AfterFunc(ctx, stop)()
		senders = append(senders, sender)
	}

	payload := TCPPayloadRate(want.Rate, i.ipv6)
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
		if payload > 0 && near(r, last, 0.02) && near(mean, payload, i.tol/2) {
			return mean, congestion, nil
		}
		last = r
		if now.Sub(start) >= budget {
			return best, congestion, nil
		}
	}
}

// stream sends as fast as it can, until stop. The connection ends with a reset: what is
// still queued is of no use to anyone.
func stream(sender *net.TCPConn) (stop func()) {
	sender.SetLinger(0)
	go func() {
		b := make([]byte, 256<<10) // zeros, which are no [question]
		for {
			if _, err := sender.Write(b); err != nil {
				return // closed
			}
		}
	}()
	return func() { sender.Close() }
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

func tcpInfo(c any) (info *unix.TCPInfo, err error) {
	err = control(c, func(fd int) (err error) {
		info, err = unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		return err
	})
	return info, err
}

func congestionOf(c any) (name string) {
	_ = control(c, func(fd int) (err error) {
		name, err = unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
		return err
	})
	return name
}

func setsockopt(c any, level, opt, value int) error {
	return control(c, func(fd int) error { return unix.SetsockoptInt(fd, level, opt, value) })
}

// control calls f with a socket's descriptor.
func control(c any, f func(fd int) error) (err error) {
	s, ok := c.(syscall.Conn)
	if !ok {
		return errors.ErrUnsupported
	}
	raw, e := s.SyscallConn()
	if e == nil {
		e = raw.Control(func(fd uintptr) { err = f(int(fd)) })
	}
	return errors.Join(e, err)
}
