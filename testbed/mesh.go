package testbed

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// A mesh emulates links between machines. Each machine has a testbed with one host in a
// namespace, and either our emulator, which exchanges packets with the others over UDP, or
// netem and the kernel's tunnels. The engine's testbed (Options.Mesh) has the client's host
// and controls the others with MeshCall. A machine has one host for the nodes of all systems.

// MeshCall asks one machine to do one of these for the links.
type MeshCall struct {
	Open       bool          // open the socket of its emulator
	Join       *link.Options // start its emulator
	Probe      bool          // measure the round trips to the other machines
	SetTransit bool          // with Probe: subtract them from the delays of packets from now on
	Shape      *ShapeSpec    // like [Testbed.Shape]
	Change     bool          // with Shape: like [Testbed.Reshape]
	Stats      bool          // return the statistics of its emulator
}

// MeshAnswer is the answer to a MeshCall.
type MeshAnswer struct {
	At    netip.AddrPort  // of the socket
	MTU   int             // of the tunnels, where netem emulates
	RTTs  []time.Duration // to all machines, by their numbers in the mesh
	Stats link.Stats

	Running bool // our emulator is running
}

// MeshAddr returns the address of the host on a machine of a mesh, by the machine's number from 1.
func MeshAddr(number int) netip.Addr { return hostAddr(prefix4, number) }

// MeshHost adds the host of this machine to a mesh, or, if its number is 0, its own network without a mesh; at is the
// address of the machine.
func (t *Testbed) MeshHost(ctx context.Context, name string, number int, at netip.Addr) (Host, error) {
	if number == 0 {
		return t.OwnNetwork(name, at)
	}
	if t.net == nil {
		return nil, fmt.Errorf("testbed: add host %s: %s", name, t.Mode().Why)
	}
	t.shape.machine = at
	if t.byKernel() {
		if err := link.Works(link.TBFDiscipline); err != nil {
			return nil, fmt.Errorf("testbed: add host %s: %w (%s)", name, err, tunnelNeeds)
		}
	}
	return t.addLocal(ctx, name, number)
}

// Mesh executes a call on this machine.
func (t *Testbed) Mesh(ctx context.Context, q MeshCall) (a MeshAnswer, err error) {
	s := &t.shape
	switch {
	case q.Shape != nil:
		return a, t.applyHere(ctx, *q.Shape, q.Change)
	case q.Stats:
		if a, err = t.stats(ctx); err != nil {
			return a, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case q.Open:
		return s.open(ctx, t)
	case q.Join != nil:
		if err = s.end(ctx); err == nil {
			s.mesh, s.active, s.spec = q.Join.Mesh, t.mode.Emulator, ShapeSpec{Seed: q.Join.Seed}
			err = s.join(ctx, t)
		}
		if err != nil {
			s.mesh = nil
		}
	case s.mesh == nil:
		err = errNotJoined
	case q.Probe && t.byKernel():
		a.RTTs, err = s.probeTunnels(ctx, t, q.SetTransit)
	case q.Probe:
		a.RTTs, err = s.own.Probe(ctx, q.SetTransit)
	}
	return a, err
}

var errNotJoined = errors.New("the link emulator does not run: the machines are not joined")

// open opens the socket through which other machines reach this machine's emulator or, where
// the kernel emulates, probe the path to it.
func (s *shaper) open(ctx context.Context, t *Testbed) (a MeshAnswer, err error) {
	switch {
	case s.at.IsValid():
	case t.byKernel():
		s.at, s.stopEcho, err = link.Respond(ctx, s.machineNetwork(t))
	default:
		s.carrier, s.at, err = link.OpenCarrier(s.machine)
	}
	if a.At = s.at; err == nil && t.byKernel() {
		a.MTU, err = tunnelMTU(s.machine)
	}
	return a, err
}

// join starts the emulator of the mesh, or creates its tunnels, between this machine's host
// and the others.
func (s *shaper) join(ctx context.Context, t *Testbed) error {
	t.mu.Lock()
	hosts := slices.Clone(t.hosts)
	t.mu.Unlock()
	for i, p := range s.mesh.Peers {
		if i == s.mesh.Self {
			continue
		}
		if err := hosts[0].addNeighbours(p.Addrs); err != nil {
			return err
		}
	}
	if t.byKernel() {
		if err := s.joinTunnels(t, hosts[0]); err != nil {
			return err
		}
	}
	return s.emulate(ctx, t, hosts)
}

// mesh is a mesh as the engine's testbed sees it.
type mesh struct {
	mu     sync.Mutex
	joined []member
	base   []MeshAnswer // round trips between the machines that are subtracted from the delays of packets
}

// member is one machine of a mesh.
type member struct {
	host netip.Addr
	name string // one name of the host
	call func(context.Context, MeshCall) (MeshAnswer, error)
}

// members returns the machines that have hosts now, ours first.
func (t *Testbed) members() (all []member) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, h := range t.hosts {
		all = append(all, member{h.addr, h.name, t.Mesh})
	}
	for _, h := range slices.Backward(t.remote) { // the latest at an address
		known := slices.ContainsFunc(all, func(m member) bool { return m.host == h.Addr() })
		if !known && h.Lost() == nil {
			all = append(all, member{h.Addr(), h.Name(), h.Mesh})
		}
	}
	slices.SortFunc(all, func(a, b member) int { return a.host.Compare(b.host) })
	return all
}

