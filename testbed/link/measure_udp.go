package link

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// pass sends n datagrams of size bytes at a wire rate and returns how they
// arrived and how many were sent.
func (i *initiator) pass(ctx context.Context, size, n int, rate float64) (a arrivals, sent int, err error) {
	if err := i.settle(ctx); err != nil {
		return a, 0, err
	}
	control, err := i.dial(ctx)
	if err != nil {
		return a, 0, err
	}
	defer control.Close()
	defer context.AfterFunc(ctx, func() { control.Close() })()
	// Quiet must outlast the way, or what is still under way would count as lost.
	q := question{Size: size, Quiet: 500*time.Millisecond + i.want.RTT + i.want.Jitter}
	answers := json.NewDecoder(control)
	hear := func(within time.Duration) error {
		control.SetReadDeadline(time.Now().Add(within))
		if err := answers.Decode(&a); err != nil {
			return fmt.Errorf("wait for the responder's answer: %w", err)
		}
		return nil
	}
	if err = json.NewEncoder(control).Encode(q); err == nil {
		err = hear(i.patience())
	}
	began := time.Now()
	if err == nil {
		sent, err = i.flood(ctx, size, n, rate)
	}
	if err == nil {
		err = control.CloseWrite()
	}
	if err == nil {
		err = hear(i.patience() + time.Since(began))
	}
	if err == nil && a.N == 0 {
		err = fmt.Errorf("none of %d datagrams arrived", sent)
	}
	return a, sent, err
}

// flood sends n datagrams of size bytes at the given wire rate and returns how many it could; the kernel
// cuts them from what is written (UDP GSO, udp(7)). A sender that was held up does not catch up: a burst
// would overflow the queue that it is to measure.
func (i *initiator) flood(ctx context.Context, size, n int, rate float64) (int, error) {
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
	sent, start := 0, time.Now()
	for due := 0.0; sent < n; { // due: when the next one is, since start
		if err := ctx.Err(); err != nil {
			return sent, err
		}
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
	}
	return sent, nil
}

// measureFlood offers more full segments than the link can carry and returns
// the payload rate, in bit/s, of a TCP stream of the segments that arrived.
func (i *initiator) measureFlood(ctx context.Context) (float64, error) {
	const seconds, excess = 0.5, 1.15
	perSecond := i.want.Rate / 8 / FullFrame
	n := int(max(seconds*excess*perSecond, 200))
	a, _, err := i.pass(ctx, udpPayload(i.ipv6), n, i.want.Rate*excess)
	if err != nil {
		return 0, err
	}
	if a.Span <= 0 {
		return 0, errors.New("too few datagrams arrived to tell a rate")
	}
	return float64(a.Late) / a.Span.Seconds() * 8 * float64(tcpPayload(i.ipv6)), nil
}

// measureLoss counts small datagrams, sent well below the link's rate so that no
// queue overflows, and returns the share lost and the number sent.
func (i *initiator) measureLoss(ctx context.Context) (float64, int, error) {
	const (
		size   = 64
		wire   = size + 28 + Framing
		fast   = 20000.0 // datagrams per second
		enough = 20000
	)
	rate := fast * wire * 8
	if i.want.Rate > 0 {
		rate = min(rate, i.want.Rate/2)
	}
	n := min(enough, max(500, int(rate/8/wire)))
	a, sent, err := i.pass(ctx, size, n, rate)
	if err != nil {
		return 0, 0, err
	}
	return 1 - float64(a.N)/float64(sent), sent, nil
}
