package sync

import (
	_ "embed"
	"math"
	"slices"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
)

//go:embed metrics.txt
var definitions string

// Metrics of a trial.
func (Scenario) Metrics() []record.Metric {
	return append(scenario.Definitions(definitions, "sync"), scenario.Machine()...)
}

// Names of details of the kind [record.DetailFollower]. A value that the node does not report has none.
const (
	followerChainBytes = "chain_bytes"    // of the chain that it is to have
	followerChain      = "chain_blocks"   // likewise
	followerOpening    = "opening_height" // in the first poll that reported a block beyond those of its making
	followerGap        = "gap"            // seconds: longest time in which something could have happened unseen
	followerWire       = "link_received"  // bytes that crossed its link towards it until it could serve
	followerConnected  = "connected"      // peers, most at a poll
	followerCommits    = "commits"        // over all its starts, as those that follow
	followerTimedOut   = "timed_out"      // requests for blocks
	followerFailed     = "failed"         // requests for blocks, for other reasons
	followerReplay     = "replay"         // seconds
	followerReplayCPU  = "replay_cpu"     // seconds
)

// syncFacts are the metrics that follow from the node's operations and from what it
// said of itself.
func syncFacts(in *scenario.Measured, put func(string, float64)) {
	none := record.Op{Outcome: record.Cancelled}
	chain, serve := none, none
	for op := range in.Ops {
		switch op.Kind {
		case record.OpSync:
			chain = op
		case record.OpServe:
			serve = op
		}
	}
	syncTimes(in, chain, serve, put)
	for key, name := range map[string]string{"resolution": followerGap, "peers_connected": followerConnected,
		"commits": followerCommits, "timeouts": followerTimedOut, "replay": followerReplay,
		"replay_cpu": followerReplayCPU} {
		put(key, follower(in, name))
	}
	put("rerequests", follower(in, followerTimedOut)+follower(in, followerFailed))
	if blocks := in.EachDetail(record.DetailPeerBlocks); len(blocks) > 0 {
		ofPeers(blocks, chain.Outcome == record.OK, follower(in, followerChain), put)
	}
	switch {
	case serve.Outcome == record.OK:
		put("ok_rate", 1)
		put("wire_bytes", follower(in, followerWire))
	case serve.Outcome.Finished() || serve.Outcome == record.Deadline:
		put("ok_rate", 0)
	}
}

// ofPeers are the metrics that follow from the blocks of each peer; none where those of one are not known.
func ofPeers(blocks []float64, whole bool, chain float64, put func(string, float64)) {
	useful, delivered, most := 0.0, 0.0, slices.Max(blocks)
	for _, n := range blocks {
		delivered += n
		if n > 0 {
			useful++
		}
	}
	if math.IsNaN(delivered) {
		return
	}
	put("useful_share", useful/float64(len(blocks)))
	put("peer_share_max", most/delivered)
	if whole {
		put("duplicates", max(0, delivered-chain))
	}
}

// follower is what the node said of itself; NaN, which is no metric, where it did not.
func follower(in *scenario.Measured, name string) float64 {
	return in.Detail(record.DetailFollower, name)
}

// syncTimes are the times, of a node that came to them.
func syncTimes(in *scenario.Measured, chain, serve record.Op, put func(string, float64)) {
	took := func(from, to int64) float64 { return float64(to-from) / 1e9 }
	followed := follower(in, followerChain) - follower(in, followerOpening)
	if serve.FirstByte > 0 {
		put("first_block", took(serve.Intended, serve.FirstByte))
	}
	if chain.Outcome == record.OK {
		put("chain_time", took(chain.Intended, chain.LastByte))
		if seconds := took(serve.FirstByte, chain.LastByte); followed > 0 && seconds > 0 {
			put("block_rate", followed/seconds)
			put("byte_rate", followed/follower(in, followerChain)*follower(in, followerChainBytes)/seconds)
		}
	}
	if serve.Outcome == record.OK {
		put("sync_time", took(serve.Intended, serve.LastByte))
		put("net_time", took(serve.FirstByte, serve.LastByte))
		put("index_lag", took(chain.LastByte, serve.LastByte))
	}
}
