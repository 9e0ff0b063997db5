package link

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"sync"

	"golang.org/x/sys/unix"
)

// vnetLen is the length of struct virtio_net_hdr, which precedes every frame on a packet
// socket with PACKET_VNET_HDR:
//
//	0 flags  1 gso_type  2 hdr_len  4 gso_size  6 csum_start  8 csum_offset
//
// in native byte order. headLen includes the Ethernet header; maxPacket is the size of the
// largest frame.
const (
	vnetLen   = 10
	headLen   = vnetLen + Framing
	maxPacket = headLen + 40 + 65536
)

// packet is an IP packet of one segment, or a super-packet: segs segments into which the
// kernel will split it, with a common header of hdr bytes, and gso bytes of payload in
// each but the last.
type packet struct {
	buf  []byte // virtio header, Ethernet header and IP packet
	hdr  int32
	gso  int32
	segs int32
}

func (p packet) ip() []byte { return p.buf[headLen:] }

// wire returns the bytes that the packet's segments occupy on the wire.
func (p packet) wire() int64 { return p.span(0, p.segs) }

var errMalformed = errors.New("malformed packet")

// parse reads the layout and the destination of a packet from a host. It trusts no length
// in it: any program in a namespace may have sent it.
func parse(buf []byte) (p packet, dst netip.Addr, err error) {
	if len(buf) < headLen+20 {
		return p, dst, errMalformed
	}
	p = packet{buf: buf, hdr: int32(len(buf) - headLen), segs: 1}
	ip := p.ip()
	var network int // length of the smallest network header
	switch ip[0] >> 4 {
	case 4:
		network = int(ip[0]&15) * 4
		if network < 20 || network > len(ip) {
			return p, dst, errMalformed
		}
		dst = netip.AddrFrom4([4]byte(ip[16:20]))
	case 6:
		network = 40
		if len(ip) < network {
			return p, dst, errMalformed
		}
		dst = netip.AddrFrom16([16]byte(ip[24:40]))
	default:
		return p, dst, errMalformed
	}
	kind := buf[1] &^ unix.VIRTIO_NET_HDR_GSO_ECN
	if kind == unix.VIRTIO_NET_HDR_GSO_NONE {
		return p, dst, nil
	}
	gso := int(binary.NativeEndian.Uint16(buf[4:]))
	start := int(binary.NativeEndian.Uint16(buf[6:])) - Framing // of the transport header
	offset := int(binary.NativeEndian.Uint16(buf[8:]))
	var hdr, sum int
	switch kind {
	case unix.VIRTIO_NET_HDR_GSO_TCPV4, unix.VIRTIO_NET_HDR_GSO_TCPV6:
		if start < network || start+20 > len(ip) {
			return p, dst, errMalformed
		}
		hdr, sum = start+int(ip[start+12]>>4)*4, 16
		if hdr < start+20 {
			return p, dst, errMalformed
		}
	case unix.VIRTIO_NET_HDR_GSO_UDP_L4:
		hdr, sum = start+8, 6
	default:
		return p, dst, errMalformed
	}
	// Segmentation needs a partial checksum, and so do we.
	if gso == 0 || start < network || hdr >= len(ip) || offset != sum || buf[0]&unix.VIRTIO_NET_HDR_F_NEEDS_CSUM == 0 {
		return p, dst, errMalformed
	}
	p.hdr, p.gso = int32(hdr), int32(gso)
	p.segs = int32((len(ip) - hdr + gso - 1) / gso)
	return p, dst, nil
}

// size returns the length of the buffer for segments [from, to).
func (p packet) size(from, to int32) int {
	return headLen + int(p.hdr) + int(min(to*p.gso, int32(len(p.ip()))-p.hdr)-from*p.gso)
}

// span returns the wire size of segments [from, to).
func (p packet) span(from, to int32) int64 {
	return int64(p.size(from, to)-headLen) + int64(to-from-1)*int64(p.hdr) + int64(to-from)*Framing
}

// cut writes segments [from, to) as a separate packet into buf, which must have
// p.size(from, to) bytes and not overlap p's.
func (p packet) cut(buf []byte, from, to int32) packet {
	if from == 0 && to == p.segs {
		copy(buf, p.buf)
		return packet{buf, p.hdr, p.gso, p.segs}
	}
	body := int(p.hdr) + headLen
	copy(buf, p.buf[:body])
	copy(buf[body:], p.buf[body+int(from*p.gso):])
	return p.repair(buf, from, to)
}

// truncate keeps the first n segments, in place.
func (p packet) truncate(n int32) packet {
	if n >= p.segs {
		return p
	}
	return p.repair(p.buf[:p.size(0, n)], 0, n)
}

