package link

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Disciplines of the kernel that shape links.
const (
	NetemDiscipline = "netem" // rate, delay, jitter, loss
	TBFDiscipline   = "tbf"   // token bucket filter: a rate alone
)

// Device connects a host to the others.
type Device struct {
	Host  string
	Addrs []netip.Addr
	Ports Ports
}

// Ports are the two ends of a host's veth pair: its own and the hub's.
type Ports struct{ Up, Down Port }

// Port is an Ethernet device in the namespace of a netlink handle.
type Port struct {
	NL     *netlink.Handle
	Device string
}

// ShapeKernel applies a topology with NetemDiscipline or TBFDiscipline, queueing disciplines of the
// kernel. Each host has one end of a veth pair; the other end is on the hub, a bridge that connects all
// hosts. A discipline acts where packets leave: on the host's end for its uplink, on the hub's end for
// its downlink.
//
// netem differs from our emulator as follows; the measurement of a link shows it when it matters. It
// decides on losses before the rate and per packet as sent, so hosts with losses may not send
// super-packets. Its queue counts packets, so a queue of super-packets holds more bytes than asked for.
// Single pairs of hosts cannot be shaped.
//
// Packets in a queue that changes are kept; a host that is no longer shaped loses those in its queue.
func ShapeKernel(discipline string, hosts []Device, t Topology) error {
	if len(t.Pairs) > 0 {
		return fmt.Errorf("link: %s cannot shape single pairs of hosts; use emulator: user", discipline)
	}
	if discipline == TBFDiscipline && !t.RateOnly() {
		return errors.New("link: tbf can give links a rate alone, no delay, jitter or loss; use emulator: user")
	}
	names := make([]string, len(hosts))
	for i, h := range hosts {
		names[i] = h.Host
	}
	r := t.resolve(names)
	var fastest float64
	for _, name := range names {
		fastest = max(fastest, r.Up[name].Rate, r.Down[name].Rate)
	}
	for _, h := range hosts {
		segs := t.kernelBurst(h.Host, names)
		err := errors.Join(h.Ports.Up.apply(discipline, r.Up[h.Host], segs, fastest),
			h.Ports.Down.apply(discipline, r.Down[h.Host], segs, fastest))
		if err != nil {
			return fmt.Errorf("link: shape the link of %s: %w", h.Host, err)
		}
	}
	return nil
}

// Tunnel leads from the host of this machine to that of another: a device on the hub.
type Tunnel struct {
	Host string // the other host
	Port Port
	Way  time.Duration // one-way delay between the machines, which is part of the emulated delay
}

// ShapeTunnels is [ShapeKernel] for the one host of a machine and its tunnels to all others. TBFDiscipline,
// whose queue counts bytes, shapes the rates at the host's veth; NetemDiscipline adds the delay, jitter and
// loss of each path at its tunnel. So single pairs may differ.
func ShapeTunnels(h Device, tunnels []Tunnel, t Topology) error {
	names := []string{h.Host}
	for _, x := range tunnels {
		names = append(names, x.Host)
	}
	r, segs := t.resolve(names), t.kernelBurst(h.Host, names)
	up, down := r.Up[h.Host], r.Down[h.Host]
	err := errors.Join(h.Ports.Up.apply(TBFDiscipline, Params{Rate: up.Rate, Queue: up.Queue}, segs, 0),
		h.Ports.Down.apply(TBFDiscipline, Params{Rate: down.Rate, Queue: down.Queue}, segs, 0))
	for _, x := range tunnels {
		p := t.path(h.Host, x.Host)
		if p.Delay = max(0, p.Delay-x.Way); p.Shaped() {
			p.Queue = pathRoom
		}
		err = errors.Join(err, x.Port.apply(NetemDiscipline, p, segs, 0))
	}
	if err != nil {
		return fmt.Errorf("link: shape the link of %s: %w", h.Host, err)
	}
	return nil
}

