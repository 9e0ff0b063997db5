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

// Sizes of a segment on the wire. Rates count Ethernet framing like the kernel's qdiscs
// (skb->len on an Ethernet device): the 14 bytes of header, without frame check sequence,
// preamble and gap.
const (
	MTU       = 1500
	Framing   = 14
	FullFrame = MTU + Framing
)

// TCPPayloadRate is the payload rate of a TCP stream that fills a link of the
// given wire rate with full segments: rate × payload / (MTU + 14), with payload
// = MTU − IP header − TCP header (20) − timestamp option (10, padded to 12: RFC
// 7323, on by default in Linux). For IPv4 (header 20) that is 1448/1514 =
// 0.9564; for IPv6 (40) 1428/1514 = 0.9432. Bit/s in, bit/s out.
func TCPPayloadRate(wire float64, ipv6 bool) float64 {
	return wire * float64(tcpPayload(ipv6)) / FullFrame
}

func tcpPayload(ipv6 bool) int { return MTU - ipHeader(ipv6) - 20 - 12 }
func udpPayload(ipv6 bool) int { return MTU - ipHeader(ipv6) - 8 }

func ipHeader(ipv6 bool) int {
	if ipv6 {
		return 40
	}
	return 20
}

// BDP is the bandwidth-delay product in bytes.
func BDP(rate float64, rtt time.Duration) int64 { return int64(rate / 8 * rtt.Seconds()) }

// withQueue sets the queue of p, unless it has one, for a path with the given round trip:
// one bandwidth-delay product (the classic rule: a single loss-based flow keeps the
// link busy while it recovers from halving its window), but at least 64 full segments, and
// at least eight super-packets of the size that senders may use here, because otherwise a
// short fast link would drop the tail of every second one. It is 0 if p has no rate.
func (p Params) withQueue(rtt time.Duration) Params {
	switch {
	case p.Rate <= 0:
		p.Queue = 0
	case p.Queue <= 0:
		burst := int64(min(segmentsPerBurst(p.Rate), largestBurst))
		p.Queue = max(BDP(p.Rate, rtt), max(64, 8*burst)*FullFrame)
	}
	return p
}

// largestBurst is the number of full segments in the largest super-packet.
const largestBurst = 1 << 16 / MTU

// segmentsPerBurst returns how many full segments a sender may combine into one
// super-packet, so that it occupies a link of the given rate for at most about 1 ms: the
// link treats a super-packet as a unit.
func segmentsPerBurst(rate float64) int {
	const kernelDefault = 65535
	if rate <= 0 {
		return kernelDefault
	}
	n := rate / 8 * 1e-3 / FullFrame
	return int(min(max(n, 1), kernelDefault))
}
