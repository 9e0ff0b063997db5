package sync

import (
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/nodes"
)

// Metrics of a trial.
func (Scenario) Metrics() []record.Metric {
	return append([]record.Metric{
		{Key: "sync_time", Name: "time until it can serve", Unit: "s", Better: record.Lower,
			Help: "from before the start of the fresh node until a poll reported the chain's last block and all " +
				"subscribers caught up"},
		{Key: "chain_time", Name: "time until it has the chain", Unit: "s", Better: record.Lower,
			Help: "likewise, until it has the chain's last block"},
		{Key: "first_block", Name: "time to the first block", Unit: "s", Better: record.Lower,
			Help: "likewise, until a poll reported a new block"},
		{Key: "net_time", Name: "time after the first block", Unit: "s", Better: record.Lower,
			Help: "time until it serves less the time to the first block"},
		{Key: "block_rate", Name: "blocks per second", Unit: "1/s", Better: record.Higher,
			Help: "blocks after the first poll that saw any, per second until it had the chain"},
		{Key: "byte_rate", Name: "bytes of the chain per second", Unit: "B/s", Better: record.Higher,
			Help: "bytes of these blocks over the same time"},
		{Key: "index_lag", Name: "lag of what subscribes", Unit: "s", Better: record.Lower,
			Help: "time until it serves less the time until it has the chain"},
		{Key: "resolution", Name: "resolution of the times", Unit: "s", Better: record.Lower,
			Help: "longest time from the start of a poll to the end of the next: times may be late by that much"},
		{Key: "wire_bytes", Name: "bytes on the node's link", Unit: "B", Better: record.Lower,
			Help: "bytes of IP packets to the fresh node until it served"},
		{Key: "overhead", Name: "bytes on the link over the chain's", Unit: "×", Better: record.Lower,
			Help: "the same over the bytes of the chain's blocks"},
		{Key: "system_cpu", Name: "node's CPU", Unit: "s", Better: record.Lower,
			Help: "CPU seconds of the fresh node until the end of the load"},
		{Key: "node_rss_peak", Name: "node's memory, peak", Unit: "B", Better: record.Lower,
			Help: "largest resident set of the fresh node"},
		{Key: "disk_written", Name: "bytes written to the disk", Unit: "B", Better: record.Lower,
			Help: "bytes that the fresh node wrote to storage; none on a RAM disk"},
		{Key: "write_amplification", Name: "bytes written over the chain's", Unit: "×", Better: record.Lower,
			Help: "the same over the bytes of the chain's blocks"},
		{Key: "commits", Name: "commits", Unit: "1", Better: record.Lower,
			Help: "transactions committed by the node's stores, as it reports, over all starts"},
		{Key: "peers_connected", Name: "peers connected", Unit: "1", Better: record.Neither,
			Help: "most peers connected at a poll"},
		{Key: "peers_useful", Name: "useful peers", Unit: "1", Better: record.Higher,
			Help: "peers that delivered a block, as the node reports"},
		{Key: "useful_share", Name: "share of useful peers", Unit: "ratio", Better: record.Higher,
			Help: "the same over all peers"},
		{Key: "peer_share_max", Name: "largest share of a peer", Unit: "ratio", Better: record.Neither,
			Help: "blocks from the peer that delivered most over all blocks"},
		{Key: "timeouts", Name: "requests that timed out", Unit: "1", Better: record.Lower,
			Help: "requests for blocks that timed out, as the node reports, over all starts"},
		{Key: "rerequests", Name: "requests in vain", Unit: "1", Better: record.Lower,
			Help: "requests for blocks that timed out or failed"},
		{Key: "duplicates", Name: "blocks that came twice", Unit: "1", Better: record.Lower,
			Help: "blocks delivered beyond those of the chain; absent unless it got the chain and reports per peer"},
		{Key: "replay", Name: "replay", Unit: "s", Better: record.Lower,
			Help: "time to validate and store the same blocks from a local file with the same settings, measured " +
				"before the trials, once per session"},
		{Key: "replay_cpu", Name: "CPU of the replay", Unit: "s", Better: record.Lower,
			Help: "CPU seconds of the replay"},
		{Key: "link_line", Name: "load line of the links", Unit: "s", Better: record.Neither,
			Help: "bytes of the chain over the smaller of the peers' total rate and the node's own, plus a round " +
				"trip; no faults"},
		{Key: "wire_line", Name: "load line of the bytes on the link", Unit: "B/s", Better: record.Neither,
			Help: "the smaller of these rates, IP and TCP headers included"},
		{Key: "line", Name: "load line", Unit: "s", Better: record.Neither,
			Help: "the larger of the replay and the load line of the links; no faults"},
		{Key: "line_share", Name: "share of the load line", Unit: "ratio", Better: record.Higher,
			Help: "load line over the time until it serves"},
		{Key: "ok_rate", Name: "ok", Unit: "ratio", Better: record.Higher,
			Help: "1 if the node served, 0 if it failed or timed out; absent if a fault removed it"},
	}, nodes.MachineMetrics()...)
}

