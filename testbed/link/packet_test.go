package link

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"golang.org/x/sys/unix"
)

// craft makes a super-packet as a kernel hands it to a packet socket: partial
// checksum, one header, body bytes of payload cut every gso.
type craft struct {
	v6, udp, ext, ecn bool // ext: IP options or an extension header
	gso, body         int
	flags             byte
	rng               *rand.Rand
}

func (c craft) String() string {
	return fmt.Sprintf("v6=%v udp=%v ext=%v ecn=%v gso=%d body=%d", c.v6, c.udp, c.ext, c.ecn, c.gso, c.body)
}

func (c craft) bytes() []byte {
	network := 20
	if c.v6 {
		network = 40
	}
	start := network
	if c.ext {
		start += 8
	}
	transport := 32 // TCP with timestamps
	if c.udp {
		transport = 8
	}
	b := make([]byte, headLen+start+transport+c.body)
	ip := b[headLen:]
	for i := range ip {
		ip[i] = byte(c.rng.Uint32())
	}
	l4 := ip[start:]
	proto, offset := byte(unix.IPPROTO_TCP), 16
	if c.udp {
		proto, offset = unix.IPPROTO_UDP, 6
	}
	if c.v6 {
		ip[0] = 0x60
		binary.BigEndian.PutUint16(ip[4:], uint16(len(ip)-40))
		ip[6] = proto
		if c.ext { // hop-by-hop options, padded
			ip[6] = 0
			copy(ip[40:], []byte{proto, 0, 1, 4, 0, 0, 0, 0})
		}
	} else {
		ip[0] = 0x40 | byte(start/4)
		binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
		ip[6], ip[7] = 0x40, 0 // don't fragment
		ip[9] = proto
		if c.ext {
			copy(ip[20:], []byte{1, 1, 1, 1, 1, 1, 1, 0})
		}
		ip[10], ip[11] = 0, 0
		binary.BigEndian.PutUint16(ip[10:], ^rfc1071(ip[:start]))
	}
	if c.udp {
		binary.BigEndian.PutUint16(l4[4:], uint16(len(l4)))
	} else {
		l4[12] = 8 << 4
		l4[13] = c.flags
	}
	binary.BigEndian.PutUint16(l4[offset:], rfc1071(pseudo(ip, proto, len(l4))))

	b[0] = unix.VIRTIO_NET_HDR_F_NEEDS_CSUM
	if c.body > c.gso { // else it is no super-packet
		switch {
		case c.udp:
			b[1] = unix.VIRTIO_NET_HDR_GSO_UDP_L4
		case c.v6:
			b[1] = unix.VIRTIO_NET_HDR_GSO_TCPV6
		default:
			b[1] = unix.VIRTIO_NET_HDR_GSO_TCPV4
		}
		if c.ecn && !c.udp {
			b[1] |= unix.VIRTIO_NET_HDR_GSO_ECN
		}
		binary.NativeEndian.PutUint16(b[4:], uint16(c.gso))
	}
	binary.NativeEndian.PutUint16(b[2:], uint16(min(len(ip)+Framing, 65535))) // a kernel may say more than the header
	binary.NativeEndian.PutUint16(b[6:], uint16(start+Framing))
	binary.NativeEndian.PutUint16(b[8:], uint16(offset))
	return b
}

// What follows is a second implementation of segmentation and checksums, which
// shares no code with the package: what the wire would have seen.

func rfc1071(b []byte) uint16 {
	var s uint64
	for i, x := range b {
		if i%2 == 0 {
			s += uint64(x) << 8
		} else {
			s += uint64(x)
		}
	}
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}

func pseudo(ip []byte, proto byte, length int) []byte {
	if ip[0]>>4 == 4 {
		return append(bytes.Clone(ip[12:20]), 0, proto, byte(length>>8), byte(length))
	}
	return append(bytes.Clone(ip[8:40]), 0, 0, byte(length>>8), byte(length), 0, 0, 0, proto)
}

