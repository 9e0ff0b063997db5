package testbed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// ShapeSpec describes the links of all hosts, by their addresses. Links of hosts that it does
// not name are not shaped.
type ShapeSpec struct {
	link.Topology
	Congestion string // TCP congestion control of all hosts; empty: cubic
	Seed       uint64 // of losses and jitter; a running emulator keeps its first one
	// Changes starts the emulator even if nothing is shaped yet, because Reshape will be
	// called, which starts none.
	Changes bool
}

// DefaultCongestion is the TCP congestion control that most machines use.
const DefaultCongestion = "cubic"

// unlimitedRate (bit/s) is the rate of an unlimited link for sizing buffers: about what
// one stream over an emulated link reaches.
const unlimitedRate = 10e9

// Sizes of TCP's buffers, bytes: least (the kernel's), initial (the kernel's
// default), and the range of the maximum, which begins at the kernel's default.
const (
	bufferLeast   = 4096
	receiveFirst  = 131072
	sendFirst     = 16384
	receiveMaxMin = 6 << 20
	sendMaxMin    = 4 << 20
	bufferMaxMax  = 1 << 30
)

// shaper owns the links of a testbed.
type shaper struct {
	mu       sync.Mutex
	spec     ShapeSpec
	buffers  map[string]int64
	ownWorks bool        // our own emulator works here
	tbfWorks func() bool // the kernel may shape links that have only a rate; tested when the first one comes
	own      *link.Emulator
	devices  []link.Device  // of the hosts that are emulated
	mesh     *link.Mesh     // that own belongs to; nil: none
	machine  netip.Addr     // of this machine, for the emulators of other machines
	carrier  *os.File       // socket through which other machines reach our emulator
	stopEcho func()         // stops answering the probes of machines joined by tunnels
	at       netip.AddrPort // of the carrier or of the responder to probes
	tunnels  []link.Tunnel  // to the other machines of a mesh emulated by netem, in the order of the mesh
	active   string         // current emulator: link.Own, "netem", "tbf" or "none"
}

// Shape applies spec to all links, and sets congestion control and TCP buffers (maxima
// of three times the bandwidth-delay product) of every host accordingly. It may be called
// again between cells; existing connections keep their congestion control. Where links
// cannot be emulated (see Mode) they stay as they are, and Check reports them as off.
//
// A host added later has an unshaped link until the next Shape; with our own emulator it
// cannot reach the earlier hosts at all until then.
func (t *Testbed) Shape(ctx context.Context, spec ShapeSpec) error {
	return t.apply(ctx, spec, false)
}

// Reshape changes the links under load: hosts keep their devices, routes and congestion
// control, connections survive, and packets in flight keep their departure time. The
// maxima of TCP's buffers grow where the new links need it, and do not shrink before the
// next Shape. A connection learns the largest super-packet when it is opened, so the
// bursts of an older one fit the earlier rate. netem drops what waits for a link that is
// no longer shaped, and has no Pairs.
//
// It stays with the same emulator (see ShapeSpec.Changes), and fails where links are not
// emulated.
func (t *Testbed) Reshape(ctx context.Context, spec ShapeSpec) error {
	return t.apply(ctx, spec, true)
}

func (t *Testbed) apply(ctx context.Context, spec ShapeSpec, change bool) error {
	do := t.applyHere
	if t.opt.Mesh {
		do = t.applyMesh
	}
	if err := do(ctx, spec, change); err != nil {
		return fmt.Errorf("testbed: shape the links: %w", err)
	}
	return nil
}

// applyHere is apply on this machine.
func (t *Testbed) applyHere(ctx context.Context, spec ShapeSpec, change bool) error {
	t.mu.Lock()
	hosts := t.hosts
	t.mu.Unlock()
	s := &t.shape
	s.mu.Lock()
	defer s.mu.Unlock()
	if change {
		if err := s.change(ctx, spec); err != nil {
			return err
		}
		spec.Congestion, spec.Seed = s.spec.Congestion, s.spec.Seed
		s.spec = spec
	} else {
		spec.Congestion = cmp.Or(spec.Congestion, DefaultCongestion)
		s.spec, s.buffers = spec, map[string]int64{}
		if !t.mode.Namespaces {
			return nil
		}
		s.choose(t)
		if err := s.emulate(ctx, t, hosts); err != nil {
			return err
		}
	}
	for _, h := range hosts {
		if err := s.settle(t, h, hosts, change); err != nil {
			return fmt.Errorf("host %s: %w", h.name, err)
		}
	}
	return nil
}

// choose chooses the emulator for the spec.
func (s *shaper) choose(t *Testbed) {
	mode := t.mode
	switch {
	case s.mesh != nil:
		s.active = mode.Emulator
	case mode.Emulator == "none" || !s.spec.Shaped() && !s.spec.Changes && t.opt.Emulate != link.Own:
		s.active = "none"
	case len(s.spec.Pairs) > 0 && t.opt.Emulate != "netem" && s.ownWorks: // netem knows no pairs
		s.active = link.Own
	case mode.Emulator == link.Own && !s.spec.Changes && s.spec.RateOnly() && s.tbfWorks():
		s.active = link.TBFDiscipline // a third of the CPU that ours needs, see BenchmarkLink
	default:
		s.active = mode.Emulator
	}
}

