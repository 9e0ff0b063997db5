package siad

import "github.com/plimsoll-project/plimsoll/system"

// constants are those of chain sync, of siad 1.5.9: first the value of dev builds,
// which are the ones that can be started here.
func constants() []system.Constant {
	return []system.Constant{
		{Name: "MaxCatchUpBlocks", Value: "50 (main network: 10)", What: "blocks in a batch, which is one transaction of the database and one message; the server's decides (modules/consensus/synchronize.go)"},
		{Name: "sendBlocksTimeout", Value: "40 s (main network: 180 s)", What: "limit for all that one peer sends in a row, after which the next peer is asked: also one that is quick is left then (modules/consensus/synchronize.go)"},
		{Name: "sendBlkTimeout", Value: "30 s (main network: 90 s)", What: "limit for a single block that a peer has announced (modules/consensus/synchronize.go)"},
		{Name: "relayHeaderTimeout", Value: "20 s (main network: 60 s)", What: "limit for the announcement of a block (modules/consensus/synchronize.go)"},
		{Name: "ibdLoopDelay", Value: "1 s (main network: 10 s)", What: "pause of the initial download between two rounds over all peers, also the wait for the first one (modules/consensus/synchronize.go)"},
		{Name: "minNumOutbound", Value: "5", What: "outbound peers that must have no more blocks before the node says that it is synced; with fewer it waits for minIBDWaitTime (modules/consensus/synchronize.go)"},
		{Name: "minIBDWaitTime", Value: "80 s (main network: 90 min)", What: "time from the start until fewer peers are enough to say so (modules/consensus/synchronize.go)"},
		{Name: "acceptInterval", Value: "3 s (main network: 6 s)", What: "pause of a peer between two connections that it takes (modules/gateway/consts.go)"},
		{Name: "dialTimeout", Value: "20 s (main network: 3 min)", What: "limit for connecting to a peer (modules/gateway/consts.go)"},
		{Name: "connStdDeadline", Value: "2 min (main network: 5 min)", What: "limit for the words with which a connection begins, so how long a silent peer is waited for (modules/gateway/consts.go)"},
		{Name: "bolt NoSync", Value: "off", What: "each batch is synced to the disk; there is no option (modules/consensus/persist.go)"},
	}
}
