package link

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Mesh is a set of emulators on several machines that form one network; each has one host.
// A packet leaves the sender's machine when it is due at the receiver's downlink, minus the
// transit time between the machines, so no two clocks are compared. Super-packets are sent
// whole: links behave as on one machine.
type Mesh struct {
	Self  int    // number of this emulator
	Key   []byte // 32 bytes, for this mesh only: the next one numbers datagrams from 1 again
	Peers []Peer // all emulators, including this one
}

// Peer is one emulator and its host.
type Peer struct {
	Host  string
	Addrs []netip.Addr
	At    netip.AddrPort // where it receives datagrams
	MTU   int            // of the kernel's tunnels, if they are used
}

// OpenCarrier opens the UDP socket between an emulator and those of other machines, in the
// network of this process.
func OpenCarrier(at netip.Addr) (*os.File, netip.AddrPort, error) {
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(at, 0)))
	if err != nil {
		return nil, netip.AddrPort{}, fmt.Errorf("link: open the socket of emulated links: %w", err)
	}
	defer c.Close()
	enlarge(c)
	_ = setsockopt(c, unix.IPPROTO_UDP, unix.UDP_GRO, 1) // otherwise datagrams arrive one by one
	f, err := c.File()
	if err == nil {
		err = setsockopt(c, unix.IPPROTO_UDP, unix.UDP_SEGMENT, carrySize)
	}
	if err != nil {
		return nil, netip.AddrPort{}, fmt.Errorf("link: prepare the socket of emulated links: %w", err)
	}
	return f, c.LocalAddr().(*net.UDPAddr).AddrPort(), nil
}

// enlarge gives a socket buffers for several milliseconds of a fast network.
func enlarge(c any) {
	const buffer = 16 << 20 // bytes
	for _, o := range [][2]int{{unix.SO_RCVBUFFORCE, unix.SO_RCVBUF}, {unix.SO_SNDBUFFORCE, unix.SO_SNDBUF}} {
		if setsockopt(c, unix.SOL_SOCKET, o[0], buffer) != nil {
			_ = setsockopt(c, unix.SOL_SOCKET, o[1], buffer)
		}
	}
}

// Probes of the paths between machines.
const (
	probes    = 50
	probePace = 2 * time.Millisecond
	probeTime = 2 * time.Second // to wait for the last answer
)

// Probe implements [Emulator.Probe] in the emulator's process.
func (s *service) Probe(adopt bool, rtts *[]time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.loops) == 0 || s.loops[0].carrier == nil {
		return errors.New("link: the emulator is in no mesh")
	}
	l := s.loops[0]
	peers := slices.Delete(slices.Clone(l.carrier.peers), l.carrier.self, l.carrier.self+1)
	do := func(f func(p *peer)) (err error) {
		return l.do(func() {
			for _, p := range peers {
				f(p)
			}
		})
	}
	err := do(func(p *peer) { p.rtts = nil })
	for range probes {
		err = errors.Join(err, do(func(p *peer) { l.carrier.send(p, carryPing, packet{}, l.now()) }))
		time.Sleep(probePace)
	}
	for end, missing := time.Now().Add(probeTime), 1; err == nil && missing > 0 && time.Now().Before(end); {
		time.Sleep(probePace)
		missing = 0
		err = do(func(p *peer) { missing += probes - len(p.rtts) })
	}
	var silent error
	*rtts = make([]time.Duration, len(l.carrier.peers))
	err = errors.Join(err, do(func(p *peer) {
		if len(p.rtts) < probes/2 {
			silent = errors.Join(silent, fmt.Errorf("link: %d of %d datagrams came back from %s at %s: "+
				"UDP must pass between the machines, at any port", len(p.rtts), probes, p.Host, p.At))
			return
		}
		slices.Sort(p.rtts)
		rtt := quantile(p.rtts, 0.5)
		(*rtts)[p.number] = rtt
		if adopt {
			l.net.hosts[p.number].lead, p.way = int64(rtt/2), fastest{}
			l.net.setPatience()
		}
	}))
	return errors.Join(err, silent)
}

