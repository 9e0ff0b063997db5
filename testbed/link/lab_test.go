package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/plimsoll-project/plimsoll/record"
)

// The test binary is the emulator process too.
func TestMain(m *testing.M) {
	if os.Getenv("LINK_TEST_EMULATOR") != "" {
		if err := Serve(context.Background(), os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// lab is hosts, each a network namespace, joined by an emulator.
type lab struct {
	emulator *Emulator
	hosts    map[string]*labHost
}

// labHost is one; it can be either end of a measurement.
type labHost struct {
	name   string
	ns     netns.NsHandle
	v4, v6 netip.Addr
	ipv6   bool // use v6 as the address
}

func needRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to make network namespaces")
	}
	if err := Works(Own); err != nil {
		t.Skip(err)
	}
}

func newLab(t testing.TB, names ...string) *lab {
	t.Helper()
	return newLabWith(t, Options{Seed: 7, Threads: 2}, names...)
}

func newLabWith(t testing.TB, o Options, names ...string) *lab {
	t.Helper()
	needRoot(t)
	t.Setenv("LINK_TEST_EMULATOR", "1")
	h := newHub(t)
	l := &lab{hosts: map[string]*labHost{}}
	var devices []Device
	for i, name := range names {
		host, d := h.attach(t, name, i+1)
		l.hosts[name] = host
		devices = append(devices, d)
	}
	e, err := New(t.Context(), Exec(os.Args[0]), o, int(h.ns), nil, devices...)
	must(t, err)
	l.emulator = e
	t.Cleanup(func() { e.Close(context.Background()) })
	return l
}

// hub is a namespace with the hub's ends of hosts' cables.
type hub struct {
	ns netns.NsHandle
	nl *netlink.Handle
}

func newHub(t testing.TB) *hub {
	t.Helper()
	h := &hub{ns: newNamespace(t)}
	h.nl = handle(t, h.ns)
	return h
}

func handle(t testing.TB, ns netns.NsHandle) *netlink.Handle {
	t.Helper()
	nl, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	must(t, err)
	t.Cleanup(nl.Close)
	return nl
}

const mostHosts = 20 // of a lab

// attach adds a host, which has a number from 1 and knows the hardware addresses of all others.
func (h *hub) attach(t testing.TB, name string, number int) (*labHost, Device) {
	t.Helper()
	v4 := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 77, 0, byte(i)}) }
	v6 := func(i int) netip.Addr { return netip.MustParseAddr(fmt.Sprintf("fd77::%x", i)) }
	mac := func(i int) net.HardwareAddr { return net.HardwareAddr{2, 0, 0, 0, 0, byte(i)} }
	host := &labHost{name: name, ns: newNamespace(t), v4: v4(number), v6: v6(number)}
	inside := handle(t, host.ns)
	port := fmt.Sprintf("p%d", number)
	err := h.nl.LinkAdd(&netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: port}, PeerName: "eth0", PeerHardwareAddr: mac(number),
		PeerNamespace: netlink.NsFd(int(host.ns)),
	})
	must(t, err)
	out, err := h.nl.LinkByName(port)
	must(t, err)
	eth, err := inside.LinkByName("eth0")
	must(t, err)
	err = errors.Join(
		inside.AddrAdd(eth, &netlink.Addr{IPNet: &net.IPNet{IP: host.v4.AsSlice(), Mask: net.CIDRMask(24, 32)}}),
		inside.AddrAdd(eth, &netlink.Addr{IPNet: &net.IPNet{IP: host.v6.AsSlice(), Mask: net.CIDRMask(64, 128)},
			Flags: unix.IFA_F_NODAD}),
		inside.LinkSetUp(eth), h.nl.LinkSetUp(out))
	for i := 1; i <= mostHosts; i++ {
		for _, a := range []netip.Addr{v4(i), v6(i)} {
			if i != number {
				err = errors.Join(err, inside.NeighSet(&netlink.Neigh{LinkIndex: eth.Attrs().Index,
					State: netlink.NUD_PERMANENT, IP: a.AsSlice(), HardwareAddr: mac(i)}))
			}
		}
	}
	must(t, err)
	return host, Device{name, []netip.Addr{host.v4, host.v6}, Ports{Port{inside, "eth0"}, Port{h.nl, port}}}
}

