package experiment

// Sync is the section of the scenario sync: a fresh node gets a chain of blocks
// from its peers. The first value of a list is what the node is compared with: the
// default; the others are what is tried.
type Sync struct {
	// Blocks of the chain, which is built once and kept.
	Blocks int `json:"blocks,omitempty" default:"3000" min:"2" max:"1000000" label:"blocks"`
	// Transactions in each block.
	Transactions int `json:"transactions,omitempty" default:"10" min:"0" max:"2000" label:"transactions"`
	// Version of blocks and transactions, for systems that have both.
	Form string `json:"form,omitempty" default:"v2" enum:"v1,v2" label:"form"`
	// Peers that have the chain, each a process behind its own link.
	Peers int `json:"peers,omitempty" default:"1" min:"1" max:"64" label:"peers"`
	// Rates at which the peers send.
	Speeds Speeds `json:"speeds,omitzero" zero:"link" label:"speeds"`
	// Peers of little use. A list of groups is one level; a list of lists (or none) is a factor.
	Trouble Troubles `json:"trouble,omitempty" zero:"none" label:"trouble"`
	// Store of the fresh node: the disk, or a RAM disk made for the trial.
	Storage string `json:"storage,omitempty" default:"disk" enum:"disk,ram" label:"storage"`
	// What goes wrong, and when.
	Faults Faults `json:"faults,omitempty" zero:"none" label:"faults"`
	// Options of the systems as factors: each with its values (the first is the default), or a name of your own
	// with named sets of options.
	Vary map[string]Varied `json:"vary,omitempty"`
	// of a cell: those of the system that Vary chose, as in SystemUse.With
	Options map[string]string `json:"options,omitempty" yaml:"-"`
	Network []string          `json:"network,omitempty" yaml:"-"` // of Options, those that a replay does not depend on
	// Validate the chain locally, without a network, for the load line.
	Replay bool `json:"replay" default:"true"`
	// Interval at which the fresh node is asked for its progress.
	Poll Duration `json:"poll" default:"auto" zero:"auto" min:"5ms" max:"10s"`
}

// checkSync refuses cells that cannot be had.
func (c *combination) checkSync(cell *Cell, s *Sync) *Error {
	useless, all := 0, 0
	for _, t := range s.Trouble {
		n := t.Of(s.Peers)
		all += n
		if t.Manner() != "" {
			useless += n
		}
		if up := cell.Link.UpRate(); t.Rate != 0 && !s.Speeds.Given() && up != 0 && t.Rate >= up {
			return c.impossible("sync.trouble", "give a lower rate",
				"peers `%s` are not slower than their links, which have %s", t, up)
		}
	}
	switch {
	case all > s.Peers:
		return c.impossible("sync.trouble", "add peers", "`%s` is about %s, and there is only %d", s.Trouble,
			plural(all, "peer"), s.Peers)
	case useless >= s.Peers:
		return c.impossible("sync.trouble", "add peers", "`%s` leaves no peer that has the chain", s.Trouble)
	}
	return c.checkFaults(cell, map[string]int{WhoPeers: s.Peers, WhoNode: 1})
}
