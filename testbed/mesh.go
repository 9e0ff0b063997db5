package testbed

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// A mesh emulates links between machines. Each machine has a testbed with one host in a
// namespace, and either our emulator, which exchanges packets with the others over UDP, or
// netem and the kernel's tunnels. The engine's testbed (Options.Mesh) has the client's host
// and controls the others with MeshCall. A machine has one host for the nodes of all systems.

// MeshCall asks one machine to do one of these for the links.
type MeshCall struct {
	Open       bool          // open the socket of its emulator
	Join       *link.Options // start its emulator
	Probe      bool          // measure the round trips to the other machines
	SetTransit bool          // with Probe: subtract them from the delays of packets from now on
	Shape      *ShapeSpec    // like [Testbed.Shape]
	Change     bool          // with Shape: like [Testbed.Reshape]
	Stats      bool          // return the statistics of its emulator
}

// MeshAnswer is the answer to a MeshCall.
type MeshAnswer struct {
	At    netip.AddrPort  // of the socket
	MTU   int             // of the tunnels, where netem emulates
	RTTs  []time.Duration // to all machines, by their numbers in the mesh
	Stats link.Stats

	Running bool // our emulator is running
}

// MeshAddr returns the address of the host on a machine of a mesh, by the machine's number from 1.
func MeshAddr(number int) netip.Addr { return hostAddr(prefix4, number) }

// MeshHost adds the host of this machine to a mesh, or, if its number is 0, its own network without a mesh; at is the
// address of the machine.
func (t *Testbed) MeshHost(name string, number int, at netip.Addr) (Host, error) {
	if number == 0 {
		return t.OwnNetwork(name, at)
	}
	if t.net == nil {
		return nil, fmt.Errorf("testbed: add host %s: %s", name, t.Mode().Why)
	}
	t.shape.machine = at
	if t.byKernel() {
		if err := link.Works(link.TBFDiscipline); err != nil {
			return nil, fmt.Errorf("testbed: add host %s: %w (%s)", name, err, tunnelNeeds)
		}
	}
	return t.LocalHost(name, number)
}

// Mesh executes a call on this machine.
func (t *Testbed) Mesh(ctx context.Context, q MeshCall) (a MeshAnswer, err error) {
	s := &t.shape
	switch {
	case q.Shape != nil:
		return a, t.applyHere(ctx, *q.Shape, q.Change)
	case q.Stats:
		if a, err = t.stats(ctx); err != nil {
			return a, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case q.Open:
		return s.open(ctx, t)
	case q.Join != nil:
		if err = s.end(ctx); err == nil {
			s.mesh, s.active, s.spec = q.Join.Mesh, t.mode.Emulator, ShapeSpec{Seed: q.Join.Seed}
			err = s.join(ctx, t)
		}
		if err != nil {
			s.mesh = nil
		}
	case s.mesh == nil:
		err = errNotJoined
	case q.Probe && t.byKernel():
		a.RTTs, err = s.probeTunnels(ctx, t, q.SetTransit)
	case q.Probe:
		a.RTTs, err = s.own.Probe(ctx, q.SetTransit)
	}
	return a, err
}

var errNotJoined = errors.New("the link emulator does not run: the machines are not joined")

// open opens the socket through which other machines reach this machine's emulator or, where
// the kernel emulates, probe the path to it.
func (s *shaper) open(ctx context.Context, t *Testbed) (a MeshAnswer, err error) {
	switch {
	case s.at.IsValid():
	case t.byKernel():
		s.at, s.stopEcho, err = link.Respond(ctx, s.machineNetwork(t))
	default:
		s.carrier, s.at, err = link.OpenCarrier(s.machine)
	}
	if a.At = s.at; err == nil && t.byKernel() {
		a.MTU, err = tunnelMTU(s.machine)
	}
	return a, err
}

// join starts the emulator of the mesh, or creates its tunnels, between this machine's host
// and the others.
func (s *shaper) join(ctx context.Context, t *Testbed) error {
	t.mu.Lock()
	hosts := slices.Clone(t.hosts)
	t.mu.Unlock()
	for i, p := range s.mesh.Peers {
		if i == s.mesh.Self {
			continue
		}
		if err := hosts[0].addNeighbours(p.Addrs); err != nil {
			return err
		}
	}
	if t.byKernel() {
		if err := s.joinTunnels(t, hosts[0]); err != nil {
			return err
		}
	}
	return s.emulate(ctx, t, hosts)
}

// mesh is a mesh as the engine's testbed sees it.
type mesh struct {
	mu     sync.Mutex
	joined []member
	base   []MeshAnswer // round trips between the machines that are subtracted from the delays of packets
}

// member is one machine of a mesh.
type member struct {
	host netip.Addr
	name string // one name of the host
	call func(context.Context, MeshCall) (MeshAnswer, error)
}

// members returns the machines that have hosts now, ours first.
func (t *Testbed) members() (all []member) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, h := range t.hosts {
		all = append(all, member{h.addr, h.name, t.Mesh})
	}
	for _, h := range slices.Backward(t.remote) { // the latest at an address
		known := slices.ContainsFunc(all, func(m member) bool { return m.host == h.Addr() })
		if !known && h.Lost() == nil {
			all = append(all, member{h.Addr(), h.Name(), h.Mesh})
		}
	}
	slices.SortFunc(all, func(a, b member) int { return a.host.Compare(b.host) })
	return all
}

