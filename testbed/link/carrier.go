package link

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"net/netip"
	"runtime"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A datagram between two emulators is the number of the sender, that of the receiver (2 bytes
// each), and its own (8 bytes), which are the nonce of AES-GCM for the rest: what it is, which part
// of how many (a byte each), a byte of nothing, the length of the whole packet, when that was due in
// nanoseconds of the sender's clock, and the part. All parts but the last have one length. Who has no
// key can neither read nor make one; one that comes again, or after 64 later ones, is dropped.
const (
	carryNonce = 12
	carryInner = 16
	carryTag   = 16
)

// What a datagram is.
const (
	carryPart = iota // of a packet
	carryPing
	carryPong
	carryWide // a ping as large as a datagram may be
	carryWideBack
)

// carrier is an emulator's way to those on other machines. It belongs to one thread.
type carrier struct {
	fd    int
	self  int
	aead  cipher.AEAD
	peers []*peer
	net   *network
	whole bool // the kernel cuts a run of datagrams (UDP_SEGMENT)

	plain    []byte // of a datagram
	out, in  []byte
	control  [64]byte // of what is received: UDP_GRO
	incoming unix.Msghdr
	vector   unix.Iovec
}

// peer is another emulator.
type peer struct {
	Peer
	number  int
	address unix.RawSockaddrInet6 // or Inet4, in its place
	message unix.Msghdr
	vector  unix.Iovec
	control [unix.SizeofCmsghdr + 8]byte // UDP_SEGMENT

	sent   uint64  // number of the last datagram to it
	seen   uint64  // the highest number from it
	window uint64  // which of the 64 numbers up to that have come: bit i is seen-i
	frames []frame // packets that are coming, oldest first
	way    fastest // from due to arrival

	rtts []time.Duration // of probes
	wide int             // of the large ones, those that came back
}

// frame is a packet of which parts have come.
type frame struct {
	first, last uint64 // numbers of its datagrams
	buf         []byte
	missing     int   // bytes
	lost        int64 // segments that were counted as lost with it
}

const windowSize = 64 // bits of peer.window

const (
	sendMost    = 64                     // datagrams in one call (UDP_MAX_SEGMENTS)
	receiveSize = 1 << 16                // of what is received in one
	segmentSize = unix.SizeofCmsghdr + 2 // CMSG_LEN of UDP_SEGMENT
)

func newCarrier(fd int, m *Mesh, n *network) (*carrier, error) {
	block, err := aes.NewCipher(m.Key)
	if err != nil {
		return nil, err
	}
	c := &carrier{fd: fd, self: m.Self, net: n, whole: true, plain: make([]byte, 0, carryMost), in: make([]byte,
		receiveSize),
		out: make([]byte, 0, receiveSize)}
	if c.aead, err = cipher.NewGCM(block); err != nil {
		return nil, err
	}
	c.vector.Base = &c.in[0]
	c.vector.SetLen(len(c.in))
	c.incoming.Iov, c.incoming.Control = &c.vector, &c.control[0]
	c.incoming.SetIovlen(1)
	for i, at := range m.Peers {
		p := &peer{Peer: at, number: i}
		p.message.Name, p.message.Namelen = (*byte)(unsafe.Pointer(&p.address)), setAddress(&p.address, at.At)
		p.message.Iov, p.message.Control = &p.vector, &p.control[0]
		p.message.SetIovlen(1)
		c.peers = append(c.peers, p)
	}
	return c, nil
}

// setAddress writes an address as the kernel wants it and returns its length.
func setAddress(raw *unix.RawSockaddrInet6, a netip.AddrPort) uint32 {
	var port [2]byte
	binary.BigEndian.PutUint16(port[:], a.Port())
	if a.Addr().Is4() {
		four := (*unix.RawSockaddrInet4)(unsafe.Pointer(raw))
		*four = unix.RawSockaddrInet4{Family: unix.AF_INET, Port: binary.NativeEndian.Uint16(port[:]),
			Addr: a.Addr().As4()}
		return unix.SizeofSockaddrInet4
	}
	*raw = unix.RawSockaddrInet6{Family: unix.AF_INET6, Port: binary.NativeEndian.Uint16(port[:]),
		Addr: a.Addr().As16()}
	return unix.SizeofSockaddrInet6
}

// others are all peers but this emulator.
func (c *carrier) others() (all []*peer) {
	for _, p := range c.peers {
		if p.number != c.self {
			all = append(all, p)
		}
	}
	return all
}

// carry sends a packet that is due now to the machine of its host.
func (c *carrier) carry(ev event) {
	c.send(c.peers[ev.dst], carryPart, ev.p.buf, ev.at)
	c.net.pool.put(ev.p.buf)
}

// send sends a packet, or a ping with none, in as many datagrams as it needs. What the kernel
// does not take is lost, which the receiver sees by the numbers.
func (c *carrier) send(p *peer, kind byte, packet []byte, due int64) {
	room := p.Size - carryNonce - carryInner - carryTag
	inner := [carryInner]byte{kind, 0, byte(max(1, (len(packet)+room-1)/room))}
	binary.BigEndian.PutUint32(inner[4:], uint32(len(packet)))
	binary.BigEndian.PutUint64(inner[8:], uint64(due))
	out, n := c.out[:0], 0
	for ; inner[1] < inner[2]; inner[1]++ {
		part := packet[:min(room, len(packet))]
		packet = packet[len(part):]
		p.sent++
		at := len(out)
		out = binary.BigEndian.AppendUint16(out, uint16(c.self))
		out = binary.BigEndian.AppendUint16(out, uint16(p.number))
		out = binary.BigEndian.AppendUint64(out, p.sent)
		c.plain = append(append(c.plain[:0], inner[:]...), part...)
		out = c.aead.Seal(out, out[at:at+carryNonce], c.plain, nil)
		if n++; n == sendMost || len(out)+p.Size > receiveSize-64 {
			c.write(p, out)
			out, n = out[:0], 0
		}
	}
	c.write(p, out)
}

// write sends a run of datagrams, all of the peer's size but the last.
func (c *carrier) write(p *peer, run []byte) {
	for len(run) > 0 {
		part := run
		if !c.whole {
			part = run[:min(p.Size, len(run))]
		}
		run = run[len(part):]
		p.vector.Base = &part[0]
		p.vector.SetLen(len(part))
		p.message.SetControllen(0)
		if len(part) > p.Size {
			h := (*unix.Cmsghdr)(unsafe.Pointer(&p.control[0]))
			h.Level, h.Type = unix.IPPROTO_UDP, unix.UDP_SEGMENT
			h.SetLen(segmentSize)
			binary.NativeEndian.PutUint16(p.control[unix.SizeofCmsghdr:], uint16(p.Size))
			p.message.SetControllen(len(p.control))
		}
		_, _, e := unix.RawSyscall(unix.SYS_SENDMSG, uintptr(c.fd), uintptr(unsafe.Pointer(&p.message)),
			unix.MSG_DONTWAIT)
		switch {
		case e == unix.EINTR:
			run = part[:len(part)+len(run)]
		case e == unix.EMSGSIZE: // the path is narrower than it was; the next ones pass
			p.Size = carrySafe
			return
		case (e == unix.EIO || e == unix.EINVAL) && len(part) > p.Size: // the device cannot
			c.whole = false
			run = part
		}
	}
	runtime.KeepAlive(p)
}

// receive takes what has come, at most so many times, and reports whether more may be there.
func (c *carrier) receive(clock func() int64) {
	for range atOnce {
		c.incoming.SetControllen(len(c.control))
		n, _, e := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(c.fd), uintptr(unsafe.Pointer(&c.incoming)),
			unix.MSG_DONTWAIT)
		if e == unix.EINTR {
			continue
		}
		if e != 0 {
			return
		}
		now, each := clock(), int(n)
		if h := (*unix.Cmsghdr)(unsafe.Pointer(&c.control[0])); c.incoming.Controllen >= unix.SizeofCmsghdr &&
			h.Level == unix.IPPROTO_UDP && h.Type == unix.UDP_GRO {
			each = int(binary.NativeEndian.Uint32(c.control[unix.SizeofCmsghdr:]))
		}
		for b := c.in[:n]; len(b) > 0 && each > 0; {
			d := b[:min(each, len(b))]
			b = b[len(d):]
			c.open(d, now)
		}
	}
}

