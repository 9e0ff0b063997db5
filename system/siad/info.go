// Package siad stores objects on Sia hosts through a siad of the v1.5 line: one
// that runs already, or a private network of renter, miner and hosts of our own.
package siad

import "github.com/plimsoll-project/plimsoll/system"

const name = "siad"

// Info implements system.System.
func (System) Info() system.Info {
	return system.Info{
		Name:    name,
		Summary: "Sia, siad v1.5: a running renter, or a private network started here",
		Modes:   []system.Mode{system.Start, system.Attach},
		Can: []string{"put", "durable", "range", "delete", "list", "stat", "stats", "cost", "cold", "monitor",
			"follow"},
		Outside: "siad would ask the router of this machine's network to forward a port (1.5.9 ignores --upnp=false)",
		Install: "build siad v1.5.9 with its `dev` constants and name it in option `binary` or PLIMSOLL_SIAD, or an " +
			"image with it in option `image`; published ones are for the main network",
		Options: []system.Option{
			{Name: "url", Type: "string", Help: "attach: URL of the API, such as http://127.0.0.1:9980; empty when " +
				"started"},
			{Name: "password", Type: "string", Secret: true, Default: "SIA_API_PASSWORD",
				Help: "attach: environment variable with the API password"},
			{Name: "path", Type: "string", Default: "plimsoll",
				Help: "the renter's folder of objects; empty: all files (attach, reading)"},
			{Name: "data_pieces", Type: "int", Default: "0", Help: "pieces that rebuild a chunk; 0: 1 (attached: the " +
				"renter's default)"},
			{Name: "parity_pieces", Type: "int", Default: "0", Help: "further pieces; 0: `hosts` − 1 (attached: the " +
				"renter's default)"},
			{Name: "hosts", Type: "int", Default: "3", Help: "start: hosts of the private network"},
			{Name: "host_size", Type: "size", Default: "1073741824",
				Help: "start: storage of each host, a multiple of 16 MiB"},
			{Name: "modules", Type: "string", Default: "gctwrhfa",
				Help: "chain sync: modules of the fresh node, as for `siad -M`"},
			system.ImageOption(),
			{Name: "binary", Type: "string", Help: "start: path of siad; empty: PLIMSOLL_SIAD, or `siad` in PATH"},
		},
		// blocks are of before version 2 and mined, and the first one is in siad's code
		Chains:    system.ChainLimits{Forms: []string{"v1"}, Transactions: -1, Without: []string{system.Stranger}},
		Constants: constants(),
	}
}

// constants are those of chain sync, of siad 1.5.9: first the value of dev builds,
// which are the ones that can be started here.
func constants() []system.Constant {
	return []system.Constant{
		{Name: "MaxCatchUpBlocks", Value: "50 (main network: 10)", What: "blocks in a batch, which is one " +
			"transaction of the database and one message; the server's decides (modules/consensus/synchronize.go)"},
		{Name: "sendBlocksTimeout", Value: "40 s (main network: 180 s)",
			What: "limit for all that one peer sends in a row, after which the next peer is asked: also one that is " +
				"quick is left then (modules/consensus/synchronize.go)"},
		{Name: "ibdLoopDelay", Value: "1 s (main network: 10 s)", What: "pause of the initial download between two " +
			"rounds over all peers, also the wait for the first one (modules/consensus/synchronize.go)"},
		{Name: "minNumOutbound", Value: "5", What: "outbound peers that must have no more blocks before the node " +
			"says that it is synced; with fewer it waits for minIBDWaitTime (modules/consensus/synchronize.go)"},
		{Name: "minIBDWaitTime", Value: "80 s (main network: 90 min)",
			What: "time from the start until fewer peers are enough to say so (modules/consensus/synchronize.go)"},
		{Name: "acceptInterval", Value: "3 s (main network: 6 s)",
			What: "pause of a peer between two connections that it takes (modules/gateway/consts.go)"},
		{Name: "dialTimeout", Value: "20 s (main network: 3 min)",
			What: "limit for connecting to a peer (modules/gateway/consts.go)"},
		{Name: "connStdDeadline", Value: "2 min (main network: 5 min)", What: "limit for the words with which a " +
			"connection begins, so how long a silent peer is waited for (modules/gateway/consts.go)"},
		{Name: "bolt NoSync", Value: "off", What: "each batch is synced to the disk; there is no option " +
			"(modules/consensus/persist.go)"},
	}
}
