package testbed

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/plimsoll-project/plimsoll/testbed/link"
)

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
	err := atOnce(len(rtts), func(i int) (err error) {
		p := s.mesh.Peers[i]
		if i == s.mesh.Self {
			return nil
		}
		if rtts[i], err = link.RoundTrip(ctx, s.machineNetwork(t), p.At); err != nil {
			return fmt.Errorf("testbed: reach %s at %s: %w: UDP must pass between the machines, at any port", p.Host,
				p.At, err)
		}
		return nil
	})
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
