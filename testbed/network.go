package testbed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// network connects the hosts by veth pairs to a namespace of its own (the hub), which has
// no way out. There, a bridge or our emulator forwards packets between them. Switching
// between the two changes nothing inside the hosts, so servers keep listening.
type network struct {
	ipv6   bool
	hub    *os.File
	nl     *netlink.Handle
	bridge netlink.Link
}

const (
	vethName   = "eth0" // the veth's end inside a host
	bridgeName = "hub"
)

var (
	prefix4 = netip.MustParsePrefix("100.77.0.0/16") // shared address space (RFC 6598): hostd refuses 10.0.0.0/8
	prefix6 = netip.MustParsePrefix("fd77::/64")
)

// Emulated reports whether an address is of a host in a network namespace of ours.
func Emulated(a netip.Addr) bool { return prefix4.Contains(a) || prefix6.Contains(a) }

func newNetwork(ipv6 bool) (*network, error) {
	hub, err := newNamespace()
	if err != nil {
		return nil, err
	}
	n := &network{ipv6: ipv6, hub: hub}
	if n.nl, err = netlinkIn(hub); err != nil {
		return nil, errors.Join(err, hub.Close())
	}
	la := netlink.NewLinkAttrs()
	la.Name, la.Flags = bridgeName, net.FlagUp
	off := false
	if err = n.nl.LinkAdd(&netlink.Bridge{LinkAttrs: la, MulticastSnooping: &off}); err == nil {
		n.bridge, err = n.nl.LinkByName(bridgeName)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("add bridge: %w", err), n.close())
	}
	return n, nil
}

func (n *network) close() error {
	n.nl.Close()
	return n.hub.Close()
}

// netlinkIn opens a route netlink socket inside ns; afterwards it works from any thread. The
// thread that enters ns ends: in a user namespace it might not be allowed to return.
func netlinkIn(ns *os.File) (*netlink.Handle, error) {
	h, err := inNamespace(ns, func() (*netlink.Handle, error) { return netlink.NewHandle(unix.NETLINK_ROUTE) })
	if err != nil {
		return nil, fmt.Errorf("open netlink: %w", err)
	}
	return h, nil
}

// hostAddr returns the address of the host with a number.
func hostAddr(prefix netip.Prefix, index int) netip.Addr {
	b := prefix.Addr().AsSlice()
	binary.BigEndian.PutUint16(b[len(b)-2:], uint16(index))
	a, _ := netip.AddrFromSlice(b)
	return a
}

// hubPort is the name of the hub's end of a host's veth pair.
func hubPort(index int) string { return fmt.Sprintf("h%d", index) }

// macOf returns the hardware address of the host with an IP address.
func macOf(a netip.Addr) net.HardwareAddr {
	b := a.As16()
	return net.HardwareAddr{0x02, 0x77, 0, 0, b[14], b[15]}
}

// attach gives h its namespace, thread, addresses and veth pair.
func (n *network) attach(h *host, others []*host) (err error) {
	h.addrs = []netip.Addr{hostAddr(prefix4, h.index)}
	if n.ipv6 {
		h.addrs = append(h.addrs, hostAddr(prefix6, h.index))
	}
	h.addr = h.addrs[len(h.addrs)-1]
	if h.ns, err = newNamespace(); err != nil {
		return err
	}
	h.keeper = startKeeper(h.ns)
	defer func() {
		if err != nil {
			err = errors.Join(err, h.close())
		}
	}()
	if h.nl, err = netlinkIn(h.ns); err != nil {
		return err
	}
	if err := h.keeper.do(setSysctls); err != nil {
		return err
	}
	lo, err := h.nl.LinkByName("lo")
	if err == nil {
		err = h.nl.LinkSetUp(lo)
	}
	if err != nil {
		return fmt.Errorf("set lo up: %w", err)
	}
	la := netlink.NewLinkAttrs()
	la.Name, la.Flags = hubPort(h.index), net.FlagUp
	la.MasterIndex = n.bridge.Attrs().Index
	veth := &netlink.Veth{LinkAttrs: la, PeerName: vethName, PeerHardwareAddr: macOf(h.addr),
		PeerNamespace: netlink.NsFd(int(h.ns.Fd()))}
	if err := n.nl.LinkAdd(veth); err != nil {
		return fmt.Errorf("add veth: %w", err)
	}
	if h.veth, err = h.nl.LinkByName(vethName); err != nil {
		return fmt.Errorf("find %s: %w", vethName, err)
	}
	for _, a := range h.addrs {
		ipnet := &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(a.BitLen(), a.BitLen())}
		// No duplicate address detection: every address here is unique, and usable at once.
		if err := h.nl.AddrAdd(h.veth, &netlink.Addr{IPNet: ipnet, Flags: unix.IFA_F_NODAD}); err != nil {
			return fmt.Errorf("add address %s: %w", a, err)
		}
	}
	if err := h.nl.LinkSetUp(h.veth); err != nil {
		return fmt.Errorf("set %s up: %w", vethName, err)
	}
	if err := h.route(""); err != nil {
		return err
	}
	for _, o := range others {
		if err := errors.Join(h.addNeighbours(o.addrs), o.addNeighbours(h.addrs)); err != nil {
			return err
		}
	}
	return awaitUp(n.ports(h))
}