// repair adapts the header in buf, copied from p, to segments [from, to), as the kernel's
// segmentation would (tcp_gso_segment, __udp_gso_segment and inet_gso_segment).
func (p packet) repair(buf []byte, from, to int32) packet {
	ip := buf[headLen:]
	start := int(binary.NativeEndian.Uint16(buf[6:])) - Framing
	offset := int(binary.NativeEndian.Uint16(buf[8:]))
	l4 := ip[start:]
	proto := byte(unix.IPPROTO_TCP)
	if buf[1]&^unix.VIRTIO_NET_HDR_GSO_ECN == unix.VIRTIO_NET_HDR_GSO_UDP_L4 {
		proto = unix.IPPROTO_UDP
		binary.BigEndian.PutUint16(l4[4:], uint16(len(l4)))
	} else {
		seq := binary.BigEndian.Uint32(l4[4:])
		binary.BigEndian.PutUint32(l4[4:], seq+uint32(from)*uint32(p.gso))
		if to < p.segs {
			l4[13] &^= tcpFIN | tcpPSH // these belong to the last segment
		}
		if from > 0 && buf[1]&unix.VIRTIO_NET_HDR_GSO_ECN != 0 {
			l4[13] &^= tcpCWR // and this to the first
			buf[1] &^= unix.VIRTIO_NET_HDR_GSO_ECN
		}
	}
	var addrs []byte
	if ip[0]>>4 == 4 {
		addrs = ip[12:20]
		binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
		binary.BigEndian.PutUint16(ip[4:], binary.BigEndian.Uint16(ip[4:])+uint16(from))
		ip[10], ip[11] = 0, 0
		binary.BigEndian.PutUint16(ip[10:], ^fold(sum(0, ip[:int(ip[0]&15)*4])))
	} else {
		addrs = ip[8:40]
		binary.BigEndian.PutUint16(ip[4:], uint16(len(ip)-40))
	}
	// The partial checksum covers the pseudo-header; segmentation adds the rest.
	pseudo := sum(uint32(proto)+uint32(len(l4)), addrs)
	binary.BigEndian.PutUint16(l4[offset:], fold(pseudo))

	binary.NativeEndian.PutUint16(buf[2:], uint16(p.hdr)+Framing)
	q := packet{buf, p.hdr, p.gso, to - from}
	if q.segs == 1 {
		buf[1] = unix.VIRTIO_NET_HDR_GSO_NONE
		buf[4], buf[5] = 0, 0
		q.hdr, q.gso = int32(len(ip)), 0
	}
	return q
}

const (
	tcpFIN = 0x01
	tcpPSH = 0x08
	tcpCWR = 0x80
)

// sum adds the 16-bit words of b, whose length is even, to s; fold turns it into the ones' complement sum (RFC 1071).
func sum(s uint32, b []byte) uint32 {
	for ; len(b) >= 2; b = b[2:] {
		s += uint32(b[0])<<8 | uint32(b[1])
	}
	return s
}

func fold(s uint32) uint16 {
	for s>>16 != 0 {
		s = s&0xffff + s>>16
	}
	return uint16(s)
}

// pool provides packet buffers of a few sizes and limits their total. They are outside
// the garbage-collected heap, so that a gigabyte in flight costs no collection. All
// threads share it: one thread receives a packet, another sends it and frees the buffer.
type pool struct {
	limit int64

	mu   sync.Mutex
	held int64 // bytes of capacity handed out
	free [len(bufferSizes)][][]byte
}

var bufferSizes = [...]int{512, 2048, 8192, 32768, maxPacket} // multiples of 8

const chunk = 1 << 20

// get returns a buffer of n bytes, or nil if that would exceed the limit or the kernel
// has no memory.
func (p *pool) get(n int) []byte {
	class := 0
	for n > bufferSizes[class] {
		class++
	}
	size := bufferSizes[class]
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held+int64(size) > p.limit {
		return nil
	}
	if len(p.free[class]) == 0 {
		mem, err := unix.Mmap(-1, 0, chunk, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			return nil
		}
		for ; len(mem) >= size; mem = mem[size:] {
			p.free[class] = append(p.free[class], mem[:size:size])
		}
	}
	last := len(p.free[class]) - 1
	b := p.free[class][last]
	p.free[class] = p.free[class][:last]
	p.held += int64(size)
	return b[:n]
}

// put frees a buffer, even if it has been shortened at its end.
func (p *pool) put(b []byte) {
	for class, size := range bufferSizes {
		if cap(b) == size {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.free[class] = append(p.free[class], b)
			p.held -= int64(size)
			return
		}
	}
}