// each calls all machines at once.
func each(ctx context.Context, all []member, q func(i int) MeshCall) ([]MeshAnswer, error) {
	answers := make([]MeshAnswer, len(all))
	return answers, errors.Join(AtOnce(len(all), func(i int) (err error) {
		answers[i], err = all[i].call(ctx, q(i))
		return err
	})...)
}

// join starts the emulators of all machines as one mesh.
func (m *mesh) join(ctx context.Context, all []member, seed uint64) error {
	m.joined, m.base = nil, nil
	opened, err := each(ctx, all, func(int) MeshCall { return MeshCall{Open: true} })
	if err != nil {
		return err
	}
	key := make([]byte, 32)
	rand.Read(key)
	var peers []link.Peer
	for i, a := range opened {
		peers = append(peers, link.Peer{Host: all[i].host.String(), Addrs: []netip.Addr{all[i].host}, At: a.At,
			MTU: a.MTU})
	}
	_, err = each(ctx, all, func(i int) MeshCall {
		return MeshCall{Join: &link.Options{Seed: seed, Mesh: &link.Mesh{Self: i, Key: key, Peers: peers}}}
	})
	if err == nil {
		m.joined = all
	}
	return err
}

// applyMesh is apply on all machines.
func (t *Testbed) applyMesh(ctx context.Context, spec ShapeSpec, change bool) error {
	m := &t.mesh
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.joined
	if change && all == nil {
		return errNotJoined
	}
	if !change {
		all = t.members()
		same := slices.EqualFunc(all, m.joined, func(a, b member) bool { return a.host == b.host })
		if same {
			_, err := each(ctx, all, func(int) MeshCall { return MeshCall{Stats: true} })
			same = err == nil
		}
		if !same {
			if err := m.join(ctx, all, spec.Seed); err != nil {
				return err
			}
		}
		if err := m.adopt(ctx, spec); err != nil {
			return err
		}
	}
	_, err := each(ctx, all, func(int) MeshCall { return MeshCall{Shape: &spec, Change: change} })
	return err
}

// adopt measures the round trips between the machines and subtracts them from the delays of packets.
func (m *mesh) adopt(ctx context.Context, s ShapeSpec) (err error) {
	m.base = nil
	m.base, err = m.probe(ctx, s)
	return err
}

// probe measures the round trips between all machines, and a second time if they do not suit
// the links: a busy moment of a machine can lengthen one.
func (m *mesh) probe(ctx context.Context, s ShapeSpec) (now []MeshAnswer, err error) {
	for range 2 {
		now, err = each(ctx, m.joined, func(int) MeshCall { return MeshCall{Probe: true, SetTransit: m.base == nil} })
		if err != nil {
			return nil, err
		}
		if err = s.right(m.joined, m.base, now); err == nil {
			return now, nil
		}
	}
	return nil, err
}

// ProbeMesh measures the round trips between the machines of a mesh again: routes may change between trials.
func (t *Testbed) ProbeMesh(ctx context.Context) error {
	spec := t.shapedNow()
	t.mesh.mu.Lock()
	defer t.mesh.mu.Unlock()
	if err := t.mesh.adopt(ctx, spec); err != nil {
		return fmt.Errorf("testbed: measure the ways between machines: %w", err)
	}
	return nil
}

