package link

import (
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Own is the name of our emulator.
const Own = "user"

// Works tries an emulator (Own, NetemDiscipline or TBFDiscipline) in a temporary network namespace
// and returns why it does not work here. It needs the same rights as the emulators: root, or root
// of a user namespace.
func Works(emulator string) error {
	return OnThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("make a network namespace: %w", err)
		}
		veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "a"}, PeerName: "b"}
		if err := netlink.LinkAdd(veth); err != nil {
			return fmt.Errorf("make a veth pair: %w", err)
		}
		if emulator == Own {
			f, err := openSocket()
			if err != nil {
				return err
			}
			defer f.Close()
			s, err := newPacketSocket(int(f.Fd()), 0, 2)
			if err != nil {
				return err
			}
			return unix.Munmap(s.ring)
		}
		dev, err := netlink.LinkByName("a")
		if err != nil {
			return err
		}
		// This loads the discipline's module if the kernel allows it.
		p := Params{Rate: 1e9, Queue: 1 << 20}
		if err := (Port{Device: "a", NL: &netlink.Handle{}}).discipline(dev, emulator, p, 1, 0); err != nil {
			return fmt.Errorf("the kernel has no %s (module sch_%s): %w", emulator, emulator, err)
		}
		return nil
	})
}