// wireSegments segments a packet and completes all checksums.
func wireSegments(t testing.TB, b []byte) [][]byte {
	t.Helper()
	ip := b[headLen:]
	start := int(binary.NativeEndian.Uint16(b[6:])) - Framing
	offset := int(binary.NativeEndian.Uint16(b[8:]))
	if hdr := int(binary.NativeEndian.Uint16(b[2:])) - Framing; hdr > len(ip) {
		t.Fatalf("hdr_len %d of a packet of %d: the kernel refuses it", hdr, len(ip))
	}
	if v := int(binary.BigEndian.Uint16(ip[2:])); ip[0]>>4 == 4 && v != len(ip) {
		t.Fatalf("IPv4 length %d of %d", v, len(ip))
	}
	if v := int(binary.BigEndian.Uint16(ip[4:])); ip[0]>>4 == 6 && v != len(ip)-40 {
		t.Fatalf("IPv6 length %d of %d", v, len(ip)-40)
	}
	kind := b[1] &^ unix.VIRTIO_NET_HDR_GSO_ECN
	udp := offset == 6
	if udp && int(binary.BigEndian.Uint16(ip[start+4:])) != len(ip)-start {
		t.Fatalf("UDP length %d of %d", binary.BigEndian.Uint16(ip[start+4:]), len(ip)-start)
	}
	gso := int(binary.NativeEndian.Uint16(b[4:]))
	hdr := start + 8
	if !udp {
		hdr = start + int(ip[start+12]>>4)*4
	}
	if kind == unix.VIRTIO_NET_HDR_GSO_NONE {
		gso = max(len(ip)-hdr, 1)
	}
	var segs [][]byte
	for i := 0; i == 0 || hdr+i*gso < len(ip); i++ {
		body := ip[hdr+i*gso : min(hdr+(i+1)*gso, len(ip))]
		s := append(bytes.Clone(ip[:hdr]), body...)
		final := hdr+(i+1)*gso >= len(ip)
		proto := byte(unix.IPPROTO_TCP)
		l4 := s[start:]
		if udp {
			proto = unix.IPPROTO_UDP
			binary.BigEndian.PutUint16(l4[4:], uint16(len(l4)))
		} else {
			binary.BigEndian.PutUint32(l4[4:], binary.BigEndian.Uint32(l4[4:])+uint32(i*gso))
			if !final {
				l4[13] &= 0xff - 0x09 // FIN, PSH
			}
			if i > 0 && b[1]&unix.VIRTIO_NET_HDR_GSO_ECN != 0 {
				l4[13] &= 0x7f // CWR
			}
		}
		if s[0]>>4 == 4 {
			binary.BigEndian.PutUint16(s[2:], uint16(len(s)))
			binary.BigEndian.PutUint16(s[4:], binary.BigEndian.Uint16(s[4:])+uint16(i))
			s[10], s[11] = 0, 0
			binary.BigEndian.PutUint16(s[10:], ^rfc1071(s[:start]))
		} else {
			binary.BigEndian.PutUint16(s[4:], uint16(len(s)-40))
		}
		// The seed that the packet carries must be the pseudo-header's sum, or
		// the kernel would complete it to something wrong.
		whole := ip[start+offset:]
		seed := rfc1071(pseudo(ip, proto, len(ip)-start))
		if got := binary.BigEndian.Uint16(whole); got != seed {
			t.Fatalf("partial checksum %#x, want %#x", got, seed)
		}
		l4[offset], l4[offset+1] = 0, 0
		binary.BigEndian.PutUint16(l4[offset:], ^rfc1071(append(pseudo(s, proto, len(l4)), l4...)))
		if rfc1071(append(pseudo(s, proto, len(l4)), l4...)) != 0xffff {
			t.Fatal("checksum of the test itself is wrong")
		}
		segs = append(segs, s)
	}
	return segs
}

func crafts(rng *rand.Rand) (all []craft) {
	for i := range 16 {
		for _, c := range []craft{
			{gso: 1400, body: 40 * 1400, flags: 0x98},
			{gso: 1400, body: 40*1400 + 1, flags: 0x98},
			{gso: 17, body: 17*3 - 1, flags: 0x11}, // odd: segments start at odd offsets; ACK, FIN
			{gso: 1400, body: 1400, flags: 0x98},   // one segment: no super-packet
		} {
			c.v6, c.udp, c.ext, c.ecn, c.rng = i&1 != 0, i&2 != 0, i&4 != 0, i&8 != 0, rng
			all = append(all, c)
		}
	}
	return all
}