// kernelBurst returns how many segments a super-packet of a host may have: one if netem may lose packets on
// the path to another host.
func (t Topology) kernelBurst(from string, hosts []string) int {
	for _, to := range hosts {
		if to != from && t.path(from, to).Loss > 0 {
			return 1
		}
	}
	return segmentsPerBurst(t.slowest(from))
}

// pathRoom is the queue of a path in bytes, beyond its delay: 1 ms at the rate that netemAttrs assumes.
const pathRoom = 100e9 / 8 / 1000

// limitBursts sets the largest number of segments in a super-packet that leaves the port.
func (p Port) limitBursts(segs int) error {
	dev, err := p.NL.LinkByName(p.Device)
	if err != nil {
		return err
	}
	return p.NL.LinkSetGSOMaxSegs(dev, segs)
}

// dropped returns how many received packets the port has dropped.
func (p Port) dropped() int64 {
	dev, err := p.NL.LinkByName(p.Device)
	if err != nil || dev.Attrs().Statistics == nil {
		return 0
	}
	return int64(dev.Attrs().Statistics.RxDropped)
}

func (p Port) apply(discipline string, params Params, segs int, fastest float64) error {
	dev, err := p.NL.LinkByName(p.Device)
	if err != nil {
		return err
	}
	if err := p.limitBursts(segs); err != nil {
		return fmt.Errorf("limit super-packets: %w", err)
	}
	if !params.Shaped() {
		err := p.NL.QdiscDel(&netlink.GenericQdisc{QdiscAttrs: rootQdisc(dev), QdiscType: discipline})
		if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("remove %s: %w", discipline, err)
		}
		return nil
	}
	if err := p.discipline(dev, discipline, params, segs, fastest); err != nil {
		return fmt.Errorf("%s on %s: %w", discipline, p.Device, err)
	}
	return nil
}

// discipline sets the queueing discipline of a device.
func (p Port) discipline(dev netlink.Link, name string, params Params, segs int, fastest float64) error {
	if name == TBFDiscipline {
		return p.NL.QdiscReplace(tbf(rootQdisc(dev), params, segs))
	}
	return p.NL.QdiscReplace(netlink.NewNetem(rootQdisc(dev), netemAttrs(params, fastest)))
}

func rootQdisc(dev netlink.Link) netlink.QdiscAttrs {
	return netlink.QdiscAttrs{LinkIndex: dev.Attrs().Index, Handle: netlink.MakeHandle(1, 0),
		Parent: netlink.HANDLE_ROOT}
}

// tbf is a token bucket of one super-packet of segs segments, the most that may pass at
// once, or of what passes while the kernel's timers are late, if that is more (see
// tc-tbf(8): a bucket below rate / HZ never fills).
func tbf(attrs netlink.QdiscAttrs, p Params, segs int) *netlink.Tbf {
	bucket := max(float64(min(segs, largestBurst)+1)*FullFrame, p.Rate/8*250e-6)
	return &netlink.Tbf{
		QdiscAttrs: attrs,
		Rate:       uint64(math.Round(p.Rate / 8)),
		Limit:      uint32(min(float64(p.Queue)+bucket, math.MaxUint32)),
		// In ticks of 64 ns (PSCHED_SHIFT): how long the bucket's bytes take.
		Buffer: uint32(min(math.Ceil(bucket/(p.Rate/8)*1e9/64), math.MaxUint32)),
	}
}

// orderRate is the rate for netem if there is jitter but no rate: netem keeps packets in
// order only if it has a rate (netem_enqueue then counts a packet's delay from the
// departure of the one before). Bytes per second; 1 Tbit/s.
const orderRate = 125e9

// netemAttrs returns the qdisc for p, whose queue has been resolved. Its limit counts
// packets, both delayed and waiting ones: the queue in full segments, and what the
// fastest link of the topology (bit/s) sends during the delay, because its
// acknowledgements pass here too, at most one per segment. Without any rate it is what
// 100 Gbit/s would need.
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