// change applies another spec with the current emulator.
func (s *shaper) change(ctx context.Context, spec ShapeSpec) error {
	switch s.active {
	case link.Own:
		if err := s.own.Err(); err != nil {
			return err
		}
		return s.own.Shape(ctx, spec.Topology)
	case link.NetemDiscipline, link.TBFDiscipline:
		return s.shapeByKernel(s.active, s.devices, spec.Topology)
	}
	return errors.New("links are not emulated")
}

// names reports whether the spec shapes the link of a host.
func (s ShapeSpec) names(host string) bool {
	_, up := s.Up[host]
	_, down := s.Down[host]
	return up || down
}

// all returns the addresses of all hosts, including those on other machines.
func (s *shaper) all(hosts []*host) (addrs []string) {
	if s.mesh != nil {
		for _, p := range s.mesh.Peers {
			addrs = append(addrs, p.Host)
		}
		return addrs
	}
	for _, h := range hosts {
		addrs = append(addrs, h.addr.String())
	}
	return addrs
}

// emulate lets the active emulator shape all hosts, and removes the shapes of others.
func (s *shaper) emulate(ctx context.Context, t *Testbed, hosts []*host) error {
	if s.active != link.Own {
		if err := s.end(ctx); err != nil {
			return err
		}
	}
	var devices []link.Device
	for _, h := range hosts {
		devices = append(devices, link.Device{Host: h.addr.String(), Addrs: h.addrs, Ports: t.net.ports(h)})
		if err := t.net.bridgePort(h, s.active != link.Own); err != nil {
			return fmt.Errorf("host %s: %w", h.name, err)
		}
	}
	discipline, topology := link.TBFDiscipline, link.Topology{}
	if t.mode.Emulator == link.NetemDiscipline {
		discipline = link.NetemDiscipline
	}
	if s.active == link.NetemDiscipline || s.active == link.TBFDiscipline {
		topology = s.spec.Topology
	}
	if err := s.shapeByKernel(discipline, devices, topology); err != nil {
		return err
	}
	if s.active == link.Own {
		return s.emulateOwn(ctx, t, devices)
	}
	s.devices = devices
	return nil
}

// emulateOwn lets our emulator shape all hosts. It restarts an emulator that has died or
// does not know all hosts; one that belongs to a mesh is started only by joining.
func (s *shaper) emulateOwn(ctx context.Context, t *Testbed, devices []link.Device) error {
	if s.own != nil && (s.own.Err() != nil || s.mesh == nil && len(s.devices) != len(devices)) {
		err := s.own.Err()
		if s.mesh != nil {
			return err
		}
		if err != nil {
			t.log("starting the link emulator again: " + err.Error())
		}
		if err := s.end(ctx); err != nil {
			return err
		}
	}
	if s.own == nil {
		launch := func(ctx context.Context, stdin *os.File, sockets []*os.File) (link.Process, error) {
			return t.hub.Start(ctx, Command{Name: "link", Role: RoleEmulator, Args: t.Self("node", "link"),
				Stdin: stdin, files: sockets})
		}
		e, err := link.New(ctx, launch, link.Options{Seed: s.spec.Seed, Mesh: s.mesh}, int(t.net.hub.Fd()), s.carrier,
			devices...)
		if err != nil {
			return err
		}
		s.own, s.devices = e, devices
	}
	return s.own.Shape(ctx, s.spec.Topology)
}

// settle sets the buffers, congestion control and route of one host; after a change of
// its links only the buffers, and only if they have to grow.
func (s *shaper) settle(t *Testbed, h *host, hosts []*host, change bool) error {
	var bdp int64 // the largest of the host's connections
	at := h.addr.String()
	for _, o := range s.all(hosts) {
		if o != at {
			out, back := s.spec.Want(at, o), s.spec.Want(o, at)
			bdp = max(bdp, link.BDP(cmp.Or(out.Rate, unlimitedRate), out.RTT),
				link.BDP(cmp.Or(back.Rate, unlimitedRate), back.RTT))
		}
	}
	receive, send := bufferMax(bdp, receiveMaxMin), bufferMax(bdp, sendMaxMin)
	if change && receive <= s.buffers[h.name] {
		return nil
	}
	s.buffers[h.name] = receive
	err := h.keeper.do(func() error {
		for _, b := range bufferSysctls(receive, send) {
			if err := writeSysctl(b.key, b.value); err != nil {
				t.log(fmt.Sprintf("host %s: cannot set %s to %s: %v", h.name, b.key, b.value, err))
			}
		}
		// A namespace may choose only among what the machine's root allows to all;
		// a route may ask for any that the kernel has.
		_ = writeSysctl("net.ipv4.tcp_congestion_control", s.spec.Congestion)
		return nil
	})
	if err != nil || change {
		return err
	}
	if err := h.route(s.spec.Congestion); err != nil {
		return fmt.Errorf("TCP congestion control %s: %w; load the kernel's module tcp_%[1]s, or say another in "+
			"link.congestion", s.spec.Congestion, err)
	}
	return nil
}