// MeshMoved says which round trip between machines has changed since the last ProbeMesh or
// Shape by more than packets may be late; empty: none.
func (t *Testbed) MeshMoved(ctx context.Context) (trouble string) {
	spec, m := t.shapedNow(), &t.mesh
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.base == nil {
		return ""
	}
	if _, err := m.probe(ctx, spec); err != nil && ctx.Err() == nil {
		return err.Error()
	}
	return ""
}

func (t *Testbed) shapedNow() ShapeSpec {
	t.shape.mu.Lock()
	defer t.shape.mu.Unlock()
	return t.shape.spec
}

// right returns an error if a link's round trip is shorter than the one between the machines or,
// with a base, if a round trip differs from it. Only links between shaped hosts count or, if one
// host is shaped, its links to the others.
func (s ShapeSpec) right(all []member, base, now []MeshAnswer) error {
	named := 0
	for _, m := range all {
		if s.names(m.host.String()) {
			named++
		}
	}
	for i, a := range all {
		for k, b := range all[:i] {
			from, to := a.host.String(), b.host.String()
			if n, o := s.names(from), s.names(to); !(n && o || named == 1 && (n || o)) {
				continue
			}
			w, way := s.Want(from, to), now[i].RTTs[k]
			if base == nil && way > w.LongestWay() {
				return fmt.Errorf("the experiment's link between %s and %s has a round trip of %s (less jitter), and "+
					"that between their machines is %s: raise link.delay, or use machines that are closer",
					a.name, b.name, words.Duration(w.RTT-w.Jitter), words.Duration(way))
			}
			if base != nil && (way-base[i].RTTs[k]).Abs() > w.LatenessLimit() {
				return fmt.Errorf("the round trip between the machines of %s and %s changed from %s to %s", a.name,
					b.name, words.Duration(base[i].RTTs[k]), words.Duration(way))
			}
		}
	}
	return nil
}

// Where netem emulates the links of a mesh, packets travel from hub to hub through VXLAN tunnels, one per other
// machine. A tunnel's socket is in the network that connects the machines, and its device in the hub. We hold the
// only descriptor of the hub, so the kernel removes both however we end. Other traffic between the machines, such as
// the engine's calls, uses no tunnel and is not shaped.

// tunnelPort is the UDP port of tunnels on all machines. Cluster networks use 4789 and 8472 themselves, and some
// refuse them to pods.
const tunnelPort = 7701

// tunnel connects the hub to that of another machine of a mesh. Its bridge port is isolated, because the bridges
// form loops: packets from one machine must reach only the host.
func (n *network) tunnel(m *link.Mesh, to, mtu int) (link.Tunnel, error) {
	self, peer := m.Peers[m.Self], m.Peers[to]
	la := netlink.NewLinkAttrs()
	la.Name, la.MTU, la.Namespace = fmt.Sprintf("t%d", to), mtu, netlink.NsFd(int(n.hub.Fd()))
	// The id is unique to this pair and mesh, so that packets of an earlier mesh are dropped.
	pair := uint32(min(m.Self, to)*len(m.Peers) + max(m.Self, to))
	vx := &netlink.Vxlan{LinkAttrs: la, VxlanId: int((binary.BigEndian.Uint32(m.Key) + pair) % (1 << 24)),
		SrcAddr: self.At.Addr().AsSlice(), Group: peer.At.Addr().AsSlice(), Port: tunnelPort}
	if err := netlink.LinkAdd(vx); err != nil {
		return link.Tunnel{}, fmt.Errorf("make a VXLAN device: %w", err)
	}
	x := link.Tunnel{Host: peer.Host, Port: link.Port{NL: n.nl, Device: la.Name}}
	dev, err := n.nl.LinkByName(la.Name)
	if err != nil {
		return x, err
	}
	there := &netlink.Neigh{LinkIndex: dev.Attrs().Index, Family: unix.AF_BRIDGE, Flags: netlink.NTF_MASTER,
		State: netlink.NUD_NOARP, HardwareAddr: macOf(peer.Addrs[0])} // static; permanent is the bridge itself
	err = errors.Join(n.nl.LinkSetMaster(dev, n.bridge), n.nl.LinkSetIsolated(dev, true), n.nl.NeighSet(there),
		n.nl.LinkSetUp(dev)) // takes the UDP port
	if err != nil {
		err = fmt.Errorf("join it to the hub at UDP port %d: %w", tunnelPort, err)
	}
	return x, err
}

