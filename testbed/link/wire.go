package link

import "time"

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
