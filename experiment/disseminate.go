package experiment

import "strings"

// Disseminate is the section of the scenario disseminate: content spreads from
// s seeders to l leechers, who start together or come and go, with faults.
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
	// Goal: how much longer than the baseline a system may take. none: the verdict compares with the baseline.
	Gate Fraction `json:"gate" default:"none" zero:"none"`
}

// Leechers is how many nodes do not have the content from the beginning.
func (d *Disseminate) Leechers() int { return d.Nodes - d.Seeders }

const giveRate = "give `link` a rate, such as 100Mbit"

// checkDisseminate refuses swarms that cannot be had.
func (c *combination) checkDisseminate(cell *Cell, s *Disseminate) *Error {
	up, down := cell.Link.UpRate(), cell.Link.DownRate()
	switch {
	case s.Leechers() < 1:
		return c.impossible("disseminate.seeders", "add nodes", "%s of %s leave no leecher",
			plural(s.Seeders, "seeder"), plural(s.Nodes, "node"))
	case cell.Link.unlimited() && s.Slow > 0:
		return c.impossible("disseminate.slow", giveRate, "slow leechers differ from a rate that is unlimited")
	case s.Slow > 0 && s.SlowUp == 0 && s.SlowDown == 0:
		return c.impossible("disseminate.slow", "add `slow_up: 1Mbit`, `slow_down: 1Mbit`, or both",
			"slow leechers are not slower than the others in anything")
	case s.Slow > 0 && s.SlowDown > down:
		return c.impossible("disseminate.slow_down", "give a lower rate",
			"slow leechers would receive at %s, the others at %s", s.SlowDown, down)
	case s.Slow > 0 && s.SlowUp > up:
		return c.impossible("disseminate.slow_up", "give a lower rate",
			"slow leechers would send at %s, the others at %s", s.SlowUp, up)
	}
	return c.checkFaults(cell, map[string]int{"seeders": s.Seeders, "leechers": s.Leechers(), "nodes": s.Nodes})
}

// checkFaults refuses faults that a cell with such groups of nodes cannot have.
func (c *combination) checkFaults(cell *Cell, groups map[string]int) *Error {
	path, deadline := c.e.Scenario+".faults", c.e.Limits.Deadline.Seconds()
	begins, random := 0.0, false // with random arrivals it is unknown when the last one comes
	if s := cell.Disseminate; s != nil {
		begins, random = arriving(s), s.Join.Poisson != 0
	}
	for _, f := range cell.faults() {
		n, is := groups[f.Who()]
		switch {
		case !is:
			return c.impossible(path, "one of "+strings.Join(sortedKeys(groups), ", "), "the scenario has no %s",
				f.Who())
		case f.Of(n) > n:
			return c.impossible(path, "name fewer, or a share such as 50%",
				"the fault `%s` needs %d %s, and there is only %d", f, f.Count.Count, f.Who(), n)
		case cell.Disseminate != nil && f.Kind() == FaultCut && f.Of(n) == groups["nodes"]:
			return c.impossible(path, "cut fewer",
				"the fault `%s` cuts off all %d nodes, so the cut has no other side", f, n)
		case !random && f.At.Timed && deadline > 0 && f.At.After.Seconds() >= begins+deadline:
			return c.impossible(path, "begin it earlier, or raise limits.deadline",
				"the fault `%s` begins when the deadline is over, which is %s (limits.deadline)", f,
				c.e.Limits.Deadline)
		case cell.Disseminate != nil && f.Kind() == FaultRate && cell.Link.unlimited():
			return c.impossible(path, giveRate, "the fault `%s` changes a rate that is unlimited", f)
		}
	}
	return nil
}