// each calls all machines at once.
func each(ctx context.Context, all []member, q func(i int) MeshCall) ([]MeshAnswer, error) {
	answers := make([]MeshAnswer, len(all))
	return answers, atOnce(len(all), func(i int) (err error) {
		answers[i], err = all[i].call(ctx, q(i))
		return err
	})
}

// join starts the emulators of all machines as one mesh.
func (m *mesh) join(ctx context.Context, all []member, seed uint64) error {
	m.joined, m.base = nil, nil
	opened, err := each(ctx, all, func(int) MeshCall { return MeshCall{Open: true} })
	if err != nil {
		return err
	}
	key := make([]byte, 32)
	rand.Read(key)
	var peers []link.Peer
	for i, a := range opened {
		peers = append(peers, link.Peer{Host: all[i].host.String(), Addrs: []netip.Addr{all[i].host}, At: a.At,
			MTU: a.MTU})
	}
	_, err = each(ctx, all, func(i int) MeshCall {
		return MeshCall{Join: &link.Options{Seed: seed, Mesh: &link.Mesh{Self: i, Key: key, Peers: peers}}}
	})
	if err == nil {
		m.joined = all
	}
	return err
}

// applyMesh is apply on all machines.
func (t *Testbed) applyMesh(ctx context.Context, spec ShapeSpec, change bool) error {
	m := &t.mesh
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.joined
	if change && all == nil {
		return errNotJoined
	}
	if !change {
		all = t.members()
		same := slices.EqualFunc(all, m.joined, func(a, b member) bool { return a.host == b.host })
		if same {
			_, err := each(ctx, all, func(int) MeshCall { return MeshCall{Stats: true} })
			same = err == nil
		}
		if !same {
			if err := m.join(ctx, all, spec.Seed); err != nil {
				return err
			}
		}
		if err := m.adopt(ctx, spec); err != nil {
			return err
		}
	}
	_, err := each(ctx, all, func(int) MeshCall { return MeshCall{Shape: &spec, Change: change} })
	return err
}

// adopt measures the round trips between the machines and subtracts them from the delays of packets.
func (m *mesh) adopt(ctx context.Context, s ShapeSpec) (err error) {
	m.base = nil
	m.base, err = m.probe(ctx, s)
	return err
}

// probe measures the round trips between all machines, and a second time if they do not suit
// the links: a busy moment of a machine can lengthen one.
func (m *mesh) probe(ctx context.Context, s ShapeSpec) (now []MeshAnswer, err error) {
	for range 2 {
		now, err = each(ctx, m.joined, func(int) MeshCall { return MeshCall{Probe: true, SetTransit: m.base == nil} })
		if err != nil {
			return nil, err
		}
		if err = s.right(m.joined, m.base, now); err == nil {
			return now, nil
		}
	}
	return nil, err
}

// ProbeMesh measures the round trips between the machines of a mesh again: routes may change between trials.
func (t *Testbed) ProbeMesh(ctx context.Context) error {
	spec := t.shapedNow()
	t.mesh.mu.Lock()
	defer t.mesh.mu.Unlock()
	if err := t.mesh.adopt(ctx, spec); err != nil {
		return fmt.Errorf("testbed: measure the ways between machines: %w", err)
	}
	return nil
}

// MeshMoved says which round trip between machines has changed since the last ProbeMesh or
// Shape by more than packets may be late; empty: none.
func (t *Testbed) MeshMoved(ctx context.Context) (trouble string) {
	spec, m := t.shapedNow(), &t.mesh
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.base == nil {
		return ""
	}
	if _, err := m.probe(ctx, spec); err != nil && ctx.Err() == nil {
		return err.Error()
	}
	return ""
}

func (t *Testbed) shapedNow() ShapeSpec {
	t.shape.mu.Lock()
	defer t.shape.mu.Unlock()
	return t.shape.spec
}

// right returns an error if a link's round trip is shorter than the one between the machines or,
// with a base, if a round trip differs from it. Only links between shaped hosts count or, if one
// host is shaped, its links to the others.
func (s ShapeSpec) right(all []member, base, now []MeshAnswer) error {
	named := 0
	for _, m := range all {
		if s.names(m.host.String()) {
			named++
		}
	}
	for i, a := range all {
		for k, b := range all[:i] {
			from, to := a.host.String(), b.host.String()
			if n, o := s.names(from), s.names(to); !(n && o || named == 1 && (n || o)) {
				continue
			}
			w, way := s.Want(from, to), now[i].RTTs[k]
			if base == nil && way > w.LongestWay() {
				return fmt.Errorf("the experiment's link between %s and %s has a round trip of %s (less jitter), and "+
					"that between their machines is %s: raise link.delay, or use machines that are closer",
					a.name, b.name, words.Duration(w.RTT-w.Jitter), words.Duration(way))
			}
			if base != nil && (way-base[i].RTTs[k]).Abs() > w.LatenessLimit() {
				return fmt.Errorf("the round trip between the machines of %s and %s changed from %s to %s", a.name,
					b.name, words.Duration(base[i].RTTs[k]), words.Duration(way))
			}
		}
	}
	return nil
}
