package link

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// measureTCP measures the payload rate in bit/s with one bulk stream and, if that does
// not reach the expected rate, with eight at once: slow start may end far too early when
// something delays a few acknowledgements (HyStart), and a single stream over a long link
// then takes minutes to recover, which is not the link's fault. With Want.Any the expected
// rate is unknown.
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

// measureStreams sends bulk streams until their rate is steady at the expected rate or
// the time is up, and returns the rate of the best two successive windows.
//
// Two windows, because a starting stream doubles its rate every round trip: it must not
// be stopped when it happens to pass the expected rate.
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

// stream sends as fast as it can until stop. The connection ends with a reset, which
// drops what is still queued.
func stream(sender *net.TCPConn) (stop func()) {
	sender.SetLinger(0)
	go func() {
		b := make([]byte, 256<<10)
		for {
			if _, err := sender.Write(b); err != nil {
				return // closed
			}
		}
	}()
	return func() { sender.Close() }
}

// delivered returns the payload bytes that had reached the receivers at a time. It asks
// again if it was interrupted between the kernel's answer and reading the clock.
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