// A datagram between two emulators begins with the numbers of the sender and the receiver (2 bytes each)
// and its own number (8 bytes), which together are the AES-GCM nonce, and its length (2 bytes). The rest
// is encrypted: its kind, the number of this part and of all parts (a byte each), a zero byte, the length
// of the whole packet, when the packet was due (nanoseconds of the sender's clock), the number of segments
// sent to the receiver before it, its own number of segments, and the part itself. All parts but the last
// fill a datagram. Without the key, a datagram can neither be read nor forged. Duplicates, and datagrams
// that arrive after 64 later ones, are dropped.
const (
	carryNonce = 12
	carryOuter = carryNonce + 2
	carryInner = 28
	carryTag   = 16
	carrySize  = 1280 - 48 // every network carries this without fragments (RFC 8200, with headers)
	carryRoom  = carrySize - carryOuter - carryInner - carryTag
	carryRun   = 50 * carrySize // given to the kernel in one call, which splits it (UDP_SEGMENT)
)

// Kinds of datagrams.
const (
	carryPart = iota // of a packet
	carryPing
	carryPong
)

// carrier exchanges packets with the emulators on other machines. It belongs to one thread.
type carrier struct {
	fd    int
	self  int
	aead  cipher.AEAD
	peers []*peer
	net   *network
	most  int // bytes in one call

	plain   []byte // of a datagram
	out, in []byte
}

// peer is another emulator.
type peer struct {
	Peer
	number  int
	address unix.Sockaddr

	sent    uint64 // number of the last datagram sent to it
	carried int64  // segments sent to it
	seen    uint64 // highest datagram number received from it
	window  uint64 // which of the last 64 numbers have arrived: bit i is number seen-i
	came    int64  // segments received from it
	due     int64  // segments that it has sent, as far as known
	frames  []frame
	way     fastest // time from due to arrival

	rtts []time.Duration // of probes
}

// frame is a partly received packet.
type frame struct {
	first, last uint64 // numbers of its datagrams
	buf         []byte
	missing     int   // bytes
	segs, upTo  int64 // its segments; all segments of the peer including these
}

const windowSize = 64 // bits of peer.window

func newCarrier(fd int, m *Mesh, n *network) (*carrier, error) {
	block, err := aes.NewCipher(m.Key)
	if err != nil {
		return nil, err
	}
	c := &carrier{fd: fd, self: m.Self, net: n, most: carryRun, in: make([]byte, 1<<16)}
	if c.aead, err = cipher.NewGCM(block); err != nil {
		return nil, err
	}
	for i, at := range m.Peers {
		c.peers = append(c.peers, &peer{Peer: at, number: i, address: sockaddr(at.At)})
	}
	return c, nil
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}

// carry sends a packet that is due now to the machine of its destination.
func (c *carrier) carry(ev event) {
	c.send(c.peers[ev.dst], carryPart, ev.p, ev.at)
	c.net.pool.put(ev.p.buf)
}

// send sends a packet, or a ping without one, in as many datagrams as needed.
func (c *carrier) send(p *peer, kind byte, q packet, due int64) {
	rest := q.buf
	inner := [carryInner]byte{kind, 0, byte(max(1, (len(rest)+carryRoom-1)/carryRoom))}
	binary.BigEndian.PutUint32(inner[4:], uint32(len(rest)))
	binary.BigEndian.PutUint64(inner[8:], uint64(due))
	binary.BigEndian.PutUint64(inner[16:], uint64(p.carried))
	binary.BigEndian.PutUint32(inner[24:], uint32(q.segs))
	p.carried += int64(q.segs)
	c.out = c.out[:0]
	for ; inner[1] < inner[2]; inner[1]++ {
		part := rest[:min(carryRoom, len(rest))]
		rest = rest[len(part):]
		p.sent++
		at := len(c.out)
		c.out = binary.BigEndian.AppendUint16(c.out, uint16(c.self))
		c.out = binary.BigEndian.AppendUint16(c.out, uint16(p.number))
		c.out = binary.BigEndian.AppendUint64(c.out, p.sent)
		c.out = binary.BigEndian.AppendUint16(c.out, uint16(carryOuter+carryInner+len(part)+carryTag))
		c.plain = append(append(c.plain[:0], inner[:]...), part...)
		c.out = c.aead.Seal(c.out, c.out[at:at+carryNonce], c.plain, nil)
	}
	c.write(p, c.out)
}

// write sends datagrams, all of the same size but the last. Datagrams that the kernel does not
// accept are lost; the receiver notices by the segment numbers.
func (c *carrier) write(p *peer, all []byte) {
	for len(all) > 0 {
		run := all[:min(c.most, len(all))]
		all = all[len(run):]
		err := unix.Sendto(c.fd, run, unix.MSG_DONTWAIT, p.address)
		if err == unix.EIO && len(run) > carrySize { // the device cannot split
			_ = unix.SetsockoptInt(c.fd, unix.IPPROTO_UDP, unix.UDP_SEGMENT, 0)
			c.most = carrySize
			c.write(p, run)
		}
	}
}

