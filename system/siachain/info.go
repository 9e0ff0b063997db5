// Package siachain is Sia's consensus code as it is today, embedded: go.sia.tech/core
// and coreutils (chain manager and syncer on bbolt), with walletd's wallet manager as
// the subscriber that a node may have. Nodes serve and follow a private chain that
// Plimsoll makes; each is a process of its own.
package siachain

import (
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/siachain/chain"
)

const name = "sia-chain"

// Info implements system.System. Defaults are those of the libraries, and of walletd
// for wallet_batch.
func (System) Info() system.Info {
	return system.Info{
		Name: name,
		Summary: "embedded Sia nodes that sync a private chain (go.sia.tech/core, coreutils on bbolt; walletd's " +
			"index as subscriber)",
		Modes:    []system.Mode{system.Start},
		Can:      []string{"follow"},
		Embedded: true,
		Options: []system.Option{
			{Name: "subscriber", Type: "enum", Enum: []string{"none", "personal", "full"}, Default: "none",
				Help: "fresh node: walletd's index of the watched addresses (personal) or of all (full)"},
			{Name: "wallet_batch", Type: "int", Default: "10",
				Help: "fresh node: blocks per transaction of the subscriber (walletd's index.batch)"},
			{Name: "db_sync", Type: "enum", Enum: []string{"on", "off"}, Default: "on", Help: "fresh node: sync " +
				"consensus.db at each commit (off: bbolt's NoSync); walletd.sqlite3 is always synced"},
			{Name: "sync_interval", Type: "duration", Default: "5s", Network: true,
				Help: "fresh node: interval of asking for headers, first after one interval"},
			{Name: "send_blocks_timeout", Type: "duration", Default: "2m0s", Network: true,
				Help: "fresh node: timeout of a request for blocks; the peer is then dropped until the next round"},
			{Name: "send_block_timeout", Type: "duration", Default: "1m0s", Network: true,
				Help: "fresh node: timeout of the checkpoint before each request for v2 blocks"},
			{Name: "connect_timeout", Type: "duration", Default: "10s", Network: true,
				Help: "fresh node: timeout of a connection, handshake included"},
			{Name: "port", Type: "int", Default: "0", Network: true,
				Help: "TCP port of the gateway protocol; 0: a free one"},
		},
		Chains: system.ChainLimits{Forms: []string{chain.V2, chain.V1}, Blocks: chain.MaxBlocks,
			Transactions: chain.MaxTransactions},
		Constants: constants(),
	}
}

// constants are read off coreutils v0.24.0 (syncer/syncer.go, syncer/parallel_sync.go,
// syncer/peer.go, chain/db.go, chain/manager.go) and walletd v2.12.0.
func constants() []system.Constant {
	return []system.Constant{
		{Name: "blocks per request", Value: "100", What: "What a fresh node asks one peer for at a time; a peer that " +
			"sends less stalls it (blocksPerReq, syncer/parallel_sync.go)."},
		{Name: "start of the workers", Value: "1 s", What: "After each batch of headers no block is requested before " +
			"the first tick of this period, at which each peer gets its worker; peers that come later wait for the " +
			"next tick (time.NewTicker, syncer/parallel_sync.go)."},
		{Name: "headers per batch", Value: "10000", What: "Headers of one request and so blocks of one round; " +
			"between two rounds lie one sync_interval at most, headers and the start of the workers (MaxSendHeaders, " +
			"which has no option, syncer/syncer.go)."},
		{Name: "timeout of headers", Value: "30 s", What: "A peer that does not answer a request for headers in this " +
			"time is disconnected, though not before the round under way has ended (SendHeadersTimeout, which has no " +
			"option, syncer/syncer.go)."},
		{Name: "first headers", Value: "1 × sync_interval", What: "The first request for headers comes one whole " +
			"interval after the start, also when peers are connected at once (syncLoop, syncer/syncer.go)."},
		{Name: "requests per peer", Value: "1", What: "A worker has one request under way and sends the next when " +
			"the answer is in and, with v2 blocks, validated (syncer/parallel_sync.go)."},
		{Name: "checkpoint per request", Value: "1", What: "Each request for v2 blocks is preceded by one for the " +
			"state before them: two round trips for 100 blocks (workFn, syncer/parallel_sync.go)."},
		{Name: "pause before reconnecting", Value: "5 min", What: "A peer that was lost, or could not be reached, is " +
			"not dialled again before (lastTried in peerLoop, syncer/syncer.go)."},
		{Name: "dials at a time", Value: "1", What: "Peers are dialled one after another, so that one which does not " +
			"answer holds up the others by connect_timeout (peerLoop, syncer/syncer.go)."},
		{Name: "commits", Value: "1 per request", What: "Blocks are committed to consensus.db request by request, " +
			"once the ones before are there; a commit is two fdatasync of bbolt (reorgTo, chain/manager.go)."},
		{Name: "early commit", Value: "100 MB or 5 s", What: "Blocks of one request are committed in parts when they " +
			"are more or take longer (flushSizeThreshold, flushDurationThreshold, chain/db.go)."},
		{Name: "connections to walletd.sqlite3", Value: "1", What: "The subscriber writes one transaction at a time, " +
			"in WAL mode with SQLite's own synchronous=FULL: one fsync a transaction (OpenDatabase, " +
			"persist/sqlite/store.go of walletd)."},
	}
}
