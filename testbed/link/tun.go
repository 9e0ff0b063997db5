package link

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Device is a TUN device to make in a host's network namespace.
type Device struct {
	Host  string
	Netns int            // descriptor of the namespace; only used while it is made
	Addrs []netip.Prefix // its addresses; the prefixes become on-link routes
}

// DefaultDevice is the name of a host's link.
const DefaultDevice = "link0"

// txQueueLen is how many packets wait for the emulator to read them.
const txQueueLen = 4096

// openTUN makes the device, brings it up, and returns its descriptor, which works
// from any namespace, and a netlink handle inside the host's.
func openTUN(d Device) (int, *netlink.Handle, error) {
	fail := func(fd int, h *netlink.Handle, what string, err error) (int, *netlink.Handle, error) {
		if fd >= 0 {
			unix.Close(fd)
		}
		if h != nil {
			h.Close()
		}
		return -1, nil, fmt.Errorf("link: %s %s of %s: %w", what, DefaultDevice, d.Host, err)
	}
	fd := -1
	err := InNamespace(d.Netns, func() (err error) {
		fd, err = createTUN(DefaultDevice)
		return err
	})
	if err != nil {
		return fail(-1, nil, "make TUN device", err)
	}
	h, err := netlink.NewHandleAt(netns.NsHandle(d.Netns), unix.NETLINK_ROUTE)
	if err != nil {
		return fail(fd, nil, "netlink for", err)
	}
	dev, err := h.LinkByName(DefaultDevice)
	if err != nil {
		return fail(fd, h, "find", err)
	}
	if err := errors.Join(h.LinkSetMTU(dev, MTU), h.LinkSetTxQLen(dev, txQueueLen)); err != nil {
		return fail(fd, h, "set MTU and queue of", err)
	}
	for _, a := range d.Addrs {
		addr := &netlink.Addr{IPNet: &net.IPNet{IP: a.Addr().AsSlice(), Mask: net.CIDRMask(a.Bits(), a.Addr().BitLen())}}
		if a.Addr().Is6() {
			addr.Flags = unix.IFA_F_NODAD // no other device can own it
		}
		if err := h.AddrAdd(dev, addr); err != nil {
			return fail(fd, h, fmt.Sprintf("add address %s to", a), err)
		}
	}
	if err := h.LinkSetUp(dev); err != nil {
		return fail(fd, h, "bring up", err)
	}
	return fd, h, nil
}

// createTUN returns a bare descriptor: an os.File would be switched to blocking
// mode, for every process that shares it, by its Fd method.
func createTUN(name string) (int, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	if err := setupTUN(fd, name); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func setupTUN(fd int, name string) error {
	req, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, req); err != nil {
		return fmt.Errorf("TUNSETIFF: %w", err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TUNSETVNETHDRSZ, vnetLen); err != nil {
		return fmt.Errorf("TUNSETVNETHDRSZ: %w", err)
	}
	const tso = unix.TUN_F_CSUM | unix.TUN_F_TSO4 | unix.TUN_F_TSO6 | unix.TUN_F_TSO_ECN
	const uso = unix.TUN_F_USO4 | unix.TUN_F_USO6
	err = unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, tso|uso)
	if err != nil { // kernels before 6.2 have no USO
		err = unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, tso)
	}
	if err != nil {
		return fmt.Errorf("TUNSETOFFLOAD: %w", err)
	}
	return nil
}
