package link

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/record"
)

// Dialer is the near end of the link to measure. Its connections are sockets of this
// machine, because the kernel's information about them is part of the measurement.
type Dialer interface {
	Dial(ctx context.Context, network, address string) (net.Conn, error)
}

// initiator measures the link to a responder; all times are of its clock.
type initiator struct {
	from Dialer
	to   netip.AddrPort
	want Want
	tol  float64
	ipv6 bool
	udp  net.Conn // its datagrams to the responder
	base time.Time
}

// initiate opens an initiator. Measurements fail when the context ends.
func initiate(ctx context.Context, from Dialer, to netip.AddrPort, want Want, tol float64) (*initiator, error) {
	i := &initiator{from: from, to: to, want: want, tol: tol, base: time.Now()}
	i.ipv6 = to.Addr().Is6() && !to.Addr().Is4In6()
	var err error
	if i.udp, err = from.Dial(ctx, "udp", to.String()); err != nil {
		return nil, fmt.Errorf("link: reach the responder %s: %w", to, err)
	}
	context.AfterFunc(ctx, func() { i.udp.Close() })
	return i, nil
}

func (i *initiator) now() time.Duration { return time.Since(i.base) }

// patience is how long an answer over the link may take.
func (i *initiator) patience() time.Duration { return 10*time.Second + 10*(i.want.RTT+i.want.Jitter) }

