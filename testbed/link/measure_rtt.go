package link

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
)

const (
	pings    = 100
	pingSize = 64 // bytes of payload
	pingWire = pingSize + 8 + 40 + Framing
)

// pinger sends datagrams from one host that another sends back.
type pinger struct {
	echo net.PacketConn
	conn net.Conn
	base time.Time
}

func newPinger(ctx context.Context, from, to Endpoint) (*pinger, error) {
	echo, conn, err := udpPair(ctx, from, to)
	if err != nil {
		return nil, err
	}
	go func() {
		b := make([]byte, 2048)
		for {
			n, peer, err := echo.ReadFrom(b)
			if err != nil {
				return // closed
			}
			echo.WriteTo(b[:n], peer)
		}
	}()
	return &pinger{echo, conn, time.Now()}, nil
}

func (p *pinger) close() {
	p.conn.Close()
	p.echo.Close()
}

// send sends a datagram that says when.
func (p *pinger) send() error {
	var b [pingSize]byte
	binary.BigEndian.PutUint64(b[:], uint64(time.Since(p.base)))
	_, err := p.conn.Write(b[:])
	return err
}

// receive returns the round trip of the next datagram that is back, and when that
// was sent.
func (p *pinger) receive() (rtt, sent time.Duration, err error) {
	var b [2048]byte
	n, err := p.conn.Read(b[:])
	now := time.Since(p.base)
	if err != nil {
		return 0, 0, err
	}
	if n != pingSize {
		return 0, 0, fmt.Errorf("%d bytes came back of %d", n, pingSize)
	}
	sent = time.Duration(binary.BigEndian.Uint64(b[:]))
	return now - sent, sent, nil
}

// measureRTT sends at a steady pace, so that it takes one round trip and pings ×
// the pace, not pings round trips. The round trips come back sorted; lost
// datagrams are left out.
func measureRTT(ctx context.Context, from, to Endpoint, want Want) ([]time.Duration, error) {
	pace := time.Millisecond
	if want.Rate > 0 { // load the link to at most a tenth
		pace = max(pace, wireTime(10*pingWire, want.Rate))
	}
	n := min(pings, max(10, int(2*time.Second/pace)))

	p, err := newPinger(ctx, from, to)
	if err != nil {
		return nil, err
	}
	defer p.close()
	if err := p.settle(ctx, want); err != nil {
		return nil, err
	}
	first := time.Since(p.base)
	p.conn.SetReadDeadline(time.Now().Add(time.Duration(n)*pace + 2*(want.RTT+want.Jitter) + 10*time.Second))
	defer context.AfterFunc(ctx, func() { p.conn.SetReadDeadline(time.Now()) })()
	fail := make(chan error, 1)
	go func() {
		for range n {
			time.Sleep(pace)
			if err := p.send(); err != nil {
				fail <- err
				p.conn.SetReadDeadline(time.Now())
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
		p.conn.SetReadDeadline(time.Now().Add(2*(want.RTT+want.Jitter) + margin))
	}()
	var rtts []time.Duration
	for len(rtts) < n {
		rtt, sent, err := p.receive()
		if err != nil {
			break
		}
		if sent >= first {
			rtts = append(rtts, rtt)
		}
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
func handshakeRTT(ctx context.Context, from, to Endpoint) (time.Duration, error) {
	var rtts []time.Duration
	for range 5 {
		a, b, err := tcpPair(ctx, from, to)
		if err != nil {
			return 0, err
		}
		info, err := tcpInfo(a)
		a.Close()
		b.Close()
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
func (p *pinger) settle(ctx context.Context, want Want) error {
	stop := time.Now().Add(10*time.Second + 10*(want.RTT+want.Jitter))
	if d, ok := ctx.Deadline(); ok && d.Before(stop) {
		stop = d
	}
	again := want.RTT + want.Jitter + 50*time.Millisecond
	for time.Now().Before(stop) && ctx.Err() == nil {
		if err := p.send(); err != nil {
			return err
		}
		p.conn.SetReadDeadline(time.Now().Add(again))
		if rtt, _, err := p.receive(); err == nil && rtt <= again {
			return nil
		}
		again = min(again*2, time.Second+again)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return fmt.Errorf("no datagram came back within %s", record.Span(time.Since(stop.Add(-10*time.Second-10*(want.RTT+want.Jitter)))))
}

// drain waits until what an earlier measurement left in the queues is gone.
func drain(ctx context.Context, from, to Endpoint, want Want) error {
	p, err := newPinger(ctx, from, to)
	if err != nil {
		return err
	}
	defer p.close()
	return p.settle(ctx, want)
}

// udpPair is a socket of to's and one of from's connected to it.
func udpPair(ctx context.Context, from, to Endpoint) (net.PacketConn, net.Conn, error) {
	at, err := to.ListenPacket(ctx, "udp", net.JoinHostPort(to.Addr().String(), "0"))
	if err != nil {
		return nil, nil, err
	}
	conn, err := from.Dial(ctx, "udp", at.LocalAddr().String())
	if err != nil {
		at.Close()
		return nil, nil, err
	}
	return at, conn, nil
}

// wireTime is how long bytes occupy a link.
func wireTime(bytes int64, rate float64) time.Duration {
	return time.Duration(math.Ceil(float64(bytes) * 8e9 / rate))
}

// quantile is the value at rank ⌈q·n⌉ of sorted values.
func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[min(max(int(math.Ceil(q*float64(len(sorted))))-1, 0), len(sorted)-1)]
}
