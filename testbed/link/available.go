package link

import (
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Availability says whether an emulator works here, and if not, why.
type Availability struct {
	Emulator string `json:"emulator"` // "netem" or "tun"
	OK       bool   `json:"ok"`
	Why      string `json:"why,omitempty"`
}

// Available tries every emulator in a scratch network namespace that is gone
// afterwards, the preferred one first. It needs the rights that the emulators
// need: root, or those over one's own user namespace.
func Available() []Availability {
	try := func(name string, f func() error) Availability {
		if err := inScratch(f); err != nil {
			return Availability{name, false, err.Error()}
		}
		return Availability{name, true, ""}
	}
	return []Availability{try("netem", tryNetem), try("tun", tryTUN)}
}

// inScratch runs f inside a new network namespace.
func inScratch(f func() error) error {
	return onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("make a network namespace: %w", err)
		}
		return nil
	}, f)
}

func tryTUN() error {
	fd, err := createTUN(DefaultDevice)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// tryNetem puts netem on one end of a veth pair, which loads the module where the
// kernel may.
func tryNetem() error {
	veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "a"}, PeerName: "b"}
	if err := netlink.LinkAdd(veth); err != nil {
		return fmt.Errorf("make a veth pair: %w", err)
	}
	dev, err := netlink.LinkByName("a")
	if err != nil {
		return err
	}
	q := netlink.NewNetem(netlink.QdiscAttrs{LinkIndex: dev.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT}, netlink.NetemQdiscAttrs{Latency: 1000})
	if err := netlink.QdiscAdd(q); err != nil {
		return fmt.Errorf("the kernel has no netem (CONFIG_NET_SCH_NETEM, module sch_netem): %w", err)
	}
	return nil
}
