package experiment

import "fmt"

// sync reads what is not typed by the format itself, and checks what a sync needs
// beside its section.
func (d *decoder) sync(e *Experiment) {
	d.vary(e)
	d.faultsAbout(e, "sync.faults", WhoPeers, WhoNode)
	d.started(e)
}

// started refuses attached nodes: a sync is timed from the start of a node without a chain.
func (d *decoder) started(e *Experiment) {
	for i, use := range e.Systems {
		if path := fmt.Sprintf("systems[%d]", i); use.Mode == "attach" && d.ok("systems") {
			d.fail(path, d.first(path+".mode", path+".use", path), "a node that runs already is watched by `plimsoll collect "+use.Use+"`",
				"system `%s` is attached, and a sync starts its nodes", use.Name)
		}
	}
}

// checkSync refuses cells that cannot be had.
func (c *combination) checkSync(cell *Cell, s *Sync) *cellError {
	const leave = "add peers, or leave the cell out with `where`"
	useless, all := 0, 0
	for _, t := range s.Trouble {
		n := t.Of(s.Peers)
		all += n
		if t.Manner() != "" {
			useless += n
		}
		if up := cell.Link.UpRate(); t.Rate != 0 && !s.Speeds.Given() && up != 0 && t.Rate >= up {
			return c.impossible("sync.trouble", "give a lower rate", "peers `%s` are not slower than their links, which have %s", t, up)
		}
	}
	switch {
	case all > s.Peers:
		return c.impossible("sync.trouble", leave, "`%s` is about %s, and there is only %d", s.Trouble, plural(all, "peer"), s.Peers)
	case useless >= s.Peers:
		return c.impossible("sync.trouble", leave, "`%s` leaves no peer that has the chain", s.Trouble)
	}
	return c.checkFaults(cell, map[string]int{WhoPeers: s.Peers, WhoNode: 1})
}
