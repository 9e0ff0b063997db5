// Package link emulates and verifies links: rate, delay, jitter, loss and queue, per
// direction and per pair of hosts. It uses the kernel's netem where that exists, and
// otherwise a user-space emulator on packet sockets.
package link

import (
	"maps"
	"slices"
	"time"
)

// Params describes one direction of a host's access link, or of a pair of hosts. The zero
// value is an unshaped link.
type Params struct {
	Rate   float64       // bit/s on the wire (Ethernet framing included); 0: unlimited
	Delay  time.Duration // one way
	Jitter time.Duration // uniform ±, without reordering
	Loss   float64       // probability per wire segment, 0…1
	Queue  int64         // bytes; 0: one bandwidth-delay product or more, see withQueue
}

// Shaped reports whether p changes anything.
func (p Params) Shaped() bool { return p != Params{} }

// Pair is an ordered pair of hosts: from, to.
type Pair = [2]string

// Topology describes the links of a set of hosts. A packet from a to b passes a's uplink
// (its queue and rate), the propagation delay, and b's downlink (its queue and rate).
//
// Without an entry in Pairs the path's delay is Up[a].Delay + Down[b].Delay,
// its jitter the sum of both, and a segment is lost with probability
// 1 − (1 − Up[a].Loss)(1 − Down[b].Loss). An entry in Pairs replaces delay,
// jitter and loss of that path; it has no rate.
//
// Hosts without an entry are not shaped.
type Topology struct {
	Up, Down map[string]Params
	Pairs    map[Pair]Params
}

// Want is the expected behaviour of a path, for a measurement.
type Want struct {
	Any    bool          // anything is accepted: the path is measured but not judged
	RTT    time.Duration // both ways
	Jitter time.Duration // sum of the half-widths of both ways
	Rate   float64       // bit/s on the wire, from → to; 0: unlimited
	Loss   float64       // per segment, from → to
	// For acknowledgements, to → from: the wire rate (0: unlimited) and the loss per
	// segment.
	ReturnRate float64
	ReturnLoss float64
}

// Want returns the expected behaviour of the path from one host to another and back.
func (t Topology) Want(from, to string) Want {
	out, back := t.path(from, to), t.path(to, from)
	return Want{
		RTT:    out.Delay + back.Delay,
		Jitter: out.Jitter + back.Jitter,
		Rate:   least(t.Up[from].Rate, t.Down[to].Rate),
		Loss:   out.Loss,

		ReturnRate: least(t.Up[to].Rate, t.Down[from].Rate),
		ReturnLoss: back.Loss,
	}
}

// Shaped reports whether t changes anything.
func (t Topology) Shaped() bool { return t.any(Params.Shaped) }

// RateOnly reports whether links have only rates.
func (t Topology) RateOnly() bool {
	return len(t.Pairs) == 0 && !t.any(func(p Params) bool { return p != Params{Rate: p.Rate, Queue: p.Queue} })
}

func (t Topology) any(is func(Params) bool) bool {
	all := slices.AppendSeq(slices.Collect(maps.Values(t.Up)), maps.Values(t.Down))
	return slices.ContainsFunc(slices.AppendSeq(all, maps.Values(t.Pairs)), is)
}

// path returns what happens between the uplink and the downlink queue.
func (t Topology) path(from, to string) Params {
	if p, ok := t.Pairs[Pair{from, to}]; ok {
		return p
	}
	u, d := t.Up[from], t.Down[to]
	return Params{Delay: u.Delay + d.Delay, Jitter: u.Jitter + d.Jitter, Loss: u.Loss + d.Loss - u.Loss*d.Loss}
}

// resolve fills every queue that is 0 with its default for these hosts.
func (t Topology) resolve(hosts []string) Topology {
	r := Topology{Up: map[string]Params{}, Down: map[string]Params{}, Pairs: t.Pairs}
	for _, h := range hosts {
		var rtt time.Duration // of the longest path through h's access link
		for _, o := range hosts {
			if o != h {
				rtt = max(rtt, t.path(h, o).Delay+t.path(o, h).Delay)
			}
		}
		r.Up[h], r.Down[h] = t.Up[h].withQueue(rtt), t.Down[h].withQueue(rtt)
	}
	return r
}

// slowest returns the lowest rate on any path from a host.
func (t Topology) slowest(from string) float64 {
	rate := t.Up[from].Rate
	for to, p := range t.Down {
		if to != from {
			rate = least(rate, p.Rate)
		}
	}
	return rate
}

// least returns the lower of two rates, where 0 means unlimited.
func least(a, b float64) float64 {
	if a > 0 && b > 0 {
		return min(a, b)
	}
	return max(a, b)
}
