package system

import (
	"context"
	"math"
	"math/big"
)

// Monitored is a node whose system can be asked how it is, by requests that
// change nothing: what a collector polls. Systems without it are polled through
// their other abilities (Stats, Coster, Lister); see package collect.
type Monitored interface {
	// Calls are the requests of one poll, in their order.
	Calls() []Call
}

// Call is one read-only request of a poll.
type Call struct {
	Name string // as the system's documentation has it: "/renter/contracts"
	Read func(ctx context.Context) ([]Reading, error)
}

// Reading is one number that a call gave. A number that the system does not
// give, or gives absurdly (an unsigned counter that underflowed), is left out;
// Bad says why, and is recorded.
type Reading struct {
	Name   string   // one of the Read constants, or a name of the system's own: "price:storage"
	Value  float64  // an amount of money: in the currency, rounded
	Amount *big.Int // money, exactly, in the currency's smallest unit; nil: no amount
	Bad    string   // why Value is not to be used; empty: it is
}

// Money is a reading of an amount in a currency's smallest unit, 10^decimals of
// which make one of it.
func Money(name string, amount *big.Int, decimals int) Reading {
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil)
	value, _ := new(big.Rat).SetFrac(amount, unit).Float64()
	return Reading{Name: name, Value: value, Amount: amount}
}

// Decimals is of the currency in which an amount of its smallest unit is value;
// false: nothing is no amount to tell it from.
func Decimals(amount *big.Int, value float64) (int, bool) {
	units, _ := new(big.Float).SetInt(amount).Float64()
	d := math.Round(math.Log10(units / value))
	return int(d), units > 0 && value > 0 && !math.IsInf(d, 0)
}

// Names of readings that mean the same for every system. Bytes are bytes, times
// seconds, money in the system's currency.
const (
	ReadSynced         = "synced"           // 1 or 0: with its chain, its peers
	ReadUnlocked       = "unlocked"         // 1 or 0: the wallet
	ReadHeight         = "height"           // blocks
	ReadPeers          = "peers"            // connected
	ReadHosts          = "hosts"            // servers that take data
	ReadContracts      = "contracts"        // with servers
	ReadGoodContracts  = "good_contracts"   // of them, with servers that take more data
	ReadContractBytes  = "contract_bytes"   // the contracts' sizes, summed
	ReadFiles          = "files"            // known to the client, wholly or partly stored
	ReadUploads        = "uploads"          // files not yet at their full redundancy: the system's "in progress"
	ReadFileBytes      = "file_bytes"       // sizes of the files, each times the share of it that is stored
	ReadAbsolute       = "absolute_bytes"   // sent to or kept by storage servers, padding and redundancy included
	ReadRedundancyMean = "redundancy_mean"  // of the files that are whole
	ReadRedundancyMin  = "redundancy_min"   //
	ReadRedundancyMax  = "redundancy_max"   //
	ReadBelow          = "below_redundancy" // files that were at their full redundancy and no longer are
	ReadDisk           = "disk_bytes"       // disk blocks of the storage servers
	ReadEntries        = "entries"          // directory entries of the storage servers
	ReadInodes         = "inodes"           //
	ReadBalance        = "balance"          // money that can be spent
	ReadOutgoing       = "outgoing"         // money on its way out, not confirmed
	ReadIncoming       = "incoming"         // money on its way in
	ReadUnspent        = "unspent"          // money in contracts, not spent
	// money: all that contracts cost so far, unspent included, by the system's own total
	ReadSpent = "spent"
	// money by purpose: "spent:fees", "spent:storage", "spent:upload", "spent:download"
	ReadSpentPrefix  = "spent:"
	ReadEnded        = "ended"            // money: what contracts that are over had used; it is not in "spent"
	ReadEndedPrefix  = "ended:"           // money by purpose, likewise
	ReadEndedUnspent = "ended_unspent"    // money: what they had not used, which comes back, or has
	ReadPeriod       = "allowance_period" // blocks that contracts are bought for
	ReadPricePrefix  = "price:"           // money: "price:storage" per TB·month, "price:upload" per TB
)