// open takes one datagram.
func (c *carrier) open(d []byte, now int64) {
	p, number, plain := c.unseal(d)
	if p == nil {
		return
	}
	gap, fresh := p.admit(number)
	if !fresh {
		return
	}
	size, due, part := int(binary.BigEndian.Uint32(plain[4:])), int64(binary.BigEndian.Uint64(plain[8:])),
		plain[carryInner:]
	f, i := frame{first: number, last: number, missing: size}, -1
	if plain[0] == carryPart {
		f.first -= uint64(plain[1])
		f.last = f.first + uint64(plain[2]) - 1
		i = slices.IndexFunc(p.frames, func(o frame) bool { return o.first == f.first })
	}
	switch {
	case gap > 0 && i < 0:
		f.lost = c.missed(p, number, uint64(gap), number-f.first, size)
	case gap > 0:
		c.missed(p, number, uint64(gap), 0, size)
	case gap < 0 && (i < 0 || p.frames[i].lost == 0): // it was counted as lost by itself
		c.net.drops[iCarrier].Segments -= p.segments()
	}
	switch plain[0] {
	case carryPing, carryWide:
		p.way.over(now, now-due)
		c.send(p, plain[0]+1, nil, due)
	case carryPong:
		p.rtts = append(p.rtts, time.Duration(now-due))
	case carryWideBack:
		p.wide++
	case carryPart:
		if i < 0 {
			if i = c.begin(p, f); i < 0 {
				return
			}
		}
		at := int(number-p.frames[i].first) * len(part)
		if number == f.last {
			at = size - len(part)
		}
		c.join(p, i, part, at, now, due)
	}
}

