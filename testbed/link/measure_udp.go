package link

import (
	"encoding/binary"
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

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
