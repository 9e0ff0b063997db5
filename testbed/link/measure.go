package link

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net"
	"net/netip"
	"strings"
	"time"

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
	median, allowed := quantile(rtts, 0.5), RTTTolerance(want, tol)
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

// RTTTolerance includes the time that a datagram takes on slow links: in each direction
// at most three links of at least the path's rate.
func RTTTolerance(want Want, tol float64) time.Duration {
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
