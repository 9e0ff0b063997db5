package engine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/testbed"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// network gives a scenario access to the links of its nodes.
type network struct {
	r       *run
	s       *site
	changed bool    // the links differ from the cell's
	tol     float64 // of the cell's link checks
}

var _ scenario.Network = (*network)(nil)

// Emulated implements scenario.Network.
func (n *network) Emulated() (ok bool, why string) {
	m := n.r.bed.Mode()
	return m.Emulator != "none", m.Why
}

// Traffic implements scenario.Network.
//
// An interface counts a super-packet with one header, although it crosses the link as many
// packets with one header each. If the emulator counts packets, its numbers are used.
func (n *network) Traffic(ctx context.Context) []scenario.Traffic {
	all := make([]scenario.Traffic, len(n.s.hosts))
	stats, emulated, err := n.r.bed.EmulatorStats(ctx)
	for i, h := range n.s.hosts {
		all[i] = scenario.Traffic{Received: math.NaN(), Sent: math.NaN()}
		if err == nil && emulated {
			at := stats.Hosts[h.Addr().String()]
			all[i] = scenario.Traffic{Received: packets(at.Received), Sent: packets(at.Sent)}
		} else if !emulated { // never mix the two counters: their difference is meaningless
			all[i].Received, all[i].Sent = h.Traffic()
		}
	}
	return all
}

// packets returns the bytes of IP packets, without Ethernet framing.
func packets(c link.Count) float64 { return float64(c.Bytes - link.Framing*c.Segments) }

// Check implements scenario.Network.
func (n *network) Check(ctx context.Context, from, to int) (record.LinkCheck, error) {
	return n.r.bed.Check(ctx, n.s.hosts[from], n.s.hosts[to], n.tol)
}

// Change implements scenario.Network.
func (n *network) Change(ctx context.Context, c scenario.NetworkChange) error {
	none := len(c.Rates) == 0 && len(c.Apart) == 0
	if none && !n.changed {
		return nil
	}
	if ok, why := n.Emulated(); !ok {
		return fmt.Errorf("links cannot be changed: %s", why)
	}
	n.changed = true
	if err := n.r.bed.Reshape(ctx, changed(n.r.link.spec, n.s.hosts, c)); err != nil {
		return err
	}
	n.changed = !none
	return nil
}

// undoTime limits restoring the links.
const undoTime = 10 * time.Second

// undo restores the links of the cell. If it fails, the next trial shapes them again.
func (n *network) undo(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	err := n.Change(ctx, scenario.NetworkChange{})
	if err != nil {
		n.r.link.current, n.changed = "", false
	}
	return err
}

// changed applies the changes c to the shape base. Nodes that are apart lose all packets to
// and from the others; everything else about these paths stays the same.
func changed(base testbed.ShapeSpec, hosts []testbed.Host, c scenario.NetworkChange) testbed.ShapeSpec {
	spec := base
	spec.Up, spec.Down = maps.Clone(base.Up), maps.Clone(base.Down)
	for node, rates := range c.Rates {
		at := hosts[node].Addr().String()
		up, down := spec.Up[at], spec.Down[at]
		up.Rate, down.Rate = cmp.Or(rates.Up, up.Rate), cmp.Or(rates.Down, down.Rate)
		spec.Up[at], spec.Down[at] = up, down
	}
	if len(c.Apart) == 0 {
		return spec
	}
	spec.Pairs = maps.Clone(base.Pairs)
	if spec.Pairs == nil {
		spec.Pairs = map[link.Pair]link.Params{}
	}
	for _, node := range c.Apart {
		for other := range hosts {
			if slices.Contains(c.Apart, other) {
				continue
			}
			a, b := hosts[node].Addr().String(), hosts[other].Addr().String()
			for _, p := range []link.Pair{{a, b}, {b, a}} {
				path, ok := base.Pairs[p]
				if up, down := spec.Up[p[0]], spec.Down[p[1]]; !ok {
					path = link.Params{Delay: up.Delay + down.Delay, Jitter: up.Jitter + down.Jitter}
				}
				path.Loss = 1
				spec.Pairs[p] = path
			}
		}
	}
	return spec
}
