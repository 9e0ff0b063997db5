package experiment

import (
	"fmt"
	"math"
	"time"
)

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
// then the chain over all links at once or, where that takes longer, its work. A
// fault costs as long as it lasts, the death of all peers the stall, a lower rate
// what it takes longer to send at.
func (e *Experiment) estimateSync(c *Cell) CellEstimate {
	s := c.Sync
	est := CellEstimate{Bytes: s.bytes(), Limit: "machine"}
	moving := followWork * s.work()
	link := c.syncLine()
	if link > moving {
		moving, est.Limit = link, "link"
	}
	est.Operation = startFollow + moving
	took := est.Operation + c.faultSeconds(est.Operation, link, e.Limits.Stall)
	est.Seconds = math.Min(took, e.Limits.Deadline.Seconds()) + aroundSync
	return est
}

// syncLine is the least time in which the peers that have the chain can send it to
// the fresh node, in seconds, when rates that are drawn are spread evenly over
// their distribution; 0 where nothing is limited.
func (c *Cell) syncLine() float64 {
	s := c.Sync
	n, at := s.honest(), 0
	evenly := func() float64 { at++; return (float64(at) - 0.5) / float64(n) }
	rates := s.Speeds.Draw(n, evenly)
	for _, t := range s.Trouble {
		for i := range min(n, t.Of(s.Peers)) {
			if t.Rate != 0 {
				rates[i] = t.Rate
			}
		}
	}
	up := 0.0
	for _, r := range rates {
		if r == 0 {
			r = c.Link.UpRate()
		}
		up += unlimited(float64(r))
	}
	return s.bytes() * 8 / tcpPayload(min(up, unlimited(float64(c.Link.DownRate()))))
}

// syncSetup is what a system takes beside its trials, in seconds: peers started, and each
// chain made and validated.
func (p *Plan) syncSetup(system string) float64 {
	peers, seconds, seen := 0, 0.0, map[string]bool{}
	for _, c := range p.Cells {
		s := c.Sync
		chain := fmt.Sprintf("%d × %d %s", s.Blocks, s.Transactions, s.Form)
		if c.System == system && s.Blocks > 0 && !seen[chain] {
			seen[chain] = true
			seconds += (makeWork + followWork) * s.work()
		}
		if c.System == system {
			peers = max(peers, s.Peers)
		}
	}
	return seconds + float64(peers)*startNode
}

// What [Cell.PollEvery] keeps to in the scenario sync.
const (
	pollsPerSync    = 200
	longestSyncPoll = 500 * time.Millisecond
)

func (s *Sync) pollEvery(expected float64) time.Duration {
	if s.Poll != 0 {
		return s.Poll.Std()
	}
	if s.Blocks == 0 {
		return longestSyncPoll
	}
	every := time.Duration(expected / pollsPerSync * float64(time.Second)).Truncate(time.Millisecond)
	return min(longestSyncPoll, max(shortestPoll, every))
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
