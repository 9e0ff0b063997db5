package experiment

import (
	"math"
	"time"
)

// What the estimate of a sync assumes: rough, and rather too much than too little.
const (
	// blockBytes and transactionBytes are what blocks take on the wire.
	blockBytes       = 250.0
	transactionBytes = 400.0
	// blockWork and transactionWork are what a node takes to validate and store
	// them, in seconds.
	blockWork       = 0.0005
	transactionWork = 0.0003
	// makeWork is how many times that it takes to make them.
	makeWork = 2.0
	// subscribed is how many times that it takes with what may follow the chain:
	// which option that is, is not known here.
	subscribed = 2.0
	// startNodeSync is the time from the start of a fresh node's process to its
	// first question, beside its own waits. Seconds.
	startNodeSync = 1.5
	// aroundSync is what a trial takes beside the sync: the peers looked at, links
	// changed, the store made and removed. Seconds.
	aroundSync = 1.5
)

// work is the time in which a chain is validated and stored, in seconds.
func (s *ResolvedSync) work() float64 {
	return float64(s.Blocks) * (blockWork + float64(s.Transactions)*transactionWork)
}

// bytes is the size of a chain on the wire.
func (s *ResolvedSync) bytes() float64 {
	return float64(s.Blocks) * (blockBytes + float64(s.Transactions)*transactionBytes)
}

// estimateSync is the time and the bytes of one trial.
func (e *Experiment) estimateSync(c *Cell) CellEstimate {
	s := c.Sync
	est := CellEstimate{Bytes: s.bytes(), Limit: "machine"}
	took := subscribed * s.work()
	if link := c.syncLink(); link > took {
		took, est.Limit = link, "link"
	}
	est.Operation = startNodeSync + took
	est.Seconds = math.Min(est.Operation, e.Limits.Deadline.Seconds()) + aroundSync
	return est
}

// syncLink is the time that the chain takes from all peers together to the fresh
// node, in seconds.
func (c *Cell) syncLink() float64 {
	if c.Link.Rate == 0 {
		return 0
	}
	return c.Sync.bytes() * 8 / tcpPayload(float64(c.Link.Rate))
}

// What [Cell.PollEvery] keeps to in the scenario sync.
const (
	pollsPerSync    = 200
	longestSyncPoll = 500 * time.Millisecond
)

func (s *ResolvedSync) pollEvery(expected float64) time.Duration {
	if s.Poll != 0 {
		return s.Poll.Std()
	}
	every := time.Duration(expected / pollsPerSync * float64(time.Second)).Truncate(time.Millisecond)
	return min(longestSyncPoll, max(shortestPoll, every))
}
