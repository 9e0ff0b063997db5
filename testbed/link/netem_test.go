package link

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Hosts on a hub, shaped by netem where the kernel has it; where it has not, what
// it takes to say so.
func TestNetemLive(t *testing.T) {
	needRoot(t)
	hub := newNamespace(t)
	nl, err := netlink.NewHandleAt(hub, unix.NETLINK_ROUTE)
	if err != nil {
		t.Fatal(err)
	}
	defer nl.Close()
	if err := nl.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "hub"}}); err != nil {
		t.Fatal(err)
	}
	bridge, err := nl.LinkByName("hub")
	if err != nil {
		t.Fatal(err)
	}
	if err := nl.LinkSetUp(bridge); err != nil {
		t.Fatal(err)
	}
	n := NewNetem()
	hosts := map[string]*labHost{}
	for i, name := range []string{"a", "b"} {
		h := &labHost{name: name, ns: newNamespace(t), v4: netip.AddrFrom4([4]byte{10, 78, 0, byte(i + 1)}), congestion: "cubic"}
		hosts[name] = h
		port := fmt.Sprintf("p%d", i)
		veth := &netlink.Veth{
			LinkAttrs: netlink.LinkAttrs{Name: port, MasterIndex: bridge.Attrs().Index},
			PeerName:  "eth0", PeerNamespace: netlink.NsFd(int(h.ns)),
		}
		if err := nl.LinkAdd(veth); err != nil {
			t.Fatal(err)
		}
		inside, err := netlink.NewHandleAt(h.ns, unix.NETLINK_ROUTE)
		if err != nil {
			t.Fatal(err)
		}
		defer inside.Close()
		eth, err := inside.LinkByName("eth0")
		if err != nil {
			t.Fatal(err)
		}
		if err := inside.AddrAdd(eth, &netlink.Addr{IPNet: prefixNet(netip.PrefixFrom(h.v4, 24))}); err != nil {
			t.Fatal(err)
		}
		if err := inside.LinkSetUp(eth); err != nil {
			t.Fatal(err)
		}
		p, err := nl.LinkByName(port)
		if err != nil {
			t.Fatal(err)
		}
		if err := nl.LinkSetUp(p); err != nil {
			t.Fatal(err)
		}
		if err := n.AddHost(name, Port{int(h.ns), "eth0"}, Port{int(hub), port}); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.Shape(Topology{}); err != nil {
		t.Fatalf("take off what is not there: %v", err)
	}
	if _, err := measureRTT(t.Context(), hosts["a"], hosts["b"], Want{}); err != nil {
		t.Fatalf("the hosts are not connected: %v", err)
	}
	pairs := Topology{Pairs: map[Pair]Params{{"a", "b"}: {Delay: 1}}}
	if err := n.Shape(pairs); err == nil || !strings.Contains(err.Error(), "pairs") {
		t.Errorf("pairs: %v", err)
	}
	top := symmetric(Params{Rate: 5e7, Delay: 10 * time.Millisecond}, "a", "b")
	err = n.Shape(top)
	if a := Available()[0]; !a.OK {
		if err == nil || !strings.Contains(err.Error(), "uplink of") {
			t.Errorf("netem is not there, yet: %v", err)
		}
		n.Close()
		t.Skip("netem: " + a.Why)
	}
	if err != nil {
		t.Fatal(err)
	}
	m, err := Measure(t.Context(), hosts["a"], hosts["b"], top.Want("a", "b"), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := nearRate(t, "rate", m.Rate, TCPPayloadRate(5e7, false)); err != nil {
		t.Error(err)
	}
	if m.RTT < 0.02 || m.RTT > 0.03 {
		t.Errorf("round trip %v s", m.RTT)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	if rtt, err := handshakeRTT(t.Context(), hosts["a"], hosts["b"]); err != nil || rtt > 15*time.Millisecond {
		t.Errorf("after Close: %v, %v", rtt, err)
	}
}
