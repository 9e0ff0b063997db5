package link

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

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
	peers := l.carrier.others()
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
