package link

import (
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Own is the name of our emulator.
const Own = "user"

// Availability says whether an emulator works here, and if not, why.
type Availability struct {
	Emulator string `json:"emulator"` // NetemDiscipline or Own
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
	return []Availability{try(NetemDiscipline, tryNetem), try(Own, tryPackets)}
}

// inScratch runs f inside a new network namespace.
func inScratch(f func() error) error {
	return OnThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("make a network namespace: %w", err)
		}
		return f()
	})
}

func tryPackets() error {
	if err := makeVeth(); err != nil {
		return err
	}
	f, err := openSocket()
	if err != nil {
		return err
	}
	defer f.Close()
	s, err := newPacketSocket(int(f.Fd()), 0, 2, 1)
	if err != nil {
		return err
	}
	return unix.Munmap(s.ring)
}

// HasTBF reports whether the kernel has the token bucket filter; it needs the same rights.
func HasTBF() bool {
	return inScratch(func() error {
		return tryQdisc(func(attrs netlink.QdiscAttrs) netlink.Qdisc {
			return tbf(attrs, Params{Rate: 1e9,
				Queue: 1 << 20}, 1)
		})
	}) == nil
}

func tryNetem() error {
	err := tryQdisc(func(attrs netlink.QdiscAttrs) netlink.Qdisc {
		return netlink.NewNetem(attrs, netlink.NetemQdiscAttrs{Latency: 1000})
	})
	if err != nil {
		return fmt.Errorf("the kernel has no netem (CONFIG_NET_SCH_NETEM, module sch_netem): %w", err)
	}
	return nil
}

// tryQdisc puts a discipline on one end of a veth pair, which loads its module where
// the kernel may.
func tryQdisc(qdisc func(netlink.QdiscAttrs) netlink.Qdisc) error {
	if err := makeVeth(); err != nil {
		return err
	}
	dev, err := netlink.LinkByName("a")
	if err != nil {
		return err
	}
	return netlink.QdiscAdd(qdisc(netlink.QdiscAttrs{LinkIndex: dev.Attrs().Index, Handle: netlink.MakeHandle(1, 0),
		Parent: netlink.HANDLE_ROOT}))
}

func makeVeth() error {
	veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "a"}, PeerName: "b"}
	if err := netlink.LinkAdd(veth); err != nil {
		return fmt.Errorf("make a veth pair: %w", err)
	}
	return nil
}
