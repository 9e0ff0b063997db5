package link

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"math"
	mathrand "math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// carriers are those of two emulators of this process, at an address, and what arrives at the second.
func carriers(t *testing.T, local netip.Addr, keys ...string) (a, b *carrier, arrived func() [][]byte) {
	t.Helper()
	var files [2]*os.File
	m := Mesh{}
	for i := range files {
		f, at, err := OpenCarrier(local)
		must(t, err)
		t.Cleanup(func() { f.Close() })
		files[i] = f
		m.Peers = append(m.Peers, Peer{Host: hostName(i), Addrs: []netip.Addr{hostAddr(i)}, At: at})
	}
	var all [2]*carrier
	for i := range all {
		n := newNetwork(1, &pool{limit: 1 << 20})
		n.clock = func() int64 { return 0 }
		for k, p := range m.Peers {
			n.hosts[n.add(p.Host, p.Addrs)].away = k != i
		}
		m.Self, m.Key = i, []byte(keys[i])
		c, err := newCarrier(int(files[i].Fd()), &m, n)
		must(t, err)
		all[i] = c
	}
	return all[0], all[1], func() (got [][]byte) {
		time.Sleep(20 * time.Millisecond)
		n := all[1].net
		n.deliver = func(due []event) {
			for _, ev := range due {
				got = append(got, bytes.Clone(ev.p.buf))
			}
		}
		for range 4 {
			all[1].receive(func() int64 { return 0 })
		}
		n.advance(0)
		return got
	}
}

// packetTo is a packet of so many segments to the second.
func packetTo(segs int) packet {
	b := craft{gso: 1448, body: 1448 * segs, flags: 0x10, rng: mathrand.New(mathrand.NewPCG(1, 1))}.bytes()
	to := hostAddr(1).As4()
	copy(b[headLen+16:], to[:])
	return packet{buf: b, segs: int32(segs)}
}

var loopback4, loopback6 = netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback()

const carrierKey = "0123456789abcdef0123456789abcdef"

// Packets of all sizes arrive as they were, in one piece; what others send, or send again, never does.
func TestCarrierOfIPv4(t *testing.T) { testCarrier(t, loopback4) }
func TestCarrierOfIPv6(t *testing.T) { testCarrier(t, loopback6) }

func testCarrier(t *testing.T, local netip.Addr) {
	a, b, arrived := carriers(t, local, carrierKey, carrierKey)
	for _, most := range []int{carryRun, carrySize} {
		if a.most = most; most == carrySize {
			must(t, unix.SetsockoptInt(a.fd, unix.IPPROTO_UDP, unix.UDP_SEGMENT, 0))
		}
		for _, segs := range []int{1, 2, 7, 44} {
			want := packetTo(segs)
			a.send(a.peers[1], carryPart, want, 0)
			if got := arrived(); len(got) != 1 || !bytes.Equal(got[0], want.buf) {
				t.Errorf("%d segments, %d bytes in a call: %d packets arrived", segs, most, len(got))
			}
		}
	}
	// Strangers: junk, another key, and what was heard on the way.
	stranger, err := net.Dial("udp", b.peers[1].At.String())
	must(t, err)
	defer stranger.Close()
	junk := make([]byte, 300)
	rand.Read(junk[12:])
	stranger.Write(junk)
	a.send(a.peers[1], carryPart, packetTo(1), 0)
	heard := bytes.Clone(a.out)
	if got := arrived(); len(got) != 1 {
		t.Errorf("%d packets arrived", len(got))
	}
	seen := b.peers[0].seen
	stranger.Write(heard[:carrySize])
	if got := arrived(); len(got) != 0 || b.peers[0].seen != seen {
		t.Errorf("%d packets that were heard on the way arrived", len(got))
	}
	c, _, _ := carriers(t, local, "another key that is just as long", carrierKey)
	a.aead = c.aead
	a.send(a.peers[1], carryPart, packetTo(3), 0)
	if got := arrived(); len(got) != 0 || b.peers[0].seen != seen {
		t.Errorf("%d packets with another key arrived", len(got))
	}
}

// datagrams are those of a packet of so many segments to the second, which are not sent.
func (c *carrier) datagrams(p packet) (all [][]byte) {
	fd := c.fd
	c.fd = -1
	defer func() { c.fd = fd }()
	c.send(c.peers[1], carryPart, p, 0)
	return slices.Collect(slices.Chunk(bytes.Clone(c.out), carrySize))
}

