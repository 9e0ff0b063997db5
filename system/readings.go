package system

import (
	"context"
	"math/big"
)

// Monitored is a node whose state can be queried by requests that change nothing: a collector polls
// it. Systems without it are polled through their other abilities (Stats, Lister); see
// package collect.
type Monitored interface {
	// Calls returns the requests of one poll, in order.
	Calls() []Call
}

// Call is one read-only request of a poll.
type Call struct {
	Name string // as in the system's documentation: "/renter/contracts"
	Read func(ctx context.Context) ([]Reading, error)
}

// Reading is one number returned by a call. A number that the system omits or reports absurdly (an
// underflowed unsigned counter) is left out; Bad contains the reason and is recorded.
type Reading struct {
	Name   string   // one of the Read constants or a system-specific name: "price:storage"
	Value  float64  // for an amount of money: in the currency, rounded
	Amount *big.Int // exact amount in the currency's smallest unit; nil: not money
	Bad    string   // why Value is unusable; empty: it is usable
}

// Decimals is the number of decimals of the currency of all systems that pay: a siacoin has 10^24 hastings.
const Decimals = 24

// Coins returns an amount of the smallest unit in the currency.
func Coins(amount *big.Int) *big.Rat {
	return new(big.Rat).SetFrac(amount, new(big.Int).Exp(big.NewInt(10), big.NewInt(Decimals), nil))
}

// Money returns the reading of an amount of the currency's smallest unit.
func Money(name string, amount *big.Int) Reading {
	value, _ := Coins(amount).Float64()
	return Reading{Name: name, Value: value, Amount: amount}
}

// Names of readings with the same meaning for all systems. Times are in seconds, money is in the
// system's currency.
const (
	ReadSynced         = "synced"           // 1 or 0: synchronised with its chain, its peers
	ReadUnlocked       = "unlocked"         // 1 or 0: the wallet is unlocked
	ReadHeight         = "height"           // blocks
	ReadPeers          = "peers"            // connected peers
	ReadHosts          = "hosts"            // servers that accept data
	ReadContracts      = "contracts"        // with servers
	ReadGoodContracts  = "good_contracts"   // of these, with servers that still accept data
	ReadContractBytes  = "contract_bytes"   // sum of the contracts' sizes
	ReadFiles          = "files"            // known to the client, stored in full or in part
	ReadUploads        = "uploads"          // files below their full redundancy: the system's "in progress"
	ReadFileBytes      = "file_bytes"       // sum of file sizes, each times the stored fraction
	ReadAbsolute       = "absolute_bytes"   // sent to or kept by storage servers, including padding and redundancy
	ReadRedundancyMean = "redundancy_mean"  // of the completely stored files
	ReadRedundancyMin  = "redundancy_min"   //
	ReadRedundancyMax  = "redundancy_max"   //
	ReadBelow          = "below_redundancy" // files that had reached their full redundancy and are below it now
	ReadDisk           = "disk_bytes"       // disk blocks used by the storage servers
	ReadEntries        = "entries"          // directory entries of the storage servers
	ReadInodes         = "inodes"           //
	ReadBalance        = "balance"          // spendable money
	ReadOutgoing       = "outgoing"         // unconfirmed outgoing money
	ReadIncoming       = "incoming"         // unconfirmed incoming money
	ReadUnspent        = "unspent"          // unspent money in contracts
	// money: total cost of contracts so far, including unspent money, as totalled by the system
	ReadSpent = "spent"
	// money by purpose: "spent:fees", "spent:storage", "spent:upload", "spent:download"
	ReadSpentPrefix  = "spent:"
	ReadEnded        = "ended"            // money: spent by ended contracts; not included in "spent"
	ReadEndedPrefix  = "ended:"           // the same, by purpose
	ReadEndedUnspent = "ended_unspent"    // money: unspent by ended contracts; returned, or to be returned
	ReadPeriod       = "allowance_period" // blocks for which contracts are bought
	ReadPricePrefix  = "price:"           // money: "price:storage" per TB·month, "price:upload" per TB
)
