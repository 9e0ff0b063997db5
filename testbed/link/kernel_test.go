package link

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// onHub makes hosts on a hub, shaped by the kernel.
func onHub(t testing.TB, discipline string, names ...string) (*Kernel, map[string]*labHost) {
	t.Helper()
	needRoot(t)
	hub := newNamespace(t)
	nl, err := netlink.NewHandleAt(hub, unix.NETLINK_ROUTE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nl.Close)
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
	ports := map[string]Ports{}
	hosts := map[string]*labHost{}
	for i, name := range names {
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
		t.Cleanup(inside.Close)
		eth, err := inside.LinkByName("eth0")
		if err != nil {
			t.Fatal(err)
		}
		if err := inside.AddrAdd(eth, &netlink.Addr{IPNet: &net.IPNet{IP: h.v4.AsSlice(), Mask: net.CIDRMask(24, 32)}}); err != nil {
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
		ports[name] = Ports{Port{inside, "eth0"}, Port{nl, port}}
	}
	return NewKernel(discipline, ports), hosts
}

func TestKernelShapes(t *testing.T) {
	for _, c := range []struct {
		discipline string
		works      bool
		params     Params
		rtt        [2]float64 // seconds, bounds of the median when the link is idle
	}{
		{NetemDiscipline, Available()[0].OK, Params{Rate: 5e7, Delay: 10 * time.Millisecond}, [2]float64{0.02, 0.03}},
		{TBFDiscipline, HasTBF(), Params{Rate: 5e7}, [2]float64{0, 0.01}},
		{TBFDiscipline, HasTBF(), Params{Rate: 1e9}, [2]float64{0, 0.01}},
	} {
		t.Run(fmt.Sprintf("%s_%g", c.discipline, c.params.Rate), func(t *testing.T) {
			n, hosts := onHub(t, c.discipline, "a", "b")
			if err := n.Shape(Topology{}); err != nil {
				t.Fatalf("take off what is not there: %v", err)
			}
			if _, err := hosts["a"].initiateTo(t, hosts["b"], Want{}).measureRTT(t.Context()); err != nil {
				t.Fatalf("the hosts are not connected: %v", err)
			}
			pairs := Topology{Pairs: map[Pair]Params{{"a", "b"}: {Delay: 1}}}
			if err := n.Shape(pairs); err == nil || !strings.Contains(err.Error(), "pairs") {
				t.Errorf("pairs: %v", err)
			}
			if c.discipline == TBFDiscipline {
				if err := n.Shape(symmetric(Params{Rate: 1e8, Loss: 0.1}, "a")); err == nil {
					t.Error("a loss was accepted")
				}
			}
			top := symmetric(c.params, "a", "b")
			err := n.Shape(top)
			if !c.works {
				if err == nil || !strings.Contains(err.Error(), "uplink of") {
					t.Errorf("%s does not work here, yet: %v", c.discipline, err)
				}
				t.Skip("the kernel has no " + c.discipline)
			}
			if err != nil {
				t.Fatal(err)
			}
			m := hosts["a"].measureTo(t, hosts["b"], top.Want("a", "b"))
			if err := nearRate(t, "rate", m.Rate, TCPPayloadRate(c.params.Rate, false)); err != nil {
				t.Error(err)
			}
			if m.RTT < c.rtt[0] || m.RTT > c.rtt[1] {
				t.Errorf("round trip %v s", m.RTT)
			}
			if err := n.Shape(Topology{}); err != nil {
				t.Error(err)
			}
			if rtt, err := hosts["a"].initiateTo(t, hosts["b"], Want{}).handshakeRTT(t.Context()); err != nil || rtt > 15*time.Millisecond {
				t.Errorf("after the shape: %v, %v", rtt, err)
			}
		})
	}
}
