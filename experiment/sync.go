package experiment

import (
	"cmp"
	"math"
)

// Sync is the section of the scenario sync: a fresh node gets a chain of blocks from its peers. The
// first value of a list is the default, with which the others are compared.
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
	// of a cell: the options of the system chosen by Vary, as in SystemUse.With
	Options map[string]string `json:"options,omitempty" yaml:"-"`
	Network []string          `json:"network,omitempty" yaml:"-"` // names in Options that do not affect a replay
	// Validate the chain locally, without a network, for the load line.
	Replay bool `json:"replay" default:"true"`
	// Interval at which the fresh node is asked for its progress.
	Poll Duration `json:"poll" default:"auto" zero:"auto" min:"5ms" max:"10s"`
}

// checkSync returns an error for a cell that cannot be executed.
func (c *combination) checkSync(cell *Cell, s *Sync) *Error {
	all := 0
	for _, t := range s.Trouble {
		all += t.Of(s.Peers)
	}
	switch {
	case all > s.Peers:
		return c.impossible("sync.trouble", "add peers", "`%s` is about %d peers, of %d", s.Trouble, all, s.Peers)
	case s.honest() <= 0:
		return c.impossible("sync.trouble", "add peers", "`%s` leaves no peer that has the chain", s.Trouble)
	}
	return c.checkFaults(cell, map[string]int{WhoPeers: s.Peers, WhoNode: 1})
}

// Assumptions of the estimate of a sync. They are rough, and rather too high than too low. Sizes
// and times are those of Sia's blocks and signed payments (core v0.21, a machine with two cores,
// November 2026), rounded.
const (
	// blockBytes and transactionBytes are sizes on the wire.
	blockBytes       = 175.0
	transactionBytes = 550.0
	// blockWork and transactionWork are the times that a node takes to validate and store a block
	// and a transaction, in seconds.
	blockWork       = 0.0002
	transactionWork = 0.0002
	// makeWork is the time to make the chain, as a multiple of that work.
	makeWork = 3.0
	// followWork is the time of a node that gets the chain from others, as a multiple of that work.
	// It allows for a subscriber to the blocks: the option that decides about it is not known here.
	followWork = 2.0
	// startFollow is the time from the start of a fresh node to its first block, in seconds: by
	// default, systems ask their peers every five seconds.
	startFollow = 6.5
	// aroundSync is the time that a trial takes besides the sync, in seconds: checking the peers,
	// changing the links, making and removing the store.
	aroundSync = 1.5
)

// work returns the time to validate and store the chain, in seconds.
func (s *Sync) work() float64 {
	return float64(s.Blocks) * (blockWork + float64(s.Transactions)*transactionWork)
}

// bytes returns the size of the chain on the wire.
func (s *Sync) bytes() float64 {
	return float64(s.Blocks) * (blockBytes + float64(s.Transactions)*transactionBytes)
}

// honest returns how many peers have the chain.
func (s *Sync) honest() int {
	n := s.Peers
	for _, t := range s.Trouble {
		if t.Manner() != "" {
			n -= t.Of(s.Peers)
		}
	}
	return n
}

// estimateSync estimates the time and the bytes of one trial: the waits of a fresh node, then the
// longer of the transfer of the chain over all links at once and the work on it.
func (e *Experiment) estimateSync(c *Cell) CellEstimate {
	s := c.Sync
	est := CellEstimate{Bytes: s.bytes(), Operation: startFollow + math.Max(followWork*s.work(), c.syncLine())}
	took := est.Operation + c.faultSeconds(e.Limits.Stall)
	est.Seconds = math.Min(took, e.Limits.Deadline.Seconds()) + aroundSync
	return est
}

// syncLine returns the time in which the peers that have the chain can send it to the fresh node,
// in seconds, if all rates that are drawn are at their median; 0 if nothing is limited.
func (c *Cell) syncLine() float64 {
	s := c.Sync
	rates := s.Speeds.Draw(s.honest(), func() float64 { return 0.5 })
	next := 0
	for _, t := range s.Trouble {
		for range t.Of(s.Peers) * boolInt(t.Rate != 0) {
			rates[next], next = t.Rate, next+1
		}
	}
	up := 0.0
	for _, r := range rates {
		up += unlimited(float64(cmp.Or(r, c.Link.UpRate())))
	}
	return s.bytes() * 8 / tcpPayload(min(up, unlimited(float64(c.Link.DownRate()))))
}

// Upper estimate of the size of a node's store, from the size of its chain on the wire. The store
// holds the blocks, their supplements, the state and, for a subscriber, an index of all addresses,
// which is the larger part: 10,000 blocks of ten payments, 56 MB on the wire, took 86 MB of
// consensus.db and 272 MB of walletd.sqlite3 and its log. 2000 blocks of the first form, 11.6 MB,
// took 117 MB, because it keeps all unspent outputs and the tree of elements, too. Databases grow
// in steps and are never compacted, so a small chain takes a larger share.
const (
	storeFactor = 11
	storeFloor  = 144 << 20
)

// A RAM disk is larger than its store, because a full one ends a trial.
const (
	ramFactor = 1.25
	ramMargin = 64 << 20
)

// StoreBytes estimates the maximum size of a node's store, with an index, from the size of the
// chain on the wire. It is for chains that are not made yet, and for systems that do not report it.
func StoreBytes(chain float64) float64 { return storeFloor + storeFactor*chain }

// RAMDiskBytes returns the size of a RAM disk for a store of at most that many bytes.
func RAMDiskBytes(store float64) float64 { return ramMargin + ramFactor*store }