// Names of details of the kind [record.DetailFollower]. A value that the node does not report has none.
const (
	followerChainBytes = "chain_bytes"    // of the chain that it is to have
	followerChain      = "chain_blocks"   // likewise
	followerOpening    = "opening_height" // in the first poll that reported a block beyond those of its making
	followerHighest    = "highest_height" // the highest that it has reported
	followerGap        = "gap"            // seconds: longest time in which something could have happened unseen
	followerWire       = "link_received"  // bytes that crossed its link towards it until it could serve
	followerConnected  = "connected"      // peers, most at a poll
	followerCommits    = "commits"        // over all its starts, as those that follow
	followerTimedOut   = "timed_out"      // requests for blocks
	followerFailed     = "failed"         // requests for blocks, for other reasons
	followerUseful     = "useful_peers"   // peers that delivered a block
	followerDelivered  = "delivered"      // blocks of all peers
	followerMost       = "delivered_most" // blocks of the peer that delivered most
	followerReplay     = "replay"         // seconds
	followerReplayCPU  = "replay_cpu"     // seconds
)

// syncFacts are the metrics that follow from the node's operations and from what it
// said of itself.
func syncFacts(in *scenario.Measured, put func(string, float64)) {
	none := record.Op{Outcome: record.Cancelled}
	chain, serve := none, none
	for op := range scenario.Stream(in.Ops) {
		switch op.Kind {
		case record.OpSync:
			chain = op
		case record.OpServe:
			serve = op
		}
	}
	of := func(name string) (float64, bool) { return in.Detail(record.DetailFollower, name) }
	blocks, ours := of(followerChain)
	syncTimes(in, chain, serve, put)
	for key, name := range map[string]string{"resolution": followerGap, "peers_connected": followerConnected,
		"commits":  followerCommits,
		"timeouts": followerTimedOut, "replay": followerReplay, "replay_cpu": followerReplayCPU} {
		if v, known := of(name); known {
			put(key, v)
		}
	}
	if timedOut, known := of(followerTimedOut); known {
		if failed, known := of(followerFailed); known {
			put("rerequests", timedOut+failed)
		}
	}
	if useful, known := of(followerUseful); known {
		delivered, _ := of(followerDelivered)
		most, _ := of(followerMost)
		put("peers_useful", useful)
		if peers := len(in.EachDetail(record.DetailPeerRate)); peers > 0 {
			put("useful_share", useful/float64(peers))
		}
		put("peer_share_max", most/delivered)
		if ours && chain.Outcome == record.OK {
			put("duplicates", max(0, delivered-blocks))
		}
	}
	switch {
	case serve.Outcome == record.OK:
		put("ok_rate", 1)
		if wire, known := of(followerWire); known {
			put("wire_bytes", wire)
		}
	case serve.Outcome.Finished() || serve.Outcome == record.Deadline:
		put("ok_rate", 0)
	}
}

// syncTimes are the times, of a node that came to them.
func syncTimes(in *scenario.Measured, chain, serve record.Op, put func(string, float64)) {
	of := func(name string) float64 { v, _ := in.Detail(record.DetailFollower, name); return v }
	took := func(from, to int64) float64 { return float64(to-from) / 1e9 }
	followed := of(followerHighest) - of(followerOpening)
	blocks := of(followerChain)
	if serve.FirstByte > 0 {
		put("first_block", took(serve.Intended, serve.FirstByte))
	}
	if chain.Outcome == record.OK {
		put("chain_time", took(chain.Intended, chain.LastByte))
		if seconds := took(serve.FirstByte, chain.LastByte); followed > 0 && seconds > 0 {
			put("block_rate", followed/seconds)
			if blocks > 0 {
				put("byte_rate", followed/blocks*of(followerChainBytes)/seconds)
			}
		}
	}
	if serve.Outcome == record.OK {
		put("sync_time", took(serve.Intended, serve.LastByte))
		put("net_time", took(serve.FirstByte, serve.LastByte))
		put("index_lag", took(chain.LastByte, serve.LastByte))
	}
}
