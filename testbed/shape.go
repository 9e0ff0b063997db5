package testbed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// ShapeSpec says how the links of all hosts shall be from now on; hosts that it
// does not name have links that are not shaped.
type ShapeSpec struct {
	Up, Down   map[string]link.Params    // by host
	Pairs      map[[2]string]link.Params // from, to
	Congestion string                    // TCP congestion control of all hosts; empty: cubic
	Seed       uint64                    // of losses and jitter; the emulator takes the first
	// Changes puts the emulator in the way even where nothing is shaped yet: Reshape
	// is to come, and starts none.
	Changes bool
}

func (s ShapeSpec) topology() link.Topology {
	return link.Topology{Up: s.Up, Down: s.Down, Pairs: s.Pairs}
}

// DefaultCongestion is what most machines use.
const DefaultCongestion = "cubic"

// unlimitedRate is assumed for an unlimited link when buffers are sized
// (bit/s): about what one stream over an emulated link reaches.
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
	mu         sync.Mutex
	spec       ShapeSpec
	congestion string // in force, as far as we know
	buffers    map[string]int64
	ownWorks   bool        // our own emulator
	tbfWorks   func() bool // links with a rate alone may be left to the kernel; asked for when the first is
	own        *link.Emulator
	devices    []link.Device // of the hosts that are emulated
	mesh       *link.Mesh    // that own is part of; nil: none
	machine    netip.Addr    // our own address, for the emulators of other machines
	carrier    *os.File      // by which these reach ours
	carrierAt  netip.AddrPort
	echo       *link.Responder // answers probes of machines joined by tunnels
	tunnels    []link.Tunnel   // to the other machines of a mesh that netem emulates, in its order
	active     string          // what emulates now: link.Own, "netem", "tbf" or "none"
}

// Shape makes all links what spec says, and sets congestion control and TCP
// buffers (maxima of three times the bandwidth-delay product) of every host to
// suit. It may be called again between cells; connections that exist keep
// their congestion control. Where links cannot be emulated (see Mode) they stay
// as they are, and Check says that they are off.
//
// Until the next Shape, a host added later has a link that is not shaped; where our own
// emulator is at work, it does not reach the hosts of before at all.
func (t *Testbed) Shape(ctx context.Context, spec ShapeSpec) error {
	return t.apply(ctx, spec, false)
}

// Reshape changes the links under a load: hosts keep their devices, routes and
// congestion control, connections live on, and packets under way keep their
// departure. The maxima of TCP's buffers grow where the new links need it, and
// never shrink before the next Shape. How large super-packets may be, a connection
// learns when it is made: an older one's bursts fit the rate of before. netem drops
// what waits for a link that is no longer shaped at all, and has no Pairs.
//
// It goes from one shape to another of the same emulator, see ShapeSpec.Changes,
// and fails where links are not emulated, or no longer.
func (t *Testbed) Reshape(ctx context.Context, spec ShapeSpec) error {
	return t.apply(ctx, spec, true)
}

func (t *Testbed) apply(ctx context.Context, spec ShapeSpec, change bool) (err error) {
	if t.opt.Mesh {
		err = t.applyMesh(ctx, spec, change)
	} else {
		err = t.applyHere(ctx, spec, change)
	}
	if err != nil {
		return fmt.Errorf("testbed: shape the links: %w", err)
	}
	return nil
}

