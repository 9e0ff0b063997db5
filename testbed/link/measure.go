package link

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
)

// Endpoint is an end of the link to measure; testbed.Host is one.
type Endpoint interface {
	Addr() netip.Addr
	Dial(ctx context.Context, network, address string) (net.Conn, error)
	Listen(ctx context.Context, network, address string) (net.Listener, error)
	ListenPacket(ctx context.Context, network, address string) (net.PacketConn, error)
}

// DefaultTolerance is how far a rate may be off, as a share of what was asked
// for. A round trip may be off by the same share or 1 ms, whichever is more, by
// the jitter asked for, and by the time that a datagram takes on the wire.
const DefaultTolerance = 0.05

const minRTTTolerance = time.Millisecond

// Measure measures the link between two hosts with traffic of its own: the round
// trip from 64-byte UDP datagrams (or, when it seems too long, from the kernel's
// own measurement of TCP handshakes), then the TCP payload rate from → to of a
// bulk stream (of a UDP flood where one stream cannot fill the link, because
// segments are to be lost or acknowledgements have no room), then the loss. It takes about a second; more for
// slow, long or lossy links.
//
// It fills the check's measured fields, Want…, Tolerance, OK and Why; Trial, From,
// To, Emulator and Lateness are the caller's. A link that is off is not an
// error: OK is false and Why says how. An error means that it could not be
// measured.
func Measure(ctx context.Context, from, to Endpoint, want Want, tol float64) (record.LinkCheck, error) {
	if tol <= 0 {
		tol = DefaultTolerance
	}
	ipv6 := to.Addr().Is6() && !to.Addr().Is4In6()
	c := record.LinkCheck{
		WantRTT:   want.RTT.Seconds(),
		WantRate:  TCPPayloadRate(want.Rate, ipv6) * (1 - want.Loss),
		WantLoss:  want.Loss,
		Loss:      math.NaN(),
		Lateness:  math.NaN(),
		Tolerance: tol,
	}
	rtts, err := measureRTT(ctx, from, to, want)
	if err != nil {
		return c, fmt.Errorf("link: measure the round trip %s → %s: %w", from.Addr(), to.Addr(), err)
	}
	median := quantile(rtts, 0.5)
	if median > want.RTT+rttTolerance(want, tol) {
		// Datagrams wait for this process, too, when the machine is busy. A
		// handshake does not.
		if kernel, err := handshakeRTT(ctx, from, to); err == nil {
			median = min(median, kernel)
		}
	}
	c.RTT = median.Seconds()
	c.RTTP99 = quantile(rtts, 0.99).Seconds()

	var why []error
	if off, allowed := math.Abs(c.RTT-c.WantRTT), rttTolerance(want, tol).Seconds(); off > allowed {
		why = append(why, fmt.Errorf("round trip %.3f ms, wanted %.3f ± %.3f ms", c.RTT*1e3, c.WantRTT*1e3, allowed*1e3))
	}

	c.Rate, c.Congestion, err = measureTCP(ctx, from, to, want, tol, ipv6)
	if err == nil {
		err = drain(ctx, from, to, want) // the link is to be left idle
	}
	if err == nil && want.hardForTCP() {
		c.Rate, err = measureFlood(ctx, from, to, want, ipv6)
	}
	if err != nil {
		return c, fmt.Errorf("link: measure the rate %s → %s: %w", from.Addr(), to.Addr(), err)
	}
	if want.Rate > 0 && math.Abs(c.Rate-c.WantRate) > tol*c.WantRate {
		why = append(why, fmt.Errorf("rate %.4g bit/s of payload, wanted %.4g ± %.2g %%", c.Rate, c.WantRate, tol*100))
	}

	if want.Loss > 0 {
		var n int
		if c.Loss, n, err = measureLoss(ctx, from, to, want); err != nil {
			return c, fmt.Errorf("link: measure the loss %s → %s: %w", from.Addr(), to.Addr(), err)
		}
		if off, allowed := math.Abs(c.Loss-want.Loss), lossTolerance(want.Loss, n, tol); off > allowed {
			why = append(why, fmt.Errorf("loss %.3f %%, wanted %.3f ± %.3f %% (of %d segments)", c.Loss*100, want.Loss*100, allowed*100, n))
		}
	}
	c.OK = len(why) == 0
	if !c.OK {
		c.Why = strings.ReplaceAll(errors.Join(why...).Error(), "\n", "; ")
	}
	return c, nil
}

// hardForTCP reports whether one stream may be unable to fill the link although
// the link is right: because segments are lost, or because acknowledgements are,
// or have too little room (for every two segments of 1514 bytes one of 66, and
// some reserve).
func (w Want) hardForTCP() bool {
	return w.Rate > 0 && (w.Loss > 0 || w.ReturnLoss > 0.05 || w.ReturnRate > 0 && w.Rate > 20*w.ReturnRate)
}

// rttTolerance includes what a datagram itself occupies of slow links: each way
// at most three of at least the path's rate.
func rttTolerance(want Want, tol float64) time.Duration {
	t := max(minRTTTolerance, time.Duration(tol*float64(want.RTT))) + want.Jitter
	for _, rate := range []float64{want.Rate, want.ReturnRate} {
		if rate > 0 {
			t += 3 * wireTime(pingWire, rate)
		}
	}
	return t
}

// lossTolerance allows the relative tolerance and three standard deviations of a
// share counted over n independent segments.
func lossTolerance(loss float64, n int, tol float64) float64 {
	return tol*loss + 3*math.Sqrt(loss*(1-loss)/float64(max(n, 1)))
}