// Of a packet all segments are lost with any datagram; datagrams that are late, but not by much, are not lost.
func TestCarrierOrder(t *testing.T) {
	a, b, arrived := carriers(t, loopback4, carrierKey, carrierKey)
	for _, c := range []struct {
		name          string
		order         []int // of the datagrams of three packets: of 5, 1 and 4 segments
		packets, lost int
	}{
		{"in order", []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}, 3, 0},
		{"neighbours change places", []int{1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12}, 3, 0},
		{"backwards", []int{13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0}, 3, 0},
		{"a whole packet is late", []int{7, 8, 9, 10, 11, 12, 13, 0, 1, 2, 3, 4, 5, 6}, 3, 0},
		{"each comes twice", []int{0, 0, 1, 1, 2, 3, 3, 4, 5, 6, 6, 7, 7, 8, 8, 9, 10, 11, 12, 13, 13, 0}, 3, 0},
		{"one is lost in the middle", []int{0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}, 2, 5},
		{"the first is lost", []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}, 2, 5},
		{"the end of one to the begin of another", []int{0, 1, 2, 3, 10, 11, 12, 13}, 0, 10},
		{"two of three packets", []int{9, 10, 11, 12, 13}, 1, 6},
	} {
		before := b.lost()
		var all [][]byte
		want := []packet{packetTo(5), packetTo(1), packetTo(4)}
		for _, p := range want {
			all = append(all, a.datagrams(p)...)
		}
		if len(all) != 14 {
			t.Fatalf("%d datagrams", len(all))
		}
		for _, i := range c.order {
			b.open(bytes.Clone(all[i]), 0)
		}
		got := arrived()
		for _, p := range got {
			if !slices.ContainsFunc(want, func(w packet) bool { return bytes.Equal(w.buf, p) }) {
				t.Errorf("%s: another packet arrived", c.name)
			}
		}
		for _, d := range a.datagrams(packetTo(1)) { // after which the others are not the latest
			b.open(d, 0)
		}
		arrived()
		if lost := b.lost() - before; len(got) != c.packets || lost != int64(c.lost) {
			t.Errorf("%s: %d packets arrived, %d segments lost; want %d and %d", c.name, len(got), lost, c.packets,
				c.lost)
		}
	}
	for range 2 * windowSize { // after which nothing is waited for
		b.open(a.datagrams(packetTo(2))[0], 0)
	}
	if n := len(b.peers[0].frames); n > windowSize+1 {
		t.Errorf("%d packets wait for more", n)
	}
}

// The least time on the way is that of the last seconds: clocks drift apart.
func TestFastest(t *testing.T) {
	var m fastest
	for s := int64(1); s < 1000; s++ {
		drift := s * 50e3 // ns: 50 ppm
		if late := m.over(s*1e9, -7e12+drift+300e3); late > 600e3 {
			t.Fatalf("after %d s the clocks' drift counts as %d ns", s, late)
		}
		if late := m.over(s*1e9+1, -7e12+drift+2300e3); late < 2000e3 || late > 2600e3 {
			t.Fatalf("after %d s 2 ms are measured as %d ns", s, late)
		}
	}
}

// meshLab is machines joined by a network of known properties, with an emulator on each.
type meshLab struct {
	*lab      // the machines, and what is between them
	hosts     []*labHost
	emulators []*Emulator
}

func newMeshLab(t *testing.T, between Params) *meshLab {
	t.Helper()
	names := []string{"m0", "m1", "m2"}
	m := &meshLab{lab: newLab(t, names...)}
	m.shape(t, symmetric(between, names...))
	mesh := Mesh{Key: []byte(carrierKey)}
	var sockets []*os.File
	var hubs []*hub
	var devices []Device
	for i, name := range names {
		hubs = append(hubs, newHub(t))
		h, d := hubs[i].attach(t, string(rune('a'+i)), i+1)
		d.Addrs = d.Addrs[:1]
		m.hosts, devices = append(m.hosts, h), append(devices, d)
		at := m.lab.hosts[name]
		must(t, InNamespace(int(at.ns), func() error {
			f, addr, err := OpenCarrier(at.Addr())
			sockets = append(sockets, f)
			mesh.Peers = append(mesh.Peers, Peer{Host: h.name, Addrs: []netip.Addr{h.v4}, At: addr})
			return err
		}))
	}
	for i := range m.hosts {
		mesh.Self = i
		must(t, InNamespace(int(m.lab.hosts[names[i]].ns), func() error {
			e, err := New(t.Context(), Exec(os.Args[0]), Options{Seed: 7, Mesh: &mesh}, int(hubs[i].ns), sockets[i],
				devices[i])
			m.emulators = append(m.emulators, e)
			return err
		}))
		t.Cleanup(func() { m.emulators[i].Close(context.Background()) })
	}
	return m
}

