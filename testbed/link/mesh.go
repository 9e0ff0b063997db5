package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Mesh is emulators on several machines that make one network; each has one host. A packet
// leaves its sender's machine when it is due at the receiver's downlink, less the time that the
// way between the machines takes, so no two clocks are compared. Super-packets are carried
// whole: links are the same as on one machine.
type Mesh struct {
	Self  int    // number of this emulator
	Key   []byte // of 32 bytes, for this mesh alone: datagrams are numbered from 1 again in the next
	Peers []Peer // all emulators, this one among them
}

// Peer is one emulator and its host.
type Peer struct {
	Host  string
	Addrs []netip.Addr
	At    netip.AddrPort // where it receives datagrams
	Size  int            // of datagrams to it, at most; set by NewMesh
}

// OpenCarrier opens the UDP socket by which an emulator reaches those of other machines, in
// the network of this process.
func OpenCarrier(ctx context.Context, at netip.Addr) (*os.File, netip.AddrPort, error) {
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		e := c.Control(func(fd uintptr) { err = prepareCarrier(int(fd), at.Is6()) })
		if e != nil {
			return e
		}
		return err
	}}
	c, err := config.ListenPacket(ctx, "udp", netip.AddrPortFrom(at, 0).String())
	if err != nil {
		return nil, netip.AddrPort{}, fmt.Errorf("link: open the socket of emulated links: %w", err)
	}
	defer c.Close()
	f, err := c.(*net.UDPConn).File()
	if err != nil {
		return nil, netip.AddrPort{}, fmt.Errorf("link: open the socket of emulated links: %w", err)
	}
	return f, c.LocalAddr().(*net.UDPAddr).AddrPort(), nil
}

func prepareCarrier(fd int, ipv6 bool) error {
	const buffer = 16 << 20 // bytes: milliseconds of a fast network
	for _, o := range [][2]int{{unix.SO_RCVBUFFORCE, unix.SO_RCVBUF}, {unix.SO_SNDBUFFORCE, unix.SO_SNDBUF}} {
		if unix.SetsockoptInt(fd, unix.SOL_SOCKET, o[0], buffer) != nil {
			_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, o[1], buffer)
		}
	}
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_GRO, 1) // without it they arrive one by one
	if ipv6 {
		return unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_DO)
	}
	return unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO)
}

// carrySafe is what every network carries in a datagram without fragments (RFC 8200: 1280
// bytes with headers); carryMost is for those with large frames.
const (
	carrySafe = 1280 - 48
	carryMost = 9000 - 48
)

// carrySize is how large a datagram to an address may be, as far as the kernel knows now.
func carrySize(to netip.AddrPort) int {
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
	if err != nil {
		return carrySafe
	}
	defer c.Close()
	mtu, headers := 0, 28
	level, option := unix.IPPROTO_IP, unix.IP_MTU
	if to.Addr().Is6() {
		level, option, headers = unix.IPPROTO_IPV6, unix.IPV6_MTU, 48
	}
	if raw, err := c.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { mtu, _ = unix.GetsockoptInt(int(fd), level, option) })
	}
	return min(max(mtu-headers, carrySafe), carryMost)
}

// Probes of the ways between machines.
const (
	probes    = 50
	probePace = 2 * time.Millisecond
	probeTime = 2 * time.Second // after the last, for its answer
)

// Probe measures the round trips to the other emulators of the mesh, by their numbers; adopt
// takes half of each off the delay of packets from now on.
func (e *Emulator) Probe(ctx context.Context, adopt bool) (rtts []time.Duration, err error) {
	err = e.call(ctx, "Probe", adopt, &rtts)
	return rtts, err
}

// Probe does so in the emulator's process.
func (s *service) Probe(adopt bool, rtts *[]time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.loops) == 0 || s.loops[0].carrier == nil {
		return errors.New("link: the emulator is in no mesh")
	}
	l := s.loops[0]
	peers := l.carrier.others()
	err := l.do(func() { l.carrier.forget() })
	for i := 0; i < probes && err == nil; i++ {
		err = l.do(func() { l.carrier.ping(i, l.now()) })
		time.Sleep(probePace)
	}
	for end, missing := time.Now().Add(probeTime), 1; missing > 0 && err == nil && time.Now().Before(end); {
		time.Sleep(probePace)
		missing = 0
		err = l.do(func() {
			for _, p := range peers {
				missing += probes - len(p.rtts) + probes/2 - p.wide
			}
		})
	}
	if err != nil {
		return err
	}
	var silent error
	*rtts = make([]time.Duration, len(l.carrier.peers))
	err = l.do(func() {
		for _, p := range peers {
			rtt, err := p.measured()
			if silent = errors.Join(silent, err); err == nil && adopt {
				l.net.hosts[p.number].lead = int64(rtt / 2)
			}
			(*rtts)[p.number] = rtt
		}
		l.net.setPatience()
	})
	return errors.Join(err, silent)
}

// measured is the round trip to a peer by the probes that have come back. A way that swallows large
// datagrams gets small ones from now on.
func (p *peer) measured() (time.Duration, error) {
	if len(p.rtts) < probes/2 {
		return 0, fmt.Errorf("link: %d of %d datagrams came back from %s at %s: "+
			"UDP must pass between the machines, at any port",
			len(p.rtts), probes, p.Host, p.At)
	}
	if p.wide < probes/4 { // of half the probes
		p.Size = carrySafe
	}
	slices.Sort(p.rtts)
	return quantile(p.rtts, 0.5), nil
}
