package link

import (
	"fmt"
	"time"
)

// Pair is an ordered pair of hosts: from, to.
type Pair = [2]string

// Topology says how the links of a set of hosts behave. A packet from a to b
// passes a's uplink (its queue and rate), the pair's own rate if it has one, the
// propagation delay, and b's downlink (its queue and rate).
//
// Without an entry in Pairs the path's delay is Up[a].Delay + Down[b].Delay,
// jitters are drawn for both, and a segment is lost with probability
// 1 − (1 − Up[a].Loss)(1 − Down[b].Loss). An entry in Pairs replaces delay,
// jitter and loss of that path, and adds its rate and queue as one more
// bottleneck between uplink and downlink.
//
// Hosts that have no entry are not shaped.
type Topology struct {
	Up, Down map[string]Params
	Pairs    map[Pair]Params
}

// Want is what a path should do: the target of a measurement.
type Want struct {
	Any    bool          // whatever it does: it is measured and not judged
	RTT    time.Duration // both ways
	Jitter time.Duration // sum of the half-widths of both ways
	Rate   float64       // bit/s on the wire, from → to; 0: unlimited
	Loss   float64       // per segment, from → to
	// What acknowledgements meet, to → from: the wire rate, 0 for unlimited, and
	// the loss per segment.
	ReturnRate float64
	ReturnLoss float64
}

// Want returns what the path from one host to another and back should do.
func (t Topology) Want(from, to string) Want {
	out, back := t.path(from, to), t.path(to, from)
	return Want{
		RTT:    out.delay + back.delay,
		Jitter: out.jitterUp + out.jitterDown + back.jitterUp + back.jitterDown,
		Rate:   least(t.Up[from].Rate, t.Down[to].Rate, t.Pairs[Pair{from, to}].Rate),
		Loss:   out.loss,

		ReturnRate: least(t.Up[to].Rate, t.Down[from].Rate, t.Pairs[Pair{to, from}].Rate),
		ReturnLoss: back.loss,
	}
}

// RateOnly reports whether links have rates and nothing else.
func (t Topology) RateOnly() bool {
	for _, m := range []map[string]Params{t.Up, t.Down} {
		for _, p := range m {
			if p != (Params{Rate: p.Rate, Queue: p.Queue}) {
				return false
			}
		}
	}
	return len(t.Pairs) == 0
}

// Validate reports the first parameter that no link can have.
func (t Topology) Validate() error {
	check := func(what string, p Params) error {
		switch {
		case p.Rate < 0 || p.Rate != p.Rate:
			return fmt.Errorf("link: %s: rate %v bit/s: must not be negative", what, p.Rate)
		case p.Rate > 0 && p.Rate < minRate:
			return fmt.Errorf("link: %s: rate %v bit/s: the least is %v", what, p.Rate, float64(minRate))
		case p.Delay < 0 || p.Delay > maxDelay:
			return fmt.Errorf("link: %s: delay %v: must be within 0 and %v", what, p.Delay, maxDelay)
		case p.Jitter < 0 || p.Jitter > p.Delay:
			return fmt.Errorf("link: %s: jitter %v: must be within 0 and the delay, %v", what, p.Jitter, p.Delay)
		case p.Loss < 0 || p.Loss > 1 || p.Loss != p.Loss:
			return fmt.Errorf("link: %s: loss %v: must be within 0 and 1", what, p.Loss)
		case p.Queue < 0:
			return fmt.Errorf("link: %s: queue %d bytes: must not be negative", what, p.Queue)
		}
		return nil
	}
	for h, p := range t.Up {
		if err := check("uplink of "+h, p); err != nil {
			return err
		}
	}
	for h, p := range t.Down {
		if err := check("downlink of "+h, p); err != nil {
			return err
		}
	}
	for k, p := range t.Pairs {
		if err := check("path "+k[0]+" → "+k[1], p); err != nil {
			return err
		}
		if k[0] == k[1] {
			return fmt.Errorf("link: path %s → %s: a host has no link to itself", k[0], k[1])
		}
	}
	return nil
}

const (
	minRate  = 1e3              // bit/s: a full segment takes 12 s
	maxDelay = 30 * time.Second // a day of fat packets in flight is a typo
)

// pathParams is what happens between the uplink and the downlink queue.
type pathParams struct {
	delay                time.Duration
	jitterUp, jitterDown time.Duration // two independent draws
	loss                 float64
	rate                 float64 // of the pair alone
	queue                int64
}

func (t Topology) path(from, to string) pathParams {
	if p, ok := t.Pairs[Pair{from, to}]; ok {
		return pathParams{p.Delay, p.Jitter, 0, p.Loss, p.Rate, p.Queue}
	}
	u, d := t.Up[from], t.Down[to]
	return pathParams{
		delay:    u.Delay + d.Delay,
		jitterUp: u.Jitter, jitterDown: d.Jitter,
		loss: u.Loss + d.Loss - u.Loss*d.Loss,
	}
}

// resolve fills every queue that is 0 with its default for these hosts.
func (t Topology) resolve(hosts []string) Topology {
	r := Topology{Up: map[string]Params{}, Down: map[string]Params{}, Pairs: map[Pair]Params{}}
	for _, h := range hosts {
		var rtt time.Duration // of the longest path through h's access link
		if !t.Up[h].queues() && !t.Down[h].queues() {
			r.Up[h], r.Down[h] = t.Up[h].withQueue(0), t.Down[h].withQueue(0)
			continue
		}
		for _, o := range hosts {
			if o != h {
				rtt = max(rtt, t.path(h, o).delay+t.path(o, h).delay)
			}
		}
		r.Up[h], r.Down[h] = t.Up[h].withQueue(rtt), t.Down[h].withQueue(rtt)
	}
	for k, p := range t.Pairs {
		rtt := t.path(k[0], k[1]).delay + t.path(k[1], k[0]).delay
		r.Pairs[k] = p.withQueue(rtt)
	}
	return r
}

// least is the smallest of the rates that are limits at all; 0 when none is.
func least(rates ...float64) float64 {
	var r float64
	for _, x := range rates {
		if x > 0 && (r == 0 || x < r) {
			r = x
		}
	}
	return r
}

// queues reports whether the size of p's queue depends on how long the paths are.
func (p Params) queues() bool { return p.QueueBytes(0) != p.QueueBytes(maxDelay) }
