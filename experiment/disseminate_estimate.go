package experiment

import (
	"math"
	"slices"
)

// What the estimate of a swarm assumes: rough, and rather too much than too
// little.
const (
	// swarmSlack is how many load lines a swarm takes.
	swarmSlack = 2.0
	// servedSlack is how many times the seeders take what they need to send
	// everything themselves, where no other node passes anything on.
	servedSlack = 1.2
	// swarmRate is how fast one machine moves content between all nodes of a
	// swarm together, in bytes per second, whatever their links would carry.
	swarmRate = 250e6
	// startNode is what starting one node of a swarm takes, in seconds.
	startNode = 1.0
)

// estimateDisseminate is the time and the file bytes of one trial: content made
// and published at the seeders, spread in swarmSlack load lines or as fast as
// the machine moves it, and read back from all leechers. Where nodes pass nothing
// on (alone), the seeders send everything. A fault costs as long as it lasts, a
// lower rate what it takes longer to send at; one that comes after everybody is
// done costs nothing.
func estimateDisseminate(c *Cell, limits Limits, alone bool) CellEstimate {
	s := c.Disseminate
	size, leechers := float64(c.Data.Size), float64(s.Leechers())
	est := CellEstimate{Bytes: leechers * size, Limit: "link"}
	line := swarmSlack * c.LinkSeconds(alone)
	if alone {
		line = servedSlack * c.LinkSeconds(alone)
	}
	est.Operation = line
	if moved := est.Bytes / swarmRate; moved > line {
		est.Operation, est.Limit = moved, "machine"
	}
	took := est.Operation + c.faultSeconds(est.Operation, line, limits.Stall)
	est.Seconds = arriving(s) + math.Min(took, limits.Deadline.Seconds()) + float64(s.Nodes)*size/loadRate
	if s.Fresh {
		est.Seconds += float64(s.Nodes) * startNode
	}
	return est
}

// faultSeconds is how much longer its faults make a trial of so many seconds, line of them
// at the links' rate. A swarm without a rate has no faults of rates.
func (c *Cell) faultSeconds(seconds, line float64, stall Duration) (more float64) {
	for _, f := range c.faults() {
		left := 1.0 // of the content
		if !f.At.Timed {
			left -= float64(f.At.Share)
		}
		switch {
		case c.tooLate(f, seconds):
		case f.For > 0:
			more += f.For.Seconds()
		case f.Kind() == FaultRate && c.Link.UpRate() > 0:
			more += left * line * max(0, float64(c.Link.UpRate()/f.Rate)-1)
		case f.Kind() == FaultRate: // of a sync over links without a rate
			more += left * c.Sync.bytes() * 8 / tcpPayload(float64(f.Rate))
		case c.Sync == nil || f.Of(c.Sync.Peers) >= c.Sync.honest():
			more += stall.Seconds()
		}
	}
	return more
}

// LinkSeconds is the least time in which the links let all leechers have the content;
// 0: they have no rate. alone: the nodes pass nothing on.
func (c *Cell) LinkSeconds(alone bool) float64 {
	if alone {
		return math.Max(c.LoadLine(tcpPayload), c.served())
	}
	return c.LoadLine(tcpPayload)
}

// alone reports whether the nodes of a system pass nothing on.
func (e *Experiment) alone(system string) bool {
	return slices.ContainsFunc(e.Systems, func(s SystemUse) bool { return s.Name == system && s.Alone })
}

// served is the least time, in seconds, in which the seeders alone can send the
// content to all leechers, who are spread evenly over them:
//
//	⌈l / s⌉ · b / up of a seeder
func (c *Cell) served() float64 {
	up := c.Link.UpRate()
	if up == 0 {
		return 0
	}
	s := c.Disseminate
	each := math.Ceil(float64(s.Leechers()) / float64(s.Seeders))
	return each * float64(c.Data.Size) * 8 / tcpPayload(float64(up))
}

// tooLate reports whether the fault has a moment that comes when all leechers, or
// the fresh node, are done, if each takes so many seconds.
func (c *Cell) tooLate(f Fault, seconds float64) bool {
	if c.Disseminate != nil {
		seconds += arriving(c.Disseminate)
	}
	return f.At.Timed && f.At.After.Seconds() >= seconds
}

// arriving is the time from the first leecher that may begin to the last one, in
// seconds.
func arriving(s *Disseminate) float64 {
	j := s.Join
	leechers := float64(s.Leechers())
	switch {
	case j.Together():
		return 0
	case j.Poisson > 0:
		return leechers / float64(j.Poisson)
	}
	return (math.Ceil(leechers/float64(j.Wave)) - 1) * j.Every.Seconds()
}

// tcpPayload is what of a rate on the wire is payload.
func tcpPayload(wire float64) float64 { return wire * tcpShare }

// largestSwarm is how many nodes the largest cell of a system has: so many are
// started, and live through all of its trials.
func (p *Plan) largestSwarm(system string) int {
	n := 0
	for _, c := range p.Cells {
		if c.System == system && c.Disseminate != nil {
			n = max(n, c.Disseminate.Nodes)
		}
	}
	return n
}
