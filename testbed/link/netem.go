package link

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Netem shapes hosts with the kernel's netem. Each host is one end of a veth pair
// whose other end hangs on a hub: a bridge that joins all hosts. netem works where
// packets leave: on the host's end for its uplink, on the hub's end for its
// downlink.
//
// It differs from the TUN emulator in these ways, which the measurement of a link
// shows when they matter: it decides on losses before the rate, and per packet as
// it was sent, so hosts with losses may not send super-packets; its queue counts
// packets, so a queue of super-packets holds more bytes than asked for; and paths
// between two hosts cannot be shaped on their own.
type Netem struct {
	hosts map[string]*netemHost
}

type netemHost struct{ up, down netemPort }

type netemPort struct {
	nl     *netlink.Handle
	device string
}

// Port is an Ethernet device in a namespace.
type Port struct {
	Netns  int // descriptor; only used during the call
	Device string
}

// NewNetem returns an emulator without hosts.
func NewNetem() *Netem { return &Netem{hosts: map[string]*netemHost{}} }

// AddHost adds a host by the two ends of its veth pair.
func (n *Netem) AddHost(name string, host, hub Port) error {
	open := func(p Port) (netemPort, error) {
		h, err := netlink.NewHandleAt(netns.NsHandle(p.Netns), unix.NETLINK_ROUTE)
		if err != nil {
			return netemPort{}, fmt.Errorf("link: netlink for %s of %s: %w", p.Device, name, err)
		}
		return netemPort{h, p.Device}, nil
	}
	up, err := open(host)
	if err != nil {
		return err
	}
	down, err := open(hub)
	if err != nil {
		up.nl.Close()
		return err
	}
	n.hosts[name] = &netemHost{up, down}
	return nil
}

// Shape applies a topology. Packets in a queue that changes are kept; a host that
// is no longer shaped loses its queue and what was in it.
func (n *Netem) Shape(t Topology) error {
	if err := t.Validate(); err != nil {
		return err
	}
	if len(t.Pairs) > 0 {
		return errors.New("link: netem cannot shape single pairs of hosts; use emulator: tun")
	}
	names := make([]string, 0, len(n.hosts))
	for name := range n.hosts {
		names = append(names, name)
	}
	r := t.resolve(names)
	var fastest float64
	for _, name := range names {
		fastest = max(fastest, r.Up[name].Rate, r.Down[name].Rate)
	}
	for _, name := range names {
		h := n.hosts[name]
		lossy := t.Up[name].Loss > 0
		slowest := r.Up[name].Rate
		for _, other := range names {
			if other != name {
				lossy = lossy || t.Down[other].Loss > 0
				slowest = least(slowest, r.Down[other].Rate)
			}
		}
		segs := segmentsPerBurst(slowest)
		if lossy {
			segs = 1
		}
		if err := h.up.apply(r.Up[name], segs, fastest); err != nil {
			return fmt.Errorf("link: shape the uplink of %s: %w", name, err)
		}
		if err := h.down.apply(r.Down[name], segs, fastest); err != nil {
			return fmt.Errorf("link: shape the downlink of %s: %w", name, err)
		}
	}
	return nil
}

func (p netemPort) apply(params Params, segs int, fastest float64) error {
	dev, err := p.nl.LinkByName(p.device)
	if err != nil {
		return err
	}
	if err := p.nl.LinkSetGSOMaxSegs(dev, segs); err != nil {
		return fmt.Errorf("limit super-packets: %w", err)
	}
	attrs := netlink.QdiscAttrs{LinkIndex: dev.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT}
	if !params.Shaped() {
		err := p.nl.QdiscDel(&netlink.GenericQdisc{QdiscAttrs: attrs, QdiscType: "netem"})
		if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("remove netem: %w", err)
		}
		return nil
	}
	if err := p.nl.QdiscReplace(netlink.NewNetem(attrs, netemAttrs(params, fastest))); err != nil {
		return fmt.Errorf("netem on %s: %w", p.device, err)
	}
	return nil
}

// orderRate is the rate given to netem where there is none but jitter: only a
// queue with a rate sends in order (netem_enqueue counts a packet's delay from
// the departure of the one before). Bytes per second; 1 Tbit/s.
const orderRate = 125e9

// netemAttrs is the qdisc for p, whose queue has been resolved. The limit is in
// packets and covers those on their way as well as those that wait: the queue in
// full segments, and what the fastest link of the topology (bit/s) sends during
// the delay, because its acknowledgements pass here too, one per segment at most.
// Where nothing has a rate it is what 100 Gbit/s would need.
func netemAttrs(p Params, fastest float64) netlink.NetemQdiscAttrs {
	fastest = max(fastest, p.Rate)
	if p.Rate == 0 {
		fastest = 100e9
	}
	onTheirWay := math.Ceil(float64(BDP(fastest, p.Delay+p.Jitter)) / FullFrame)
	waiting := math.Ceil(float64(p.Queue) / FullFrame)
	a := netlink.NetemQdiscAttrs{
		Latency: microseconds(p.Delay),
		Jitter:  microseconds(p.Jitter),
		Loss:    float32(p.Loss * 100), // percent
		Limit:   uint32(min(max(onTheirWay+waiting, 1), math.MaxUint32)),
		Rate64:  uint64(math.Round(p.Rate / 8)),
	}
	if p.Rate == 0 && p.Jitter > 0 {
		a.Rate64 = orderRate
	}
	return a
}

func microseconds(d time.Duration) uint32 {
	return uint32(min(d.Round(time.Microsecond).Microseconds(), math.MaxUint32))
}

// Close takes netem off every device and lets go of them. What it cannot undo
// because the device is gone is no error.
func (n *Netem) Close() error {
	var errs []error
	for name, h := range n.hosts {
		for _, p := range []netemPort{h.up, h.down} {
			err := p.apply(Params{}, segmentsPerBurst(0), 0)
			var gone netlink.LinkNotFoundError
			if err != nil && !errors.As(err, &gone) && !errors.Is(err, unix.ENODEV) {
				errs = append(errs, fmt.Errorf("link: unshape %s: %w", name, err))
			}
			p.nl.Close()
		}
	}
	n.hosts = map[string]*netemHost{}
	return errors.Join(errs...)
}