// receive takes the datagrams that have arrived.
func (c *carrier) receive(clock func() int64) {
	for range receiveBatch {
		n, _, e := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(c.fd), uintptr(unsafe.Pointer(&c.in[0])),
			uintptr(len(c.in)), unix.MSG_DONTWAIT, 0, 0)
		if e != 0 {
			return
		}
		now := clock()
		for run := c.in[:n]; len(run) > carryOuter; { // from one sender (UDP_GRO)
			size := min(max(int(binary.BigEndian.Uint16(run[carryNonce:])), carryOuter), len(run))
			c.open(run[:size], now)
			run = run[size:]
		}
	}
}

// open decrypts and handles one datagram, and drops invalid ones.
func (c *carrier) open(d []byte, now int64) {
	if len(d) < carryOuter+carryInner+carryTag {
		return
	}
	from := int(binary.BigEndian.Uint16(d))
	if from >= len(c.peers) || from == c.self || int(binary.BigEndian.Uint16(d[2:])) != c.self {
		return
	}
	plain, err := c.aead.Open(d[carryOuter:carryOuter], d[:carryNonce], d[carryOuter:], nil)
	p, number := c.peers[from], binary.BigEndian.Uint64(d[4:])
	if err != nil || !p.admit(number) {
		return
	}
	due := int64(binary.BigEndian.Uint64(plain[8:]))
	switch plain[0] {
	case carryPing:
		p.way.over(now, now-due)
		c.send(p, carryPong, packet{}, due)
	case carryPong:
		p.rtts = append(p.rtts, time.Duration(now-due))
	case carryPart:
		c.join(p, number, plain, now, due)
	}
}

// admit notes a datagram's number; false: it is a duplicate, or too old to know.
func (p *peer) admit(number uint64) bool {
	if number > p.seen {
		p.window, p.seen = p.window<<(number-p.seen)|1, number
		return true
	}
	bit := uint64(1) << (p.seen - number)
	fresh := bit != 0 && p.window&bit == 0
	p.window |= bit
	return fresh
}

// join adds a part to a packet from a peer. It gives up packets whose missing parts would be too old
// to be admitted.
func (c *carrier) join(p *peer, number uint64, plain []byte, now, due int64) {
	at, part := int(plain[1])*carryRoom, plain[carryInner:]
	first := number - uint64(plain[1])
	i := slices.IndexFunc(p.frames, func(f frame) bool { return f.first == first })
	if i < 0 {
		p.frames = slices.DeleteFunc(p.frames, func(f frame) bool {
			old := f.last+windowSize <= p.seen
			if old {
				c.net.pool.put(f.buf)
			}
			return old
		})
		size, segs := int(binary.BigEndian.Uint32(plain[4:])), int64(binary.BigEndian.Uint32(plain[24:]))
		f := frame{first: first, last: first + uint64(plain[2]) - 1, buf: c.net.pool.get(size), missing: size,
			segs: segs, upTo: int64(binary.BigEndian.Uint64(plain[16:])) + segs}
		p.due = max(p.due, f.upTo)
		if f.buf == nil {
			c.net.drops[DropMemory]++
			return
		}
		i = len(p.frames)
		p.frames = append(p.frames, f)
	}
	f := &p.frames[i]
	copy(f.buf[at:], part)
	if f.missing -= len(part); f.missing == 0 {
		p.came += f.segs
		c.net.carried(f.buf, now, p.way.over(now, now-due))
		p.frames = slices.Delete(p.frames, i, i+1)
	}
}

// lost returns how many segments from the others have not arrived, except those of the latest
// packet, which may still arrive.
func (c *carrier) lost() (n int64) {
	for _, p := range c.peers {
		n += p.due - p.came
		for _, f := range p.frames {
			if f.upTo == p.due {
				n -= f.segs
			}
		}
	}
	return n
}

// fastest is the shortest recent transit time. Times taken with the clocks of two machines can only be
// compared with each other, and the clocks drift by less than one in 10,000: the minimum ages at that rate.
type fastest struct {
	at    int64 // time of the last value
	least float64
}

// over returns how much a value exceeds the smallest recent one.
func (m *fastest) over(now, v int64) int64 {
	forgotten := float64(now-m.at) / 1e4
	if m.least = min(m.least+forgotten, float64(v)); m.at == 0 {
		m.least = float64(v)
	}
	m.at = now
	return v - int64(m.least)
}
