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
			Help: "from the moment before the fresh node is started to the end of the first poll that reported that its best block is the chain's last and that everything that subscribes to the chain has followed; of an attached node, from the start of the watch to its own word; absent unless it is ok"},
		{Key: "chain_time", Name: "time until it has the chain", Unit: "s", Better: record.Lower,
			Help: "likewise, to the end of the first poll that reported that its best block is the chain's last"},
		{Key: "first_block", Name: "time to the first block", Unit: "s", Better: record.Lower,
			Help: "likewise, to the end of the first poll that reported a block beyond those that the node has from its making: start of the process, opening of the store, connections, and the waits before the first request; for an attached node, a block beyond those of the first poll"},
		{Key: "net_time", Name: "time after the first block", Unit: "s", Better: record.Lower,
			Help: "time until it can serve less the time to the first block"},
		{Key: "block_rate", Name: "blocks per second", Unit: "1/s", Better: record.Higher,
			Help: "blocks beyond those in the first poll that reported any, divided by the time from the end of that poll until it had the chain: above the rate of the links where other peers had sent blocks by then that the node had not taken in yet; absent where one poll reported all of them"},
		{Key: "byte_rate", Name: "bytes of the chain per second", Unit: "B/s", Better: record.Higher,
			Help: "bytes of these blocks (as many of the chain's as their share of its blocks) divided by the same time"},
		{Key: "index_lag", Name: "lag of what subscribes", Unit: "s", Better: record.Lower,
			Help: "time until it can serve less the time until it has the chain; 0 where nothing subscribes, or what does is never behind"},
		{Key: "resolution", Name: "resolution of the times", Unit: "s", Better: record.Lower,
			Help: "longest time, while the node ran, from the start of a poll that was answered to the end of the next (from the moment before the start where the first answer already reported blocks): what a poll reported for the first time may have happened so much earlier at most"},
		{Key: "wire_bytes", Name: "bytes on the node's link", Unit: "B", Better: record.Lower,
			Help: "bytes that crossed the fresh node's link towards it until it could serve, IP packets of whatever kind"},
		{Key: "overhead", Name: "bytes on the link over the chain's", Unit: "×", Better: record.Lower,
			Help: "the same divided by the bytes of the chain's blocks"},
		{Key: "system_cpu", Name: "node's CPU", Unit: "s", Better: record.Lower,
			Help: "CPU seconds of the fresh node's processes from the start to the end of the load"},
		{Key: "node_rss_peak", Name: "node's memory, peak", Unit: "B", Better: record.Lower,
			Help: "largest resident set of the fresh node's processes that was seen in that time"},
		{Key: "disk_written", Name: "bytes written to the disk", Unit: "B", Better: record.Lower,
			Help: "bytes that the fresh node's processes made storage write in that time (write_bytes of /proc/PID/io): of a RAM disk none"},
		{Key: "write_amplification", Name: "bytes written over the chain's", Unit: "×", Better: record.Lower,
			Help: "the same divided by the bytes of the chain's blocks"},
		{Key: "commits", Name: "commits", Unit: "1", Better: record.Lower,
			Help: "transactions that the node's stores have committed, by its own word, over all its starts"},
		{Key: "peers_connected", Name: "peers connected", Unit: "1", Better: record.Neither,
			Help: "most peers that it was connected to at a poll"},
		{Key: "peers_useful", Name: "useful peers", Unit: "1", Better: record.Higher,
			Help: "peers that delivered a block, by the node's own word"},
		{Key: "useful_share", Name: "share of useful peers", Unit: "ratio", Better: record.Higher,
			Help: "the same divided by all peers"},
		{Key: "peer_share_max", Name: "largest share of a peer", Unit: "ratio", Better: record.Neither,
			Help: "blocks that the peer delivered which delivered most, divided by those of all"},
		{Key: "timeouts", Name: "requests that timed out", Unit: "1", Better: record.Lower,
			Help: "requests for blocks that timed out, of all peers (also those of which the node does not know whose they were), by its own word, over all its starts"},
		{Key: "rerequests", Name: "requests in vain", Unit: "1", Better: record.Lower,
			Help: "requests for blocks that timed out or failed otherwise, likewise, the timeouts among them: what they asked for has to be asked for again"},
		{Key: "duplicates", Name: "blocks that came twice", Unit: "1", Better: record.Lower,
			Help: "blocks that peers delivered, by the node's own word and over all its starts, beyond those of the chain: asked for twice, or again after a start without data; absent unless it came to have the chain, and where the node reports no shares of peers"},
		{Key: "replay", Name: "replay", Unit: "s", Better: record.Lower,
			Help: "time in which the same program validates the same blocks from a local file into a store of the same kind with the same settings, what subscribes included, without a network; measured before the first trial that needs it, the median of three where it takes less than 2 s"},
		{Key: "replay_cpu", Name: "CPU of the replay", Unit: "s", Better: record.Lower,
			Help: "CPU seconds of the process in that time, likewise"},
		{Key: "link_line", Name: "load line of the links", Unit: "s", Better: record.Neither,
			Help: "least time in which the chain can cross the links: its bytes divided by the smaller of the rates of all peers that have it together and of the node's own, without the headers of Ethernet, IP and TCP, plus a round trip; rates are corrected by what was measured before the trial, those of speeds or trouble by what was measured on the path of one of these peers; emulated links that are limited and no faults only"},
		{Key: "wire_line", Name: "load line of the bytes on the link", Unit: "B/s", Better: record.Neither,
			Help: "the smaller of these rates, headers of IP and TCP included, as bytes on the node's link are counted"},
		{Key: "line", Name: "load line", Unit: "s", Better: record.Neither,
			Help: "the larger of the replay and the load line of the links, of those that there are; no faults only"},
		{Key: "line_share", Name: "share of the load line", Unit: "ratio", Better: record.Higher,
			Help: "load line divided by the time until it can serve, as the replay ends when everything has followed, too"},
		{Key: "ok_rate", Name: "ok", Unit: "ratio", Better: record.Higher,
			Help: "1 when the node could serve at last, 0 when it failed or came to its deadline; absent when a fault took it away for good"},
	}, nodes.MachineMetrics()...)
}

// Names of details of the kind [record.DetailFollower]. A value that the node does not report has none.
const (
	followerChainBytes = "chain_bytes"    // of the chain that it is to have; none of one that is attached to
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
	for key, name := range map[string]string{"resolution": followerGap, "peers_connected": followerConnected, "commits": followerCommits,
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
	if chain.Outcome == record.OK && chain.LastByte == chain.FirstByte && followed == 0 && blocks == 0 {
		return // one that is attached to, and was in sync already
	}
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
