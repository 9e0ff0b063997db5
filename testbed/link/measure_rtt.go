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
	count     int           // of other datagrams that had come before it
	came      time.Duration // by the responder's clock
}

// ping sends a ping.
func (i *initiator) ping() error {
	var b [pingSize]byte
	binary.BigEndian.PutUint16(b[:], pingSize)
	binary.BigEndian.PutUint64(b[stampAt:], uint64(i.now()))
	_, err := i.udp.Write(b[:])
	return err
}

// echo returns the next ping that is back and was not sent before a moment: what an earlier measurement
// left under way is passed over.
func (i *initiator) echo(since time.Duration) (e echo, err error) {
	var b [2048]byte
	for {
		n, err := i.udp.Read(b[:])
		now := i.now()
		if err != nil {
			return e, err
		}
		if n != pingSize {
			return e, fmt.Errorf("%d bytes came back of %d", n, pingSize)
		}
		if sent := time.Duration(binary.BigEndian.Uint64(b[stampAt:])); sent >= since {
			count, came := binary.BigEndian.Uint64(b[countAt:]), binary.BigEndian.Uint64(b[cameAt:])
			return echo{sent, now - sent, int(count), time.Duration(came)}, nil
		}
	}
}

// measureRTT sends at a steady pace, so that it takes one round trip and pings ×
// the pace, not pings round trips. The round trips come back sorted; lost
// datagrams are left out.
func (i *initiator) measureRTT() ([]time.Duration, error) {
	want := i.want
	pace := time.Millisecond
	if want.Rate > 0 { // load the link to at most a tenth
		pace = max(pace, wireTime(10*pingWire, want.Rate))
	}
	n := min(pings, max(10, int(2*time.Second/pace)))
	// What is not back in the end is lost; the margin is for a machine so busy that nothing of ours runs
	// for a while. It will be used up every time where segments are lost.
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
		i.udp.SetReadDeadline(time.Now().Add(within))
		for len(rtts) < n {
			e, err := i.echo(first)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				break
			}
			if err != nil {
				return nil, err
			}
			rtts = append(rtts, e.rtt)
		}
	}
	if back := float64(n) * (1 - want.Loss) * (1 - want.ReturnLoss); len(rtts) == 0 || float64(len(rtts)) < back/2 {
		return nil, fmt.Errorf("%d of %d datagrams came back", len(rtts), n)
	}
	slices.Sort(rtts)
	return rtts, nil
}

// RoundTrip is the median round trip to a [Responder] over a way of which nothing is known: of datagrams or, as
// these wait for processes on a busy machine, of handshakes.
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

// handshakeRTT is the median round trip of a few TCP handshakes. Both ends are
// the kernel's, and so is the clock (tcpi_rtt).
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

// settle waits until the link is idle: a ping that is back was behind everything that waited in the
// queues. It warms up routes and neighbours, too. That ping is the last one of those that have come back
// and were not sent before a moment.
func (i *initiator) settle(since time.Duration) (all []echo, err error) {
	began, stop := i.now(), time.Now().Add(i.patience())
	again := i.want.RTT + i.want.Jitter + 50*time.Millisecond
	for ; time.Now().Before(stop); again = min(again*2, time.Second+again) {
		if err := i.ping(); err != nil {
			return nil, err
		}
		i.udp.SetReadDeadline(time.Now().Add(again))
		for {
			e, err := i.echo(since)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				break
			}
			if err != nil {
				return nil, err
			}
			if all = append(all, e); e.sent >= began && e.rtt <= again {
				return all, nil
			}
		}
	}
	return nil, fmt.Errorf("no datagram came back within %s", words.Duration(i.patience()))
}

// wireTime is how long bytes occupy a link.
func wireTime(bytes int64, rate float64) time.Duration {
	return time.Duration(math.Ceil(float64(bytes) * 8e9 / rate))
}

// quantile is the value at rank ⌈q·n⌉ of sorted values.
func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[min(max(int(math.Ceil(q*float64(len(sorted))))-1, 0), len(sorted)-1)]
}
