package testbed

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
)

// Whether there can be tunnels is tried without a trace, and what is in the way is named with what to do.
func TestTryTunnel(t *testing.T) {
	tb := newTestbed(t, Options{})
	if !tb.Mode().Namespaces {
		t.Skip(tb.Mode().Why)
	}
	at := netip.MustParseAddr("127.0.0.1")
	before, err := netlink.LinkList()
	must(t, err)
	if err := tb.tryTunnel(at); err != nil {
		t.Skip("this kernel has no VXLAN, or this user no right to it: ", err)
	}
	c, err := net.ListenPacket("udp", ":7701")
	must(t, err)
	defer c.Close()
	if err := tb.tryTunnel(at); err == nil || !strings.Contains(err.Error(), "7701") ||
		!strings.Contains(err.Error(), "link.emulator=user") {
		t.Errorf("the port is taken: %v", err)
	}
	after, err := netlink.LinkList()
	must(t, err)
	ports, err := tb.net.nl.LinkList()
	must(t, err)
	if len(after) != len(before) || len(ports) != 2 { // lo and the bridge
		t.Errorf("%d devices here, %d before; %d in the hub", len(after), len(before), len(ports))
	}
}