func (m *meshLab) reshape(t testing.TB, top Topology) (rtts []time.Duration) {
	t.Helper()
	for i, e := range m.emulators {
		r, err := e.Probe(t.Context(), true)
		must(t, err)
		must(t, e.Shape(t.Context(), top))
		if i == 0 {
			rtts = r
		}
	}
	return rtts
}

func (m *meshLab) stats(t testing.TB) Stats {
	t.Helper()
	sum := Stats{Drops: Drops{}, Hosts: map[string]HostStats{}}
	for _, e := range m.emulators {
		s, err := e.Stats(t.Context())
		must(t, err)
		sum = sum.Merge(s)
	}
	return sum
}

// Links between machines do what the same links on one machine do, whatever is between.
func TestMesh(t *testing.T) {
	m := newMeshLab(t, Params{Delay: 2 * time.Millisecond})
	names := []string{"a", "b", "c"}
	base := m.reshape(t, Topology{})
	for i, rtt := range base[1:] {
		if rtt < 4*time.Millisecond || rtt > 8*time.Millisecond {
			t.Errorf("round trip to %s: %v, want 4 ms", names[i+1], rtt)
		}
	}
	for _, p := range []Params{
		{Rate: 50e6, Delay: 5 * time.Millisecond}, {Rate: 10e6, Delay: 8 * time.Millisecond, Loss: 0.02},
	} {
		t.Run(fmt.Sprint(p), func(t *testing.T) {
			top := symmetric(p, names...)
			m.reshape(t, top)
			try(t, func() error {
				c := m.hosts[0].measureTo(t, m.hosts[2], top.Want("a", "c"))
				t.Logf("round trip %.2f ms, rate %.4g (want %.4g), loss %.4f", c.RTT*1e3, c.Rate, c.WantRate, c.Loss)
				want := 2 * p.Delay.Seconds()
				if most := 2 * want; c.RTT < want-1e-3 || c.RTT > most {
					return fmt.Errorf("round trip %.2f ms, want %.2f to %.2f ms", c.RTT*1e3, want*1e3, most*1e3)
				}
				if p.Loss > 0 && math.Abs(c.Loss-p.Loss) > 0.005 {
					return fmt.Errorf("loss %.4f, want %.4f", c.Loss, p.Loss)
				}
				return nearRate(t, "rate", c.Rate, c.WantRate)
			})
		})
	}
	top := symmetric(Params{Rate: 100e6, Delay: 5 * time.Millisecond}, names...)
	m.reshape(t, top)
	before := m.stats(t)
	if rate := transfer(t, m.hosts[1], m.hosts[2], 8<<20); rate > 100e6 {
		t.Errorf("8 MiB pass at %.3g bit/s", rate)
	}
	s := m.stats(t).Since(before)
	up, down := s.Hosts["b"].Sent, s.Hosts["c"].Received
	gone := up.Segments - down.Segments - s.Drops[DropUp] - s.Drops[DropDown]
	if up.Bytes < 8<<20 || max(gone, -gone) > 20 { // few are on their way when emulators are asked one after the other
		t.Errorf("sent %+v, received %+v, drops %v", up, down, s.Drops)
	}
	t.Logf("lateness %v (99th percentile), drops %v, CPU %v for 8 MiB", s.Lateness.Quantile(0.99), s.Drops, s.CPU)

	// What the network between the machines loses makes results void.
	m.shape(t, symmetric(Params{Delay: 2 * time.Millisecond, Loss: 0.05}, "m0", "m1", "m2"))
	before = m.stats(t)
	_, err := m.hosts[0].initiateTo(t, m.hosts[1], Want{Loss: 0.1, ReturnLoss: 0.1}).measureRTT()
	must(t, err)
	if s := m.stats(t).Since(before); s.Drops[DropCarrier] == 0 || s.Trouble(time.Hour) == "" {
		t.Errorf("drops %v, %q", s.Drops, s.Trouble(time.Hour))
	}
	// And so does what it delays.
	try(t, func() error {
		m.shape(t, symmetric(Params{Delay: 2 * time.Millisecond}, "m0", "m1", "m2"))
		m.hosts[0].handshakeTo(t, m.hosts[1])
		m.shape(t, symmetric(Params{Delay: 20 * time.Millisecond}, "m0", "m1", "m2"))
		before := m.stats(t)
		rtt := m.hosts[0].handshakeTo(t, m.hosts[1])
		if late := m.stats(t).Since(before).Lateness.Quantile(0.5); rtt < 40*time.Millisecond ||
			late < 10*time.Millisecond {
			return fmt.Errorf("round trip %v and packets %v late, over a network that is 36 ms slower", rtt, late)
		}
		return nil
	})
}
