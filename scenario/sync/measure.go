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

// Metrics implements Scenario.
func (Scenario) Metrics() []record.Metric {
	return append(scenario.Definitions(definitions, "sync"), scenario.Machine()...)
}

// Names of details of the kind [record.DetailFollower]. Values that the node does not report are
// missing.
const (
	followerChainBytes = "chain_bytes"    // size of the chain to sync
	followerChain      = "chain_blocks"   // number of its blocks
	followerChainTime  = "chain_time"     // seconds from its release until it had the chain
	followerOpening    = "opening_height" // height in the first poll that reported a block beyond the initial ones
	followerGap        = "gap"            // seconds: longest time in which something could have happened unseen
	followerConnected  = "connected"      // largest number of peers in a poll
	followerCommits    = "commits"        // these and the next two are missing if a fault killed it
	followerTimedOut   = "timed_out"      // requests for blocks that timed out
	followerFailed     = "failed"         // requests for blocks that failed otherwise
	followerReplay     = "replay"         // seconds
	followerReplayCPU  = "replay_cpu"     // CPU seconds
)

// syncFacts puts the metrics of the node's operation and of its own reports.
func syncFacts(in *scenario.Measured, put func(string, float64)) {
	serve, chain := record.Op{Outcome: record.Cancelled}, follower(in, followerChainTime)
	for op := range in.Ops {
		serve = op
	}
	syncTimes(in, chain, serve, put)
	for key, name := range map[string]string{"resolution": followerGap, "peers_connected": followerConnected,
		"commits": followerCommits, "timeouts": followerTimedOut, "replay": followerReplay,
		"replay_cpu": followerReplayCPU} {
		put(key, follower(in, name))
	}
	put("rerequests", follower(in, followerTimedOut)+follower(in, followerFailed))
	if blocks := in.EachDetail(record.DetailPeerBlocks); len(blocks) > 0 {
		ofPeers(blocks, !math.IsNaN(chain), follower(in, followerChain), put)
	}
	switch {
	case serve.Outcome == record.OK:
		put("ok_rate", 1)
		if received := in.EachDetail(record.DetailLinkReceived); len(received) > 0 {
			put("wire_bytes", received[0])
		}
	case serve.Outcome.Finished() || serve.Outcome == record.Deadline:
		put("ok_rate", 0)
	}
}

// ofPeers puts the metrics of the blocks of each peer, unless those of a peer are unknown.
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

// follower returns a number that the node reported, or NaN, which put omits.
func follower(in *scenario.Measured, name string) float64 {
	return in.Detail(record.DetailFollower, name)
}

// syncTimes puts the times that the node reached. chain is the time until it had the chain, or NaN.
func syncTimes(in *scenario.Measured, chain float64, serve record.Op, put func(string, float64)) {
	took := func(from, to int64) float64 { return float64(to-from) / 1e9 }
	followed := follower(in, followerChain) - follower(in, followerOpening)
	first := took(serve.Intended, serve.FirstByte)
	if serve.FirstByte > 0 {
		put("first_block", first)
	}
	put("chain_time", chain)
	if seconds := chain - first; followed > 0 && seconds > 0 {
		put("block_rate", followed/seconds)
		put("byte_rate", followed/follower(in, followerChain)*follower(in, followerChainBytes)/seconds)
	}
	if serve.Outcome == record.OK {
		all := took(serve.Intended, serve.LastByte)
		put("sync_time", all)
		put("net_time", took(serve.FirstByte, serve.LastByte))
		put("index_lag", all-chain)
	}
}
