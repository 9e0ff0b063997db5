package link

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

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
	var b [2048]byte
	i.udp.SetReadDeadline(time.Now().Add(within))
	for {
		n, err := i.udp.Read(b[:])
		now := i.now()
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return false, nil
		case err != nil:
			return false, err
		case n != pingSize:
			return false, fmt.Errorf("%d bytes came back of %d", n, pingSize)
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
