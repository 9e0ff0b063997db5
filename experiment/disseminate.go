package experiment

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"
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

// Join describes when the leechers of a swarm begin: all together (the zero value), in waves, or by
// a Poisson process.
type Join struct {
	// Leechers at a time; the first wave begins at once.
	Wave int `json:"wave,omitempty" min:"1" max:"256" one:"true" needs:"every"`
	// Time between waves.
	Every Duration `json:"every,omitempty" min:"1ms" needs:"wave"`
	// One by one at this rate, with exponential gaps.
	Poisson OpRate `json:"poisson,omitempty" one:"true"`
}

// Together reports whether all leechers are released at one barrier.
func (j Join) Together() bool { return j == Join{} }

func (j Join) String() string {
	switch {
	case j.Wave > 0:
		return "waves of " + strconv.Itoa(j.Wave) + " every " + j.Every.String()
	case j.Poisson > 0:
		return "poisson " + j.Poisson.String()
	}
	return "together"
}

// Stay is how long a leecher serves others after it has everything: a duration, [Forever], or
// "leave" (not at all).
type Stay string

// Forever means until the trial ends.
const Forever Stay = "forever"

func (s *Stay) parse(text string) error {
	var d Duration
	switch {
	case text == string(Forever) || text == "leave":
		*s = Stay(text)
	case d.parse(text) == nil && d > 0:
		*s = Stay(d.String())
	default:
		return notA("Stay", text, "write `forever`, `leave`, or a time such as `30s`")
	}
	return nil
}

// For returns the duration; 0 if s is not one.
func (s Stay) For() time.Duration {
	var d Duration
	_ = d.parse(string(s))
	return d.Std()
}

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

// LoadLine returns the least time, in seconds, in which any n of the l leechers can have the content,
// if every node sends and receives without pause and nothing is sent in vain: it counts the copies of
// n, and the n-th fastest of the links, while all nodes send. payload returns the payload of a rate on
// the wire, both in bit/s; that of an unlimited link is infinite. The line is valid for trials without
// faults in which all leechers begin together. It is 0 if nothing is limited. For n = l it is
//
//	max(b / Σ up of the seeders, b / slowest down of a leecher, l·b / Σ up of all)
//
// (Mundinger, Weber, Weiss: Optimal scheduling of peer-to-peer file dissemination, J. Scheduling
// 11, 2008; Kumar, Ross: Peer-assisted file distribution, HotWeb 2006, which shows that it is reached
// in the fluid limit).
func (c Cell) LoadLine(n int, payload func(wire float64) float64) float64 {
	d, l := c.Disseminate, c.Disseminate.Leechers()
	rate := func(rates ...BitRate) float64 { return payload(unlimited(float64(cmp.Or(rates...)))) } // the first one given
	seed, all, downs := 0.0, 0.0, make([]float64, l)
	for range d.Seeders {
		seed += rate(c.Link.UpRate())
	}
	slow := d.Slow.Of(l)
	for i := range downs {
		up, down := rate(c.Link.UpRate()), rate(c.Link.DownRate())
		if i < slow {
			up, down = rate(d.SlowUp, c.Link.UpRate()), rate(d.SlowDown, c.Link.DownRate())
		}
		all += up
		downs[i] = down
	}
	slices.Sort(downs)
	bits := float64(c.Data.Size) * 8
	return max(bits/seed, bits/downs[l-n], float64(n)*bits/(all+seed))
}

// Limits of [Cell.PollEvery].
const (
	pollsPerLine = 100 // polls in the time in which the content crosses the links at best
	pollsInAll   = 80  // per second, for all leechers together
	shortestPoll = 10 * time.Millisecond
	longestPoll  = time.Second
	// For the scenario sync.
	pollsPerSync    = 200
	longestSyncPoll = 500 * time.Millisecond
)

// PollEvery returns the interval at which each leecher is asked for its progress: disseminate.poll
// or, if that is auto, a hundredth of the cell's load line, but at most 80 questions per second in
// all, and at least one per second; in whole milliseconds. It is the same for all systems of a
// group.
//
// In the scenario sync it is sync.poll or, if that is auto, a two-hundredth of the expected time of
// the sync, from 10 ms to half a second.
func (c Cell) PollEvery() time.Duration {
	if c.Sync != nil {
		if p := c.Sync.Poll; p != 0 {
			return p.Std()
		}
		every := time.Duration(c.Estimate.Operation / pollsPerSync * float64(time.Second)).Truncate(time.Millisecond)
		return min(longestSyncPoll, max(shortestPoll, every))
	}
	if p := c.Disseminate.Poll; p != 0 {
		return p.Std()
	}
	line := c.LoadLine(c.Disseminate.Leechers(), tcpPayload)
	seconds := max(line/pollsPerLine, float64(c.Disseminate.Leechers())/pollsInAll)
	seconds = math.Ceil(seconds*1000-1e-9) / 1000
	return min(longestPoll, max(shortestPoll, time.Duration(seconds*float64(time.Second))))
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