// dial opens a TCP connection to the responder.
func (i *initiator) dial(ctx context.Context) (*net.TCPConn, error) {
	ctx, cancel := context.WithTimeout(ctx, i.patience())
	defer cancel()
	c, err := i.from.Dial(ctx, "tcp", i.to.String())
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

// DefaultTolerance is how far a rate may be off, as a share of the requested one. A
// round trip may be off by the same share or 1 ms, whichever is more, plus the requested
// jitter and the time that a datagram takes on the wire.
const DefaultTolerance = 0.05

const minRTTTolerance = time.Millisecond

// Measure measures the link to a host that responds ([Respond]) with its own traffic. It
// takes the round trip from 64-byte UDP datagrams (or, if that seems too long, from the
// kernel's measurement of TCP handshakes), then the TCP payload rate towards the host from
// a bulk stream (or from a UDP flood, if one stream cannot fill the link because segments
// are to be lost or acknowledgements have no room), then the loss. This takes about a
// second, and longer for slow, long or lossy links.
//
// It sets the measured fields of the check, Want…, Tolerance, OK and Why; the caller sets
// Trial, From, To, Emulator and Lateness. A link that is off is not an error: OK is false
// and Why gives the reason. An error means that the link could not be measured. With
// [Want].Any a link cannot be off.
func Measure(ctx context.Context, from Dialer, to netip.AddrPort, want Want, tol float64) (record.LinkCheck, error) {
	if tol <= 0 {
		tol = DefaultTolerance
	}
	c := record.LinkCheck{
		WantLoss: want.Loss, WantRTT: want.RTT.Seconds(), Loss: math.NaN(), Lateness: math.NaN(), Tolerance: tol,
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	i, err := initiate(ctx, from, to, want, tol)
	if err != nil {
		return c, err
	}
	failed := func(what string, err error) (record.LinkCheck, error) {
		return c, fmt.Errorf("link: measure the %s to %s: %w", what, to, cmp.Or(ctx.Err(), err))
	}
	var why []string
	off := func(format string, args ...any) { why = append(why, fmt.Sprintf(format, args...)) }

	rtts, err := i.measureRTT()
	if err != nil {
		return failed("round trip", err)
	}
	median, allowed := quantile(rtts, 0.5), rttTolerance(want, tol)
	if median > want.RTT+allowed {
		// On a busy machine datagrams also wait for this process; a handshake does
		// not.
		if kernel, err := i.handshakeRTT(ctx); err == nil {
			median = min(median, kernel)
		}
	}
	if want.Any {
		i.want.RTT = median // determines how long streams need to get up to speed
	} else if (median - want.RTT).Abs() > allowed {
		ms := func(d time.Duration) float64 { return d.Seconds() * 1e3 }
		off("round trip %.3f ms, wanted %.3f ± %.3f ms", ms(median), ms(want.RTT), ms(allowed))
	}
	c.RTT, c.RTTP99 = median.Seconds(), quantile(rtts, 0.99).Seconds()

	c.WantRate = TCPPayloadRate(want.Rate, i.ipv6) * (1 - want.Loss)
	c.Rate, c.Congestion, err = i.measureTCP(ctx)
	if err == nil {
		_, err = i.settle(i.now()) // leave the link idle
	}
	if err == nil && want.hardForTCP() {
		c.Rate, err = i.measureFlood()
	}
	if err != nil {
		return failed("rate", err)
	}
	if want.Rate > 0 && math.Abs(c.Rate-c.WantRate) > tol*c.WantRate {
		off("rate %.4g bit/s of payload, wanted %.4g ± %.2g %%", c.Rate, c.WantRate, tol*100)
	}

	if want.Loss > 0 {
		var n int
		if c.Loss, n, err = i.measureLoss(); err != nil {
			return failed("loss", err)
		}
		if most := lossTolerance(want.Loss, n, tol); math.Abs(c.Loss-want.Loss) > most {
			off("loss %.3f %%, wanted %.3f ± %.3f %% (of %d segments)", c.Loss*100, want.Loss*100, most*100, n)
		}
	}
	c.OK, c.Why = len(why) == 0, strings.Join(why, "; ")
	return c, nil
}

// hardForTCP reports whether one stream may be unable to fill a correct link: because
// segments or acknowledgements are lost, or because acknowledgements have too little
// room (one of 66 bytes for every two segments of 1514, plus some reserve).
func (w Want) hardForTCP() bool {
	return w.Rate > 0 && (w.Loss > 0 || w.ReturnLoss > 0.05 || w.ReturnRate > 0 && w.Rate > 20*w.ReturnRate)
}

// rttTolerance includes the time that a datagram takes on slow links: in each direction
// at most three links of at least the path's rate.
func rttTolerance(want Want, tol float64) time.Duration {
	t := max(minRTTTolerance, time.Duration(tol*float64(want.RTT))) + want.Jitter
	for _, rate := range []float64{want.Rate, want.ReturnRate} {
		if rate > 0 {
			t += 3 * wireTime(pingWire, rate)
		}
	}
	return t
}

// LongestWay is the longest round trip between two machines with which this link can be emulated between
// their hosts: the shortest that jitter gives the link, plus the tolerance.
func (w Want) LongestWay() time.Duration {
	return w.RTT - w.Jitter + max(minRTTTolerance, time.Duration(DefaultTolerance*float64(w.RTT)))
}

// lossTolerance is the relative tolerance plus three standard deviations of a share of n
// independent segments.
func lossTolerance(loss float64, n int, tol float64) float64 {
	return tol*loss + 3*math.Sqrt(loss*(1-loss)/float64(max(n, 1)))
}

const pings = 100

// echo is a ping that has come back.
type echo struct {
	sent, rtt time.Duration // by the initiator's clock
	count     int           // of other datagrams that the responder had received before it
	came      time.Duration // arrival by the responder's clock
}

// ping sends a ping.
func (i *initiator) ping() error {
	var b [pingSize]byte
	binary.BigEndian.PutUint16(b[:], pingSize)
	binary.BigEndian.PutUint64(b[stampAt:], uint64(i.now()))
	_, err := i.udp.Write(b[:])
	return err
}

// hear receives returning pings for a time or until enough returns true; false: it never did. It skips pings
// sent before since, by an earlier measurement.
func (i *initiator) hear(since, within time.Duration, enough func(echo) bool) (bool, error) {
	var b [pingSize]byte
	i.udp.SetReadDeadline(time.Now().Add(within))
	for {
		_, err := i.udp.Read(b[:])
		now := i.now()
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return false, nil
		case err != nil:
			return false, err
		}
		sent := time.Duration(binary.BigEndian.Uint64(b[stampAt:]))
		count, came := binary.BigEndian.Uint64(b[countAt:]), binary.BigEndian.Uint64(b[cameAt:])
		if sent >= since && enough(echo{sent, now - sent, int(count), time.Duration(came)}) {
			return true, nil
		}
	}
}

// measureRTT sends pings at a steady pace, so that it takes one round trip plus pings ×
// pace instead of pings round trips. It returns the sorted round trips without lost
// datagrams.
func (i *initiator) measureRTT() ([]time.Duration, error) {
	want := i.want
	pace := time.Millisecond
	if want.Rate > 0 { // load the link to at most a tenth
		pace = max(pace, wireTime(10*pingWire, want.Rate))
	}
	n := min(pings, max(10, int(2*time.Second/pace)))
	// Pings that do not return in time count as lost; the margin is for a machine so busy that we do not
	// run for a while. If segments are to be lost, the whole margin is always waited for.
	margin := 2 * time.Second
	if want.Loss > 0 || want.ReturnLoss > 0 {
		margin /= 4
	}
	if _, err := i.settle(i.now()); err != nil {
		return nil, err
	}
	var rtts []time.Duration
	first := i.now()
	for sent := 1; sent <= n; sent++ {
		if err := i.ping(); err != nil {
			return nil, err
		}
		within := pace
		if sent == n {
			within = 2*(want.RTT+want.Jitter) + margin
		}
		_, err := i.hear(first, within, func(e echo) bool {
			rtts = append(rtts, e.rtt)
			return len(rtts) == n
		})
		if err != nil {
			return nil, err
		}
	}
	if back := float64(n) * (1 - want.Loss) * (1 - want.ReturnLoss); len(rtts) == 0 || float64(len(rtts)) < back/2 {
		return nil, fmt.Errorf("%d of %d datagrams came back", len(rtts), n)
	}
	slices.Sort(rtts)
	return rtts, nil
}

// RoundTrip returns the median round trip to a host that responds ([Respond]) over an unknown path: of
// datagrams, or of handshakes if they are faster, since datagrams wait for processes on a busy machine.
func RoundTrip(ctx context.Context, from Dialer, to netip.AddrPort) (time.Duration, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	i, err := initiate(ctx, from, to, Want{}, DefaultTolerance)
	if err != nil {
		return 0, err
	}
	rtts, err := i.measureRTT()
	if err != nil {
		return 0, err
	}
	rtt := quantile(rtts, 0.5)
	if kernel, err := i.handshakeRTT(ctx); err == nil {
		rtt = min(rtt, kernel)
	}
	return rtt, nil
}

// handshakeRTT returns the median round trip of a few TCP handshakes between the two
// kernels, by the kernel's clock (tcpi_rtt).
func (i *initiator) handshakeRTT(ctx context.Context) (time.Duration, error) {
	var rtts []time.Duration
	for range 5 {
		c, err := i.dial(ctx)
		if err != nil {
			return 0, err
		}
		info, err := tcpInfo(c)
		c.Close()
		if err != nil {
			return 0, err
		}
		if info.Total_retrans == 0 {
			rtts = append(rtts, time.Duration(info.Rtt)*time.Microsecond)
		}
	}
	if len(rtts) == 0 {
		return 0, errors.New("every handshake lost a segment")
	}
	slices.Sort(rtts)
	return quantile(rtts, 0.5), nil
}

// settle waits until the link is idle: a ping that returns has passed everything that waited in the
// queues. It also warms up routes and neighbours. It returns the pings sent since then that came back; that
// ping is the last.
func (i *initiator) settle(since time.Duration) (all []echo, err error) {
	began, stop := i.now(), time.Now().Add(i.patience())
	again := i.want.RTT + i.want.Jitter + 50*time.Millisecond
	for ; time.Now().Before(stop); again = min(again*2, time.Second+again) {
		if err := i.ping(); err != nil {
			return nil, err
		}
		idle, err := i.hear(since, again, func(e echo) bool {
			all = append(all, e)
			return e.sent >= began && e.rtt <= again
		})
		if idle || err != nil {
			return all, err
		}
	}
	return nil, fmt.Errorf("no datagram came back within %s", words.Duration(i.patience()))
}

// wireTime returns how long bytes occupy a link.
func wireTime(bytes int64, rate float64) time.Duration {
	return time.Duration(math.Ceil(float64(bytes) * 8e9 / rate))
}

// quantile is the value at rank ⌈q·n⌉ of sorted values.
func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[min(max(int(math.Ceil(q*float64(len(sorted))))-1, 0), len(sorted)-1)]
}

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
