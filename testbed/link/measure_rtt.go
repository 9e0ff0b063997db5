package link

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

const (
	pings    = 100
	pingSize = 64 // bytes of payload
	pingWire = pingSize + 8 + 40 + Framing
)

// send sends a datagram that says when.
func (i *initiator) send() error {
	var b [pingSize]byte
	binary.BigEndian.PutUint64(b[:], uint64(time.Since(i.base)))
	_, err := i.udp.Write(b[:])
	return err
}

// receive returns the round trip of the next datagram that is back and was not sent
// before a moment: what an earlier measurement left under way is passed over.
func (i *initiator) receive(since time.Duration) (rtt time.Duration, err error) {
	var b [2048]byte
	for {
		n, err := i.udp.Read(b[:])
		now := time.Since(i.base)
		if err != nil {
			return 0, err
		}
		if n != pingSize {
			return 0, fmt.Errorf("%d bytes came back of %d", n, pingSize)
		}
		if sent := time.Duration(binary.BigEndian.Uint64(b[:])); sent >= since {
			return now - sent, nil
		}
	}
}

// measureRTT sends at a steady pace, so that it takes one round trip and pings ×
// the pace, not pings round trips. The round trips come back sorted; lost
// datagrams are left out.
func (i *initiator) measureRTT(ctx context.Context) ([]time.Duration, error) {
	want := i.want
	pace := time.Millisecond
	if want.Rate > 0 { // load the link to at most a tenth
		pace = max(pace, wireTime(10*pingWire, want.Rate))
	}
	n := min(pings, max(10, int(2*time.Second/pace)))

	if err := i.settle(ctx); err != nil {
		return nil, err
	}
	first := time.Since(i.base)
	i.udp.SetReadDeadline(time.Now().Add(time.Duration(n)*pace + 2*(want.RTT+want.Jitter) + 10*time.Second))
	defer context.AfterFunc(ctx, func() { i.udp.SetReadDeadline(time.Now()) })()
	fail := make(chan error, 1)
	go func() {
		for range n {
			time.Sleep(pace)
			if err := i.send(); err != nil {
				fail <- err
				i.udp.SetReadDeadline(time.Now())
				return
			}
		}
		fail <- nil
		// What is not back then is lost; the margin is for a machine so busy that
		// nothing of ours runs for a while.
		margin := 2 * time.Second
		if want.Loss > 0 || want.ReturnLoss > 0 {
			margin /= 4 // it will be used up every time
		}
		i.udp.SetReadDeadline(time.Now().Add(2*(want.RTT+want.Jitter) + margin))
	}()
	var rtts []time.Duration
	for len(rtts) < n {
		rtt, err := i.receive(first)
		if err != nil {
			break
		}
		rtts = append(rtts, rtt)
	}
	if err := <-fail; err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if back := float64(n) * (1 - want.Loss) * (1 - want.ReturnLoss); len(rtts) == 0 || float64(len(rtts)) < back/2 {
		return nil, fmt.Errorf("%d of %d datagrams came back", len(rtts), n)
	}
	slices.Sort(rtts)
	return rtts, nil
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

// settle waits until the link is idle: a datagram that is back was behind
// everything that waited in the queues. It warms up routes and neighbours, too.
func (i *initiator) settle(ctx context.Context) error {
	began := time.Now()
	stop := began.Add(i.patience())
	if d, ok := ctx.Deadline(); ok && d.Before(stop) {
		stop = d
	}
	again := i.want.RTT + i.want.Jitter + 50*time.Millisecond
	for time.Now().Before(stop) && ctx.Err() == nil {
		if err := i.send(); err != nil {
			return err
		}
		i.udp.SetReadDeadline(time.Now().Add(again))
		rtt, err := i.receive(began.Sub(i.base))
		if err == nil && rtt <= again {
			return nil
		}
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		again = min(again*2, time.Second+again)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return fmt.Errorf("no datagram came back within %s", words.Duration(stop.Sub(began)))
}

// wireTime is how long bytes occupy a link.
func wireTime(bytes int64, rate float64) time.Duration {
	return time.Duration(math.Ceil(float64(bytes) * 8e9 / rate))
}

// quantile is the value at rank ⌈q·n⌉ of sorted values.
func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[min(max(int(math.Ceil(q*float64(len(sorted))))-1, 0), len(sorted)-1)]
}