// bufferMax is three times the product: TCP's window may be half of the buffer
// (tcp_adv_win_scale), and a loss takes another round trip to repair.
func bufferMax(bdp, least int64) int64 {
	const page = 4096
	n := (3*bdp + page - 1) / page * page
	return min(max(n, least), bufferMaxMax)
}

// bufferSysctls are the settings of TCP's buffers with these maxima.
func bufferSysctls(receive, send int64) []sysctl {
	return []sysctl{
		{"net.ipv4.tcp_rmem", fmt.Sprint(bufferLeast, receiveFirst, receive)},
		{"net.ipv4.tcp_wmem", fmt.Sprint(bufferLeast, sendFirst, send)},
	}
}

// close ends all emulation.
func (s *shaper) close(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.end(ctx)
	if s.stopEcho != nil {
		s.stopEcho()
	}
	if s.carrier != nil {
		err = errors.Join(err, s.carrier.Close())
	}
	return err
}

// end ends the emulator process.
func (s *shaper) end(ctx context.Context) error {
	if s.own == nil {
		return nil
	}
	err := s.own.Close(ctx)
	s.own, s.mesh = nil, nil
	return err
}

// emulatorTimeout limits a call to the emulator.
const emulatorTimeout = 5 * time.Second

// Want returns the expected properties of the path from one host to another and back,
// after the last Shape. Of real links between machines, anything is accepted.
func (t *Testbed) Want(from, to Host) link.Want {
	if t.opt.Real {
		return link.Want{Any: true}
	}
	t.shape.mu.Lock()
	defer t.shape.mu.Unlock()
	return t.shape.spec.Want(from.Addr().String(), to.Addr().String())
}

// Check measures round trip, rate and (if segments should be lost) loss of the link with
// traffic between the hosts, and compares them with [Testbed.Want]. tol is the share by
// which they may be off; 0 means link.DefaultTolerance. A link that is off is not an error:
// OK is false and Why gives the reason.
func (t *Testbed) Check(ctx context.Context, from, to Host, tol float64) (record.LinkCheck, error) {
	before, running, err := t.EmulatorStats(ctx)
	if err != nil {
		return record.LinkCheck{}, err
	}
	at, stop, err := to.Respond(ctx)
	if err != nil {
		return record.LinkCheck{}, fmt.Errorf("testbed: check the link to %s: %w", to.Name(), err)
	}
	defer stop()
	c, err := from.Measure(ctx, at, t.Want(from, to), tol)
	c.From, c.To, c.Emulator = from.Name(), to.Name(), t.activeEmulator()
	if err != nil {
		return c, fmt.Errorf("testbed: check the link %s → %s: %w", from.Name(), to.Name(), err)
	}
	if running {
		after, _, err := t.EmulatorStats(ctx)
		if err != nil {
			return c, err
		}
		c.Lateness = after.Since(before).Lateness.Quantile(0.99).Seconds()
	}
	return c, nil
}

// EmulatorStats returns the statistics of our emulator since it started, with hosts by
// address; running is false if it emulates no link. An error means that the emulator has
// died or does not answer.
func (t *Testbed) EmulatorStats(ctx context.Context) (sum link.Stats, running bool, err error) {
	all := []member{{call: func(ctx context.Context, _ MeshCall) (MeshAnswer, error) { return t.stats(ctx) }}}
	if t.opt.Mesh {
		t.mesh.mu.Lock()
		all = t.mesh.joined
		t.mesh.mu.Unlock()
	}
	if all == nil {
		return sum, false, errNotJoined
	}
	var answers []MeshAnswer
	for range 2 { // one late or lost answer does not mean that the emulator died
		asking, cancel := context.WithTimeout(ctx, emulatorTimeout)
		answers, err = each(asking, all, func(int) MeshCall { return MeshCall{Stats: true} })
		cancel()
		if err == nil || ctx.Err() != nil {
			break
		}
	}
	for _, a := range answers {
		sum, running = sum.Merge(a.Stats), running || a.Running
	}
	return sum, running, err
}

// stats returns the statistics of this machine's emulator.
func (t *Testbed) stats(ctx context.Context) (a MeshAnswer, err error) {
	t.shape.mu.Lock()
	e := t.shape.own
	a.Running = e != nil && t.shape.active == link.Own
	t.shape.mu.Unlock()
	if a.Running {
		a.Stats, err = e.Stats(ctx)
	}
	return a, err
}

// EmulatorErr is nil while links are emulated as shaped; otherwise it says how the emulator
// ended. No packet passes between hosts then.
func (t *Testbed) EmulatorErr() error {
	_, _, err := t.EmulatorStats(context.Background())
	return err
}

func (t *Testbed) activeEmulator() string {
	switch {
	case t.opt.Real:
		return record.RealLink
	case t.opt.Mesh && t.byKernel():
		return record.KernelMeshLink
	case t.opt.Mesh:
		return record.MeshLink
	}
	t.shape.mu.Lock()
	defer t.shape.mu.Unlock()
	return t.shape.active
}