// byKernel reports whether netem emulates the links of a mesh.
func (t *Testbed) byKernel() bool { return t.mode.Emulator == link.NetemDiscipline }

// tunnelNeeds is the hint about what a machine needs for tunnels and shaping by the kernel.
const tunnelNeeds = "netem between machines needs root with CAP_NET_ADMIN and CAP_SYS_ADMIN, not in a user " +
	"namespace, and modules of the kernel: modprobe vxlan sch_tbf; or say --set link.emulator=user"

// machineNetwork is the unshaped network that connects the machines.
func (s *shaper) machineNetwork(t *Testbed) *host {
	return &host{t: t, name: "machine", addr: s.machine}
}

// tunnelMTU is the largest packet, at most Ethernet's, that leaves the machine unfragmented through a tunnel.
func tunnelMTU(at netip.Addr) (int, error) {
	head := 20 + 8 + 8 + 14 // what a tunnel adds to a packet: IP, UDP, VXLAN and Ethernet headers
	if at.Is6() {
		head += 20
	}
	all, err := net.Interfaces()
	for _, i := range all {
		addrs, _ := i.Addrs()
		if slices.ContainsFunc(addrs, func(a net.Addr) bool { return a.(*net.IPNet).IP.Equal(at.AsSlice()) }) {
			return min(link.MTU, i.MTU-head), nil
		}
	}
	return link.MTU - head, err
}

// joinTunnels replaces the tunnels of an earlier mesh. It lowers the host's MTU to what all tunnels carry
// unfragmented.
func (s *shaper) joinTunnels(t *Testbed, h *host) error {
	for _, x := range s.tunnels {
		old := &netlink.Vxlan{LinkAttrs: netlink.LinkAttrs{Name: x.Port.Device}}
		if err := t.net.nl.LinkDel(old); err != nil {
			return err
		}
	}
	s.tunnels = nil
	mtu := link.MTU
	for _, p := range s.mesh.Peers {
		mtu = min(mtu, p.MTU)
	}
	port, err := t.net.nl.LinkByName(hubPort(h.index))
	if err == nil {
		err = errors.Join(h.nl.LinkSetMTU(h.veth, mtu), t.net.nl.LinkSetMTU(port, mtu))
	}
	if err != nil {
		return err
	}
	for i, p := range s.mesh.Peers {
		if i == s.mesh.Self {
			continue
		}
		x, err := t.net.tunnel(s.mesh, i, mtu)
		if x.Port.NL != nil {
			s.tunnels = append(s.tunnels, x)
		}
		if err != nil {
			return fmt.Errorf("testbed: tunnel to %s at %s: %w (%s)", p.Host, p.At.Addr(), err, tunnelNeeds)
		}
	}
	return nil
}

// probeTunnels measures the round trips to the other machines, outside the tunnels.
func (s *shaper) probeTunnels(ctx context.Context, t *Testbed, adopt bool) ([]time.Duration, error) {
	rtts := make([]time.Duration, len(s.mesh.Peers))
	err := errors.Join(AtOnce(len(rtts), func(i int) (err error) {
		p := s.mesh.Peers[i]
		if i == s.mesh.Self {
			return nil
		}
		if rtts[i], err = link.RoundTrip(ctx, s.machineNetwork(t), p.At); err != nil {
			return fmt.Errorf("testbed: reach %s at %s: %w: UDP must pass between the machines, at any port", p.Host,
				p.At, err)
		}
		return nil
	})...)
	if err != nil || !adopt {
		return rtts, err
	}
	for k, way := range slices.Delete(slices.Clone(rtts), s.mesh.Self, s.mesh.Self+1) {
		s.tunnels[k].Way = way / 2
	}
	return rtts, s.shapeByKernel(link.NetemDiscipline, s.devices, s.spec.Topology)
}

// shapeByKernel lets the kernel shape hosts; in a mesh, this machine's host and its tunnels.
func (s *shaper) shapeByKernel(discipline string, hosts []link.Device, t link.Topology) error {
	if s.mesh != nil && s.active == link.NetemDiscipline {
		return link.ShapeTunnels(hosts[0], s.tunnels, t)
	}
	return link.ShapeKernel(discipline, hosts, t)
}