// newNamespace makes a network namespace with loopback and TCP buffers of up to
// 128 MiB, gone when the test ends.
func newNamespace(t testing.TB) (ns netns.NsHandle) {
	t.Helper()
	must(t, OnThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		for _, s := range []string{"tcp_rmem=4096 131072 402653184", "tcp_wmem=4096 16384 402653184",
			"tcp_no_metrics_save=1"} {
			k, v, _ := strings.Cut(s, "=")
			if err := os.WriteFile("/proc/sys/net/ipv4/"+k, []byte(v), 0); err != nil {
				return err
			}
		}
		lo, err := netlink.LinkByName("lo")
		if err == nil {
			err = netlink.LinkSetUp(lo)
		}
		if err == nil {
			ns, err = netns.Get()
		}
		return err
	}))
	t.Cleanup(func() { ns.Close() })
	return ns
}

func (l *lab) shape(t testing.TB, top Topology) {
	t.Helper()
	must(t, l.emulator.Shape(t.Context(), top))
}

func (l *lab) stats(t testing.TB) Stats {
	t.Helper()
	s, err := l.emulator.Stats(t.Context())
	must(t, err)
	return s
}

// symmetric shapes both ends of every host alike: half the delay on either.
func symmetric(p Params, names ...string) Topology {
	t := Topology{Up: map[string]Params{}, Down: map[string]Params{}}
	for _, n := range names {
		up, down := p, p
		up.Delay, down.Delay = p.Delay/2, p.Delay/2
		down.Loss, down.Jitter = 0, 0
		t.Up[n], t.Down[n] = up, down
	}
	return t
}

func (h *labHost) Addr() netip.Addr {
	if h.ipv6 {
		return h.v6
	}
	return h.v4
}

// cubic is the congestion control of TCP sockets.
func cubic(network, _ string, c syscall.RawConn) (err error) {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	e := c.Control(func(fd uintptr) {
		err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, "cubic")
	})
	return errors.Join(e, err)
}

func (h *labHost) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: 10 * time.Second, Control: cubic}
	return in(h, func() (net.Conn, error) { return d.DialContext(ctx, network, address) })
}

func (h *labHost) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	lc := net.ListenConfig{Control: cubic}
	return in(h, func() (net.Listener, error) { return lc.Listen(ctx, network, address) })
}

func (h *labHost) ListenPacket(_ context.Context, network, address string) (net.PacketConn, error) {
	return in(h, func() (net.PacketConn, error) { return net.ListenPacket(network, address) })
}

func in[T any](h *labHost, f func() (T, error)) (v T, err error) {
	err = InNamespace(int(h.ns), func() (err error) {
		v, err = f()
		return err
	})
	return v, err
}

// initiateTo begins measurements of the link between two hosts.
func (h *labHost) initiateTo(t testing.TB, to *labHost, want Want) *initiator {
	t.Helper()
	at, stop, err := Respond(t.Context(), to)
	must(t, err)
	t.Cleanup(stop)
	i, err := initiate(t.Context(), h, at, want, DefaultTolerance)
	must(t, err)
	t.Cleanup(func() { i.udp.Close() })
	return i
}

// measureTo measures the link between two hosts.
func (h *labHost) measureTo(t testing.TB, to *labHost, want Want) record.LinkCheck {
	t.Helper()
	at, stop, err := Respond(t.Context(), to)
	must(t, err)
	defer stop()
	c, err := Measure(t.Context(), h, at, want, 0)
	must(t, err)
	return c
}

// handshakeTo is the round trip that the kernel measured in TCP handshakes: no clock of ours is in it.
func (h *labHost) handshakeTo(t testing.TB, to *labHost) time.Duration {
	t.Helper()
	rtt, err := h.initiateTo(t, to, Want{}).handshakeRTT(t.Context())
	must(t, err)
	return rtt
}

// tcpPair connects two hosts.
func tcpPair(t testing.TB, from, to *labHost) (sender, receiver *net.TCPConn) {
	t.Helper()
	l, err := to.Listen(t.Context(), "tcp", net.JoinHostPort(to.Addr().String(), "0"))
	must(t, err)
	defer l.Close()
	c, err := from.Dial(t.Context(), "tcp", l.Addr().String())
	must(t, err)
	a, err := l.Accept()
	must(t, err)
	return c.(*net.TCPConn), a.(*net.TCPConn)
}
