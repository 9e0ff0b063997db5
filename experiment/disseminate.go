package experiment

import (
	"math"
	"strings"
)

// Disseminate is the section of the scenario disseminate: content spreads from s seeders to l
// leechers, which start together or come and go, with faults.
type Disseminate struct {
	// Nodes of the swarm, seeders included; each a process behind its own link.
	Nodes int `json:"nodes,omitempty" default:"8" min:"2" max:"256" label:"nodes"`
	// Nodes that start with the content, chosen by the seed.
	Seeders int `json:"seeders,omitempty" default:"1" min:"1" max:"255" label:"seeders"`
	// Number of different choices of seeders, used in turn. 0: a new choice in each repetition.
	SeederSets int `json:"seeder_sets" default:"0" min:"0" max:"10000"`
	// Share of the leechers, chosen by the seed, with slower links.
	Slow Fraction `json:"slow,omitempty" default:"0%" label:"slow leechers"`
	// Rate at which slow leechers send.
	SlowUp BitRate `json:"slow_up" default:"link" zero:"link" needs:"slow"`
	// Rate at which slow leechers receive.
	SlowDown BitRate `json:"slow_down" default:"link" zero:"link" needs:"slow"`
	// When leechers start: together, in waves, or one by one.
	Join Join `json:"join,omitzero" zero:"together" label:"join"`
	// How long a leecher that has everything stays and serves.
	Stay Stay `json:"stay" default:"forever" label:"stay"`
	// What goes wrong, and when. A list of faults is one level; a list of lists (or none) is a factor.
	Faults Faults `json:"faults,omitempty" zero:"none" label:"faults"`
	// Start all nodes anew, with empty stores, before each trial.
	Fresh bool `json:"fresh" default:"false"`
	// Interval at which leechers are asked for their progress. auto: 1% of the load line; at most 80 questions per
	// second in all, at least one.
	Poll Duration `json:"poll" default:"auto" zero:"auto" min:"10ms" max:"10s"`
}

// Leechers returns the number of nodes that do not have the content from the beginning.
func (d *Disseminate) Leechers() int { return d.Nodes - d.Seeders }

const giveRate = "give `link` a rate, such as 100Mbit"

// checkDisseminate returns an error for a swarm that cannot be executed.
func (c *combination) checkDisseminate(cell *Cell, s *Disseminate) *Error {
	up, down := cell.Link.UpRate(), cell.Link.DownRate()
	switch {
	case s.Leechers() < 1:
		return c.impossible("disseminate.seeders", "add nodes", "all nodes are seeders")
	case cell.Link.unlimited() && s.Slow > 0:
		return c.impossible("disseminate.slow", giveRate, "slow leechers differ from a rate that is unlimited")
	case s.Slow > 0 && (s.SlowUp == 0 && s.SlowDown == 0 || s.SlowUp > up || s.SlowDown > down):
		return c.impossible("disseminate.slow", "give `slow_up` or `slow_down` a rate below that of the link",
			"slow leechers are not slower than the others")
	}
	return c.checkFaults(cell, map[string]int{"seeders": s.Seeders, "leechers": s.Leechers(), "nodes": s.Nodes})
}

// checkFaults returns an error if a cell cannot have its faults. groups holds the sizes of its
// groups of nodes.
func (c *combination) checkFaults(cell *Cell, groups map[string]int) *Error {
	path, swarm := c.e.Scenario+".faults", cell.Disseminate != nil
	for _, f := range cell.Faults() {
		n, is := groups[f.Who()]
		switch {
		case !is:
			return c.impossible(path, "one of "+strings.Join(sortedKeys(groups), ", "), "there are no %s", f.Who())
		case f.Of(n) > n:
			return c.impossible(path, "name fewer, or a share such as 50%", "`%s` is about more than the %d there are", f,
				n)
		case swarm && f.Kind() == FaultCut && f.Of(n) == groups["nodes"]:
			return c.impossible(path, "cut fewer", "`%s` cuts off all %d nodes", f, n)
		case swarm && f.Kind() == FaultRate && cell.Link.unlimited():
			return c.impossible(path, giveRate, "`%s` changes a rate that is unlimited", f)
		}
	}
	return nil
}

// Assumptions of the estimate of a swarm. They are rough, and rather too high than too low.
const (
	// swarmSlack is the time of a swarm, as a multiple of the load line.
	swarmSlack = 2.0
	// servedSlack is the time of the seeders to send everything themselves, as a multiple of the
	// least possible, if no other node passes anything on.
	servedSlack = 1.2
	// swarmRate is the rate at which one machine moves content between all nodes of a swarm, in
	// bytes per second, even if the links allow more.
	swarmRate = 250e6
	// startNode is the time to start one node of a swarm, in seconds.
	startNode = 1.0
)

// estimateDisseminate estimates the time and the file bytes of one trial: content is made and
// published at the seeders, spread in swarmSlack load lines or as fast as the machine moves it, and
// read back from all leechers. If alone, nodes pass nothing on, and the seeders send everything.
func estimateDisseminate(c *Cell, limits Limits, alone bool) CellEstimate {
	s := c.Disseminate
	size, leechers := float64(c.Data.Size), float64(s.Leechers())
	line := c.LoadLine(s.Leechers(), tcpPayload)
	est := CellEstimate{Bytes: leechers * size, Operation: swarmSlack * line}
	if up := c.Link.UpRate(); alone && up != 0 {
		copies := math.Ceil(leechers / float64(s.Seeders)) // sent by one seeder
		est.Operation = servedSlack * max(line, copies*size*8/tcpPayload(float64(up)))
	}
	est.Operation = math.Max(est.Operation, est.Bytes/swarmRate)
	took := math.Min(est.Operation+c.faultSeconds(limits.Stall), limits.Deadline.Seconds())
	est.Seconds = arriving(s) + took + float64(s.Nodes)*size/loadRate
	if s.Fresh {
		est.Seconds += float64(s.Nodes) * startNode
	}
	return est
}

// faultSeconds returns the time that faults add to a trial: the duration of each fault or, for one
// without an end, the stall. A rate without an end adds nothing.
func (c *Cell) faultSeconds(stall Duration) (more float64) {
	for _, f := range c.Faults() {
		switch {
		case f.For > 0:
			more += f.For.Seconds()
		case f.Kind() != FaultRate:
			more += stall.Seconds()
		}
	}
	return more
}

// arriving returns the time between the start of the first leecher and that of the last one, in
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

// tcpPayload returns the payload of a rate on the wire.
func tcpPayload(wire float64) float64 { return wire * tcpShare }
