package sync

import (
	"cmp"
	_ "embed"
	"math"
	"slices"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/nodes"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// Scenario starts a fresh node and times it until it has the whole chain of its peers and can
// serve. It follows the study of Sia's synchronization of 2018 (the effects of a few settings),
// and extends it to peers of different speeds, useless peers, and faults.
type Scenario struct{}

func (Scenario) Name() string { return "sync" }

// Problems implements Scenario. It includes chains and peers of the cells that the system cannot
// provide.
func (Scenario) Problems(use experiment.SystemUse, info system.Info, cells []experiment.Cell) (all []system.Problem) {
	all = scenario.Unmet(info.Can, []scenario.Need{{Ability: "follow", By: "the scenario sync",
		Hint: "take it out of the experiment"}})
	for _, c := range cells {
		var manners []string
		for _, g := range c.Sync.Trouble {
			manners = append(manners, g.Manner())
		}
		for _, p := range info.Chains.Problems(chainSpec(c.Sync, 0), manners) {
			if !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
	}
	return all
}

// Prepares implements Scenario. No objects are stored. The bytes are the estimated sizes of the
// chains, each twice (one copy to serve from, one to replay), and the largest store of a fresh
// node.
func (Scenario) Prepares(cells []experiment.Cell) (objects, bytes int64) {
	chains := map[system.ChainSpec]int64{}
	var largest int64
	for _, c := range cells {
		size := int64(c.Estimate.Bytes)
		chains[chainSpec(c.Sync, 0)] = 2 * size
		largest = max(largest, int64(experiment.StoreBytes(c.Estimate.Bytes)))
	}
	for _, size := range chains {
		bytes += size
	}
	return 0, bytes + largest
}

// chainSpec returns the chain of a cell. Cells with equal specs share a chain.
func chainSpec(s *experiment.Sync, seed uint64) system.ChainSpec {
	return system.ChainSpec{Blocks: s.Blocks, Transactions: s.Transactions, Form: s.Form, Seed: seed}
}

// Measure computes the metrics of a trial; Metrics defines them.
func (Scenario) Measure(in scenario.Measured) map[string]float64 {
	m := map[string]float64{}
	put := scenario.Numbers(m)
	syncFacts(&in, put)
	bytes := follower(&in, followerChainBytes)
	cpu, peak, written := in.Usage.SystemCPU, in.Usage.SystemRSSPeak, math.NaN()
	if len(in.Usage.Nodes) > 0 {
		fresh := in.Usage.Nodes[0]
		cpu, peak, written = fresh.CPU, fresh.RSSPeak, fresh.Written
	}
	put("system_cpu", cpu)
	put("node_rss_peak", peak)
	put("disk_written", written)
	put("write_amplification", written/bytes)
	if wire, known := m["wire_bytes"]; known {
		put("overhead", wire/bytes)
	}
	loadLines(&in, bytes, m, put)
	scenario.PutMachine(&in, put)
	return m
}

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

// manners maps the manners of peers to the values of record.DetailPeerManner.
var manners = map[string]float64{system.Honest: 0, system.Silent: 1, system.Stranger: 2}

// loadLines puts the least times in which a fresh node can come to serve, for trials without
// faults. The line of the links is the time for a chain's bytes over the links of the peers and
// of the node:
//
//	bytes / min(Σ up of the peers that have the chain, down of the node) + one round trip
func loadLines(in *scenario.Measured, bytes float64, m map[string]float64, put func(string, float64)) {
	if len(in.Cell.Sync.Faults) > 0 {
		return
	}
	if wire, rtt := towardsNode(in); bytes > 0 && !math.IsInf(wire, 1) && in.LoadDetail(scenario.LoadEmulated) > 0 {
		put("link_line", bytes*8/link.TCPPayloadRate(wire, in.Cell.Link.IPv6)+rtt)
		put("wire_line", wire/8*link.MTU/link.FullFrame)
	}
	scenario.PutLine(m, "line", max(m["link_line"], m["replay"]), "sync_time")
}

// towardsNode returns the rate on the wire, in bit/s, at which a fresh node can receive a chain
// (+Inf: unlimited), and the round trip in seconds. Rates are corrected by the ratio of measured
// and configured rates before the trial: the cell's rate by the check of a link of the cell,
// rates from speeds and trouble by the check of such a peer.
func towardsNode(in *scenario.Measured) (wire, rtt float64) {
	cell := in.Cell.Link
	rtt = 2 * cell.Delay.Seconds()
	ours, theirs := 1.0, 1.0
	if peer := in.Load.Links; len(peer) > 0 {
		theirs, rtt = nodes.MeasuredAgainst(peer[0], rtt)
	}
	if in.Link != nil {
		ours, rtt = nodes.MeasuredAgainst(*in.Link, 2*cell.Delay.Seconds())
	}
	peers := 0.0
	manner := in.EachDetail(record.DetailPeerManner)
	for i, rate := range in.EachDetail(record.DetailPeerRate) {
		switch {
		case i < len(manner) && manner[i] != manners[system.Honest]:
		case rate <= 0:
			peers = math.Inf(1)
		case rate == float64(cell.UpRate()):
			peers += rate * ours
		default:
			peers += rate * theirs
		}
	}
	wire = cmp.Or(peers, math.Inf(1))
	if down := float64(cell.DownRate()); down > 0 {
		wire = min(wire, ours*down)
	}
	if cell.Regions != nil {
		rtt = 0 // peers have different round trips, and the nearest may send everything
	}
	return wire, rtt
}