// unseal is the content of a datagram, its number and its sender; nil: it is none of ours.
func (c *carrier) unseal(d []byte) (p *peer, number uint64, plain []byte) {
	if len(d) < carryNonce+carryInner+carryTag {
		return nil, 0, nil
	}
	from := int(binary.BigEndian.Uint16(d))
	if from >= len(c.peers) || from == c.self || int(binary.BigEndian.Uint16(d[2:])) != c.self {
		return nil, 0, nil
	}
	sealed := d[carryNonce:]
	plain, err := c.aead.Open(sealed[:0], d[:carryNonce], sealed, nil)
	if err != nil {
		return nil, 0, nil
	}
	return c.peers[from], binary.BigEndian.Uint64(d[4:]), plain
}

// admit notes a datagram's number: how many are missing right before it, or -1 for one that was missing;
// not fresh is one that has come before, or may have.
func (p *peer) admit(number uint64) (gap int64, fresh bool) {
	if number > p.seen {
		ahead := number - p.seen
		p.window, p.seen = p.window<<ahead|1, number
		return int64(ahead - 1), true
	}
	bit := uint64(1) << (p.seen - number)
	if bit == 0 || p.window&bit != 0 {
		return 0, false
	}
	p.window |= bit
	return -1, true
}

// missed counts what the gap of datagrams before a number costs unless they are late: the packet that was
// coming, that of which so many parts before this one are missing, whose segments it returns, and what was between.
func (c *carrier) missed(p *peer, number, gap, parts uint64, size int) (head int64) {
	begin, between, lost := number-gap, gap, int64(0)
	for i := range p.frames {
		f := &p.frames[i]
		if f.last < begin {
			continue
		}
		between -= min(between, min(f.last, number-1)-begin+1)
		if f.lost == 0 {
			f.lost = segmentsIn(len(f.buf))
			lost += f.lost
		}
	}
	if parts > 0 {
		head = segmentsIn(size)
		between -= min(between, parts)
	}
	c.net.drops[iCarrier].Segments += lost + head + int64(between)*p.segments()
	return head
}

// segmentsIn is about how many segments a packet of so many bytes has.
func segmentsIn(size int) int64 { return int64(size/MTU) + 1 }

// segments is how many a datagram of which nothing is known may have carried.
func (p *peer) segments() int64 { return max(1, int64(p.Size/MTU)) }

// begin begins a packet and gives up those of which no part is taken any more; -1: there is no memory.
func (c *carrier) begin(p *peer, f frame) int {
	p.frames = slices.DeleteFunc(p.frames, func(o frame) bool {
		old := o.last+windowSize <= p.seen
		if old {
			c.net.pool.put(o.buf)
		}
		return old
	})
	if f.missing > maxPacket {
		return -1
	}
	if f.buf = c.net.pool.get(f.missing); f.buf == nil {
		c.net.drops[iMemory].add(1, int64(f.missing))
		return -1
	}
	p.frames = append(p.frames, f)
	return len(p.frames) - 1
}

// join adds a part to a packet that is coming from a peer.
func (c *carrier) join(p *peer, i int, part []byte, at int, now, due int64) {
	f := &p.frames[i]
	if at < 0 || at+len(part) > len(f.buf) || len(part) > f.missing {
		return
	}
	copy(f.buf[at:], part)
	if f.missing -= len(part); f.missing == 0 {
		c.net.drops[iCarrier].Segments -= f.lost // all parts came, some late
		c.net.carried(f.buf, now, p.way.over(now, now-due))
		p.frames = slices.Delete(p.frames, i, i+1)
	}
}

// ping sends probe i to all peers, and with every other one as large a datagram as may be.
func (c *carrier) ping(i int, now int64) {
	for _, p := range c.others() {
		c.send(p, carryPing, nil, now)
		if i%2 == 0 { // not with the last, whose number says whether a large one was lost
			c.send(p, carryWide, padding[:p.Size-carryNonce-carryInner-carryTag], now)
		}
	}
}

var padding [carryMost]byte

// fastest is the least time on the way of late. Times between the clocks of two machines have nothing but
// their differences, and these drift apart: in 10 s by less than a millisecond.
type fastest struct {
	since      int64 // when now's began
	last, this int64
}

const fastestFor = 5e9 // ns

// over is how much more a value is than the smallest of the last 5 to 10 s.
func (m *fastest) over(now, v int64) int64 {
	if past := now - m.since; past >= fastestFor || m.since == 0 {
		m.last, m.this = m.this, v
		if past >= 2*fastestFor || m.since == 0 {
			m.last = v
		}
		m.since = now
	}
	m.this = min(m.this, v)
	return v - min(m.last, m.this)
}

// forget drops the round trips measured before.
func (c *carrier) forget() {
	for _, p := range c.peers {
		p.rtts, p.wide = nil, 0
	}
}