// awaitUp waits until the kernel reports both ends of a veth pair as up: until then the
// bridge drops packets.
func awaitUp(ends link.Ports) error {
	deadline := time.Now().Add(5 * time.Second)
	for _, c := range []link.Port{ends.Up, ends.Down} {
		for {
			l, err := c.NL.LinkByName(c.Device)
			if err != nil {
				return fmt.Errorf("find %s: %w", c.Device, err)
			}
			if l.Attrs().OperState == netlink.OperUp {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("%s does not come up, it is %s", c.Device, l.Attrs().OperState)
			}
			time.Sleep(time.Millisecond)
		}
	}
	return nil
}

// addNeighbours adds permanent neighbour entries for other hosts: address resolution over a slow or
// lossy link would show up as latency.
func (h *host) addNeighbours(others []netip.Addr) error {
	for _, a := range others {
		neigh := &netlink.Neigh{
			LinkIndex: h.veth.Attrs().Index, Family: nl.GetIPFamily(a.AsSlice()), State: netlink.NUD_PERMANENT,
			IP: a.AsSlice(), HardwareAddr: macOf(a),
		}
		if err := h.nl.NeighSet(neigh); err != nil {
			return fmt.Errorf("introduce %s to %s: %w", a, h.name, err)
		}
	}
	return nil
}

// ports are the two ends of a host's veth pair.
func (n *network) ports(h *host) link.Ports {
	return link.Ports{Up: link.Port{NL: h.nl, Device: vethName}, Down: link.Port{NL: n.nl, Device: hubPort(h.index)}}
}

// bridgePort attaches a host's veth to the bridge, or detaches it.
func (n *network) bridgePort(h *host, join bool) error {
	port, err := n.nl.LinkByName(hubPort(h.index))
	if err != nil {
		return err
	}
	if join {
		return n.nl.LinkSetMaster(port, n.bridge)
	}
	return n.nl.LinkSetNoMaster(port)
}

// route adds h's route to the other hosts. A congestion control given here applies to all
// of h's connections to them, even one that the namespace's sysctl may not select.
func (h *host) route(congestion string) error {
	for _, a := range h.addrs {
		p := prefix4
		if a.Is6() {
			p = prefix6
		}
		r := &netlink.Route{
			Family: nl.GetIPFamily(a.AsSlice()), LinkIndex: h.veth.Attrs().Index, Scope: netlink.SCOPE_LINK,
			Src: a.AsSlice(), Congctl: congestion,
			Dst: &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), a.BitLen())},
		}
		if err := h.nl.RouteReplace(r); err != nil {
			return fmt.Errorf("route %s: %w", p, err)
		}
	}
	return nil
}

// sysctl is one kernel setting of a namespace.
type sysctl struct{ key, value string }

// hostSysctls are set in every host's namespace, even to the kernel's default: results
// should not depend on how the machine was tuned. For TCP's buffers see [bufferSysctls].
var hostSysctls = []sysctl{
	{"net.ipv4.tcp_no_metrics_save", "1"},           // no trial inherits the last one's slow-start threshold
	{"net.ipv4.ip_local_port_range", "10000 65535"}, // fresh connections use up ports
	{"net.ipv4.tcp_tw_reuse", "1"},
	{"net.ipv4.tcp_max_syn_backlog", "8192"}, // a burst of a thousand connections at once
	{"net.core.somaxconn", "8192"},
	{"net.ipv4.conf.all.rp_filter", "0"}, // the machine's own may be strict
	{"net.ipv4.conf.default.rp_filter", "0"},
	{"net.ipv6.conf.all.accept_ra", "0"},
	{"net.ipv6.conf.default.accept_ra", "0"},
	{"net.ipv6.conf.default.router_solicitations", "0"},
}

// setSysctls runs on a host's thread. The record reads the settings back, and so shows what the kernel refused.
func setSysctls() error {
	for _, s := range slices.Concat(hostSysctls, bufferSysctls(receiveMaxMin, sendMaxMin)) { // Shape adjusts the buffers
		_ = writeSysctl(s.key, s.value)
	}
	return nil
}

// recordedSysctls are read in a host's namespace and recorded.
var recordedSysctls = strings.Fields(`
	net.ipv4.tcp_congestion_control net.ipv4.tcp_allowed_congestion_control
	net.ipv4.tcp_available_congestion_control net.ipv4.tcp_rmem net.ipv4.tcp_wmem net.ipv4.tcp_mem
	net.core.rmem_max net.core.wmem_max net.core.somaxconn net.core.default_qdisc
	net.ipv4.tcp_max_syn_backlog net.ipv4.tcp_no_metrics_save net.ipv4.tcp_slow_start_after_idle
	net.ipv4.tcp_window_scaling net.ipv4.tcp_adv_win_scale net.ipv4.tcp_sack net.ipv4.tcp_timestamps
	net.ipv4.tcp_ecn net.ipv4.tcp_fastopen net.ipv4.tcp_mtu_probing net.ipv4.tcp_notsent_lowat
	net.ipv4.tcp_limit_output_bytes net.ipv4.tcp_tw_reuse net.ipv4.ip_local_port_range`)

func sysctlPath(key string) string { return "/proc/sys/" + strings.ReplaceAll(key, ".", "/") }

func writeSysctl(key, value string) error {
	return os.WriteFile(sysctlPath(key), []byte(value), 0)
}

func readSysctl(key string) string { return readLine(sysctlPath(key)) }