func (t *Testbed) applyHere(ctx context.Context, spec ShapeSpec, change bool) error {
	t.mu.Lock()
	hosts, mode, closed := t.hosts, t.mode, t.closed
	t.mu.Unlock()
	if closed {
		return errors.New("the testbed is closed")
	}
	s := &t.shape
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := spec.check(s.all(hosts)); err != nil {
		return err
	}
	if change {
		if err := s.change(ctx, spec); err != nil {
			return err
		}
		spec.Congestion, spec.Seed = s.spec.Congestion, s.spec.Seed
		s.spec = spec
	} else {
		spec.Congestion = cmp.Or(spec.Congestion, DefaultCongestion)
		s.spec, s.congestion, s.buffers = spec, "", map[string]int64{}
		if !mode.Namespaces {
			return nil
		}
		s.choose(t, mode)
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

// choose chooses what emulates the links.
func (s *shaper) choose(t *Testbed, mode Mode) {
	top := s.spec.topology()
	switch {
	case s.mesh != nil:
		s.active = mode.Emulator
	case mode.Emulator == "none" || !top.Shaped() && !s.spec.Changes && t.opt.Emulate != link.Own:
		s.active = "none"
	case len(s.spec.Pairs) > 0 && t.opt.Emulate != "netem" && s.ownWorks: // netem knows no pairs
		s.active = link.Own
	case mode.Emulator == link.Own && !s.spec.Changes && top.RateOnly() && s.tbfWorks():
		s.active = link.TBFDiscipline // a third of the CPU that ours needs, see BenchmarkLink
	default:
		s.active = mode.Emulator
	}
}

// change lets what emulates now do it otherwise.
func (s *shaper) change(ctx context.Context, spec ShapeSpec) error {
	switch s.active {
	case link.Own:
		if err := s.own.Err(); err != nil {
			return err
		}
		return s.own.Shape(ctx, spec.topology())
	case link.NetemDiscipline, link.TBFDiscipline:
		return s.shapeByKernel(s.active, s.devices, spec.topology())
	}
	return errors.New("links are not emulated")
}

// names reports whether a host's own link is in the spec.
func (s ShapeSpec) names(host string) bool {
	_, up := s.Up[host]
	_, down := s.Down[host]
	return up || down
}

// nameOf is how a host is called in links.
func (s *shaper) nameOf(h *host) string {
	if s.mesh != nil {
		return h.addr.String()
	}
	return h.name
}

// all are the names of all hosts, also of those on other machines.
func (s *shaper) all(hosts []*host) (names []string) {
	if s.mesh != nil {
		for _, p := range s.mesh.Peers {
			names = append(names, p.Host)
		}
		return names
	}
	for _, h := range hosts {
		names = append(names, h.name)
	}
	return names
}

func (s ShapeSpec) check(hosts []string) error {
	known := map[string]bool{}
	for _, name := range hosts {
		known[name] = true
	}
	names := slices.AppendSeq(slices.Collect(maps.Keys(s.Up)), maps.Keys(s.Down))
	for p := range s.Pairs {
		names = append(names, p[0], p[1])
	}
	for _, n := range names {
		if !known[n] {
			return fmt.Errorf("there is no host %q", n)
		}
	}
	return s.topology().Validate()
}

// emulate makes the active emulator shape all hosts, and the others none.
func (s *shaper) emulate(ctx context.Context, t *Testbed, hosts []*host) error {
	if s.active != link.Own {
		if err := s.end(ctx, t.hub); err != nil {
			return err
		}
	}
	var devices []link.Device
	for _, h := range hosts {
		devices = append(devices, link.Device{Host: s.nameOf(h), Addrs: h.addrs(t.net.ipv6), Ports: t.net.ports(h)})
		if err := t.net.bridgePort(h, s.active != link.Own); err != nil {
			return fmt.Errorf("host %s: %w", h.name, err)
		}
	}
	discipline, topology := link.TBFDiscipline, link.Topology{}
	if t.mode.Emulator == link.NetemDiscipline {
		discipline = link.NetemDiscipline
	}
	if s.active == link.NetemDiscipline || s.active == link.TBFDiscipline {
		topology = s.spec.topology()
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

// emulateOwn lets our emulator shape all hosts; one that has died, or does not know all
// hosts, is started again. That of a mesh is started by Join alone.
func (s *shaper) emulateOwn(ctx context.Context, t *Testbed, devices []link.Device) error {
	if s.own != nil && (s.own.Err() != nil || s.mesh == nil && len(s.devices) != len(devices)) {
		err := s.own.Err()
		if s.mesh != nil {
			return err
		}
		if err != nil {
			t.log("starting the link emulator again: " + err.Error())
		}
		if err := s.end(ctx, t.hub); err != nil {
			return err
		}
	}
	if s.own == nil {
		launch := func(ctx context.Context, stdin *os.File, sockets []*os.File) (link.Process, error) {
			c := Command{Name: "link", Role: RoleEmulator, Args: t.Self("node", "link"), Stdin: stdin, files: sockets}
			return t.hub.start(ctx, c)
		}
		e, err := link.New(ctx, launch, link.Options{Seed: s.spec.Seed, Mesh: s.mesh}, int(t.net.hub.Fd()), s.carrier,
			devices...)
		if err != nil {
			return err
		}
		s.own, s.devices = e, devices
	}
	return s.own.Shape(ctx, s.spec.topology())
}

// bufferMaxima are those of TCP's buffers that a host's connections need.
func (s *shaper) bufferMaxima(h *host, hosts []*host) (receive, send int64) {
	var bdp float64
	topology, name := s.spec.topology(), s.nameOf(h)
	for _, o := range s.all(hosts) {
		if o != name {
			bdp = max(bdp, product(topology.Want(name, o)), product(topology.Want(o, name)))
		}
	}
	return bufferMax(bdp, receiveMaxMin), bufferMax(bdp, sendMaxMin)
}

// settle sets one host's buffers, congestion control and route; after a change of its links, buffers alone,
// if they are to be larger.
func (s *shaper) settle(t *Testbed, h *host, hosts []*host, change bool) error {
	receive, send := s.bufferMaxima(h, hosts)
	if change && receive <= s.buffers[h.name] {
		return nil
	}
	s.buffers[h.name] = receive
	const key = "net.ipv4.tcp_congestion_control"
	var congestion string
	err := h.keeper.do(func() error {
		for _, b := range []sysctl{
			{"net.ipv4.tcp_rmem", buffers(receiveFirst, receive)},
			{"net.ipv4.tcp_wmem", buffers(sendFirst, send)},
		} {
			if err := writeSysctl(b.key, b.value); err != nil {
				t.log(fmt.Sprintf("host %s: cannot set %s to %s: %v", h.name, b.key, b.value, err))
			}
		}
		_ = writeSysctl(key, s.spec.Congestion)
		congestion, _ = readSysctl(key)
		return nil
	})
	if err != nil || change {
		return err
	}
	// A namespace may choose only among what the machine's root allows to all;
	// a route may ask for any that the kernel has.
	if s.congestion = s.spec.Congestion; h.route(s.congestion) == nil {
		return nil
	}
	if s.congestion = congestion; congestion != s.spec.Congestion {
		t.log(fmt.Sprintf("host %s: the kernel refuses TCP congestion control %s, it stays %s", h.name,
			s.spec.Congestion, congestion))
	}
	return h.route("")
}

// product is the bandwidth-delay product in bytes.
func product(w link.Want) float64 {
	rate := w.Rate
	if rate == 0 {
		rate = unlimitedRate
	}
	return rate / 8 * w.RTT.Seconds()
}

// bufferMax is three times the product: TCP's window may be half of the buffer
// (tcp_adv_win_scale), and losses are mended a round trip later.
func bufferMax(bdp float64, least int64) int64 {
	const page = 4096
	n := int64(math.Ceil(3*bdp/page)) * page
	return min(max(n, least), bufferMaxMax)
}

// buffers is the value of tcp_rmem or tcp_wmem.
func buffers(first, most int64) string { return fmt.Sprint(bufferLeast, first, most) }

// sets reports whether a setting is Shape's, not fixed.
func (s *shaper) sets(key string) bool {
	return key == "net.ipv4.tcp_rmem" || key == "net.ipv4.tcp_wmem"
}

func (s *shaper) environment() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	env := map[string]string{}
	if s.congestion != "" {
		env["link.congestion"] = s.congestion
		env["link.congestion.wanted"] = s.spec.Congestion
	}
	for h, n := range s.buffers {
		env["link.buffer."+h] = strconv.FormatInt(n, 10)
	}
	return env
}

// close ends all emulation.
func (s *shaper) close(ctx context.Context, hub *host) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.end(ctx, hub)
	if s.echo != nil {
		s.echo.Close()
	}
	if s.carrier != nil {
		err = errors.Join(err, s.carrier.Close())
	}
	return err
}

// end ends the emulator process.
func (s *shaper) end(ctx context.Context, hub *host) error {
	if s.own == nil {
		return nil
	}
	err := s.own.Close(ctx)
	s.own = nil
	return errors.Join(err, stopAll(ctx, processes(hub)))
}

// emulatorTimeout bounds questions to the emulator.
const emulatorTimeout = 5 * time.Second