// Every way to take a run of segments out of a super-packet gives exactly the
// segments that the whole one would have put on the wire.
func TestCutIsWhatTheWireWouldSee(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range crafts(rng) {
		whole := c.bytes()
		want := wireSegments(t, whole)
		p, _, err := parse(bytes.Clone(whole))
		if err != nil || int(p.segs) != len(want) {
			t.Fatalf("%v: %d segments, want %d: %v", c, p.segs, len(want), err)
		}
		var wire int64
		for _, s := range want {
			wire += int64(len(s)) + Framing
		}
		if p.wire() != wire || p.span(0, p.segs) != wire {
			t.Fatalf("%v: %d bytes on the wire (span %d), want %d", c, p.wire(), p.span(0, p.segs), wire)
		}
		for range 30 {
			from := rng.Int32N(p.segs)
			to := from + 1 + rng.Int32N(p.segs-from)
			q := p.cut(make([]byte, p.size(from, to)), from, to)
			same(t, c, wireSegments(t, q.buf), want[from:to])
			if q.wire() != p.span(from, to) {
				t.Fatalf("%v [%d,%d): wire %d, span %d", c, from, to, q.wire(), p.span(from, to))
			}
			again, _, err := parse(q.buf)
			if err != nil || again.segs != q.segs || again.hdr != q.hdr || again.gso != q.gso {
				t.Fatalf("%v [%d,%d): parsed again: %+v, %v; was %d %d %d", c, from, to, again.segs, err, q.segs,
					q.hdr, q.gso)
			}
			// Cutting what has been cut.
			if q.segs > 1 {
				r := q.cut(make([]byte, q.size(1, q.segs)), 1, q.segs)
				same(t, c, wireSegments(t, r.buf), want[from+1:to])
			}
		}
		if !bytes.Equal(p.buf, whole) {
			t.Fatalf("%v: cut changed its source", c)
		}
		n := 1 + rng.Int32N(p.segs)
		same(t, c, wireSegments(t, p.truncate(n).buf), want[:n])
	}
}

func same(t *testing.T, c craft, got, want [][]byte) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%v: %d segments, want %d", c, len(got), len(want))
	}
	for i := range got {
		if !bytes.Equal(got[i], want[i]) {
			t.Fatalf("%v: segment %d differs:\n% x\n% x", c, i, got[i][:64], want[i][:64])
		}
	}
}

// Anything in a namespace can write anything: no packet may crash the emulator.
func FuzzParse(f *testing.F) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, c := range crafts(rng) {
		c.body = min(c.body, 3000)
		f.Add(c.bytes())
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > maxPacket {
			return
		}
		p, _, err := parse(b)
		if err != nil {
			return
		}
		if p.segs < 1 || p.wire() < int64(len(b)-headLen) {
			t.Fatalf("%d segments, %d bytes on the wire, of %d", p.segs, p.wire(), len(b))
		}
		for from := int32(0); from < p.segs; from += 1 + p.segs/7 {
			q := p.cut(make([]byte, p.size(from, p.segs)), from, p.segs)
			if q.segs != p.segs-from {
				t.Fatalf("%d segments of %d from %d", q.segs, p.segs, from)
			}
		}
		p.truncate(1)
	})
}

func TestStampsOfFrames(t *testing.T) {
	const ahead = 1_000_000
	var now int64
	clock := func() int64 { return now }
	s := stamps{ahead: ahead, now: 10e6, last: 9e6}
	for _, c := range []struct{ came, now, want int64 }{
		{9_500_000, 10e6, 9_500_000},
		{9_200_000, 10e6, 9_500_000},   // in order
		{12e6, 15e6, 12e6},             // while the thread had no processor
		{99e6, 16e6, 16e6},             // the clock on the wall was set forward
		{-99e6, 17e6, 16e6},            // and back
		{16_500_000, 18e6, 16_500_000}, // right again
	} {
		now = c.now
		if got := s.came(c.came+ahead, clock); got != c.want {
			t.Errorf("a frame of %d ns, read at %d: %d, want %d", c.came, c.now, got, c.want)
		}
	}
}
