package link

import (
	"context"
	"encoding/binary"
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

// marks is the number of pings among the datagrams of a flood.
const marks = 50

// pass sends n datagrams of size bytes at a wire rate. It returns how many were sent, how many arrived,
// and the pings among them that came back.
func (i *initiator) pass(size, n int, rate float64) (sent, arrived int, along []echo, err error) {
	before, err := i.settle(i.now())
	if err != nil {
		return 0, 0, nil, err
	}
	began := i.now()
	if sent, err = i.flood(size, n, rate); err != nil {
		return sent, 0, nil, err
	}
	end := i.now()
	all, err := i.settle(began)
	if err != nil {
		return sent, 0, nil, err
	}
	arrived = all[len(all)-1].count - before[len(before)-1].count
	for _, e := range all {
		if e.sent < end {
			along = append(along, e)
		}
	}
	return sent, arrived, along, nil
}

// flood sends n datagrams of size bytes at the given wire rate and returns how many it sent; the kernel
// splits larger writes (UDP GSO, udp(7)). After a delay it does not catch up, because a burst would
// overflow the queue.
func (i *initiator) flood(size, n int, rate float64) (sent int, err error) {
	const (
		nap     = 200 * time.Microsecond
		atMost  = 2 * time.Millisecond // at once
		headers = 28 + Framing         // IPv6 has 20 more; the pace need not be exact
	)
	most := min(64, 64000/size) // in one write
	if setsockopt(i.udp, unix.IPPROTO_UDP, unix.UDP_SEGMENT, size) != nil {
		most = 1
	}
	every := float64(size+headers) * 8e9 / rate // ns
	buf := make([]byte, most*size)
	for at := 0; at < len(buf); at += size {
		binary.BigEndian.PutUint16(buf[at:], uint16(size))
	}
	start, marked := time.Now(), 0
	for due := 0.0; sent < n; { // due: when the next one is due, since start
		now := float64(time.Since(start))
		due = max(due, now-float64(atMost))
		if due > now {
			time.Sleep(nap)
			continue
		}
		k := min(1+int((now-due)/every), most, n-sent)
		if _, err := i.udp.Write(buf[:k*size]); err != nil && !errors.Is(err, unix.ENOBUFS) {
			return sent, err
		}
		sent += k
		due += float64(k) * every
		if sent >= (marked+1)*n/marks {
			marked++
			_ = i.ping() // if it fails, the next one will do
		}
	}
	return sent, nil
}

// measureFlood offers more full segments than the link can carry and returns the
// payload rate, in bit/s, of a TCP stream of the segments that arrived. It skips the
// first fifth, when the queue is not full yet.
func (i *initiator) measureFlood() (float64, error) {
	const seconds, excess = 0.5, 1.15
	perSecond := i.want.Rate / 8 / FullFrame
	n := int(max(seconds*excess*perSecond, 200))
	short := i.short()
	_, _, along, err := i.pass(udpPayload(i.ipv6)-short, n, i.want.Rate*excess)
	if err != nil {
		return 0, err
	}
	if along = along[len(along)/5:]; len(along) < 2 {
		return 0, errors.New("too few datagrams came back to tell a rate")
	}
	first, last := along[0], along[len(along)-1]
	perSecond = float64(last.count-first.count) / (last.came - first.came).Seconds()
	return perSecond * 8 * float64(tcpPayload(i.ipv6)-short), nil
}

// short returns by how many bytes the path's MTU is below Ethernet's, as in a tunnel.
func (i *initiator) short() (bytes int) {
	level, option := unix.IPPROTO_IP, unix.IP_MTU
	if i.ipv6 {
		level, option = unix.IPPROTO_IPV6, unix.IPV6_MTU
	}
	_ = control(i.udp, func(fd int) error {
		mtu, err := unix.GetsockoptInt(fd, level, option)
		if err == nil {
			bytes = max(0, MTU-mtu)
		}
		return err
	})
	return bytes
}

// measureLoss sends small datagrams well below the link's rate, so that no queue
// overflows, and returns the share lost and the number sent.
func (i *initiator) measureLoss() (float64, int, error) {
	const (
		size   = 100
		wire   = size + 28 + Framing
		fast   = 20000.0 // datagrams per second
		enough = 20000
	)
	rate := fast * wire * 8
	if i.want.Rate > 0 {
		rate = min(rate, i.want.Rate/2)
	}
	n := min(enough, max(500, int(rate/8/wire)))
	sent, arrived, _, err := i.pass(size, n, rate)
	if err != nil {
		return 0, 0, err
	}
	return 1 - float64(arrived)/float64(sent), sent, nil
}
