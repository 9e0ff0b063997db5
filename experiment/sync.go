package experiment

import (
	"cmp"
	"math"
)

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

// What the estimate of a sync assumes: rough, and rather too much than too little.
// Sizes and times are those of Sia's blocks and signed payments (core v0.21, a
// machine with two cores, November 2026), rounded.
const (
	// blockBytes and transactionBytes are what blocks take on the wire.
	blockBytes       = 175.0
	transactionBytes = 550.0
	// blockWork and transactionWork are what a node takes to validate and store
	// them, in seconds.
	blockWork       = 0.0002
	transactionWork = 0.0002
	// makeWork is how many times that it takes to make them.
	makeWork = 3.0
	// followWork is how many times that a node takes while it gets them from others
	// and, perhaps, something subscribes to them: which option decides about that
	// is not known here.
	followWork = 2.0
	// startFollow is the time from the start of a fresh node to its first block: systems
	// ask their peers every five seconds where nothing else is said. Seconds.
	startFollow = 6.5
	// aroundSync is what a trial takes beside the sync: the peers looked at, the
	// links changed, the store made and removed. Seconds.
	aroundSync = 1.5
)

// work is the time in which the chain is validated and stored, in seconds.
func (s *Sync) work() float64 {
	return float64(s.Blocks) * (blockWork + float64(s.Transactions)*transactionWork)
}

// bytes is the size of the chain on the wire.
func (s *Sync) bytes() float64 {
	return float64(s.Blocks) * (blockBytes + float64(s.Transactions)*transactionBytes)
}

// honest is how many peers have the chain.
func (s *Sync) honest() int {
	n := s.Peers
	for _, t := range s.Trouble {
		if t.Manner() != "" {
			n -= t.Of(s.Peers)
		}
	}
	return n
}

// estimateSync is the time and the bytes of one trial: the waits of a fresh node,
// then the chain over all links at once or, where that takes longer, its work.
func (e *Experiment) estimateSync(c *Cell) CellEstimate {
	s := c.Sync
	est := CellEstimate{Bytes: s.bytes(), Limit: "machine"}
	moving := followWork * s.work()
	link := c.syncLine()
	if link > moving {
		moving, est.Limit = link, "link"
	}
	est.Operation = startFollow + moving
	took := est.Operation + c.faultSeconds(e.Limits.Stall)
	est.Seconds = math.Min(took, e.Limits.Deadline.Seconds()) + aroundSync
	return est
}

// syncLine is the time in which the peers that have the chain can send it to the fresh
// node, in seconds, if rates that are drawn were their median; 0 where nothing is limited.
func (c *Cell) syncLine() float64 {
	s := c.Sync
	rates := s.Speeds.Draw(s.honest(), func() float64 { return 0.5 })
	for _, t := range s.Trouble {
		for i := range min(len(rates), t.Of(s.Peers)) {
			rates[i] = cmp.Or(t.Rate, rates[i])
		}
	}
	up := 0.0
	for _, r := range rates {
		up += unlimited(float64(cmp.Or(r, c.Link.UpRate())))
	}
	return s.bytes() * 8 / tcpPayload(min(up, unlimited(float64(c.Link.DownRate()))))
}

// A node's store by the size of its chain on the wire: at most, roughly. It holds
// the blocks, their supplements, the state and, where something subscribes, an
// index of all addresses, which is the larger part: 10,000 blocks of ten payments,
// 56 MB on the wire, took 86 MB of consensus.db and 272 MB of walletd.sqlite3 and
// its log; 2000 of the first form, 11.6 MB, took 117 MB, as that keeps all unspent
// outputs and the tree of elements, too. Databases grow in steps and are never compacted, so that a small chain
// takes more than its share.
const (
	storeFactor = 11
	storeFloor  = 144 << 20
)

// A RAM disk is larger than the store that it is for: one that is full ends a trial.
const (
	ramFactor = 1.25
	ramMargin = 64 << 20
)

// StoreBytes is about the most that the store of a node takes which has a chain of so
// many bytes on the wire, and an index of it. It is for chains that are not made yet,
// and for systems that do not report it.
func StoreBytes(chain float64) float64 { return storeFloor + storeFactor*chain }

// RAMDiskBytes is the size of a RAM disk for a store that takes at most so many bytes.
func RAMDiskBytes(store float64) float64 { return ramMargin + ramFactor*store }
