package siasim

import (
	"io"
	"math/big"
	"time"
)

// Config says what is simulated. Zero values are replaced by those of Defaults.
type Config struct {
	Seed    uint64
	Version string // siad's own
	// Password of the API.
	Password string
	// Locked: the wallet is locked when the simulator begins.
	Locked         bool
	WalletPassword string

	Height      int64 // of the chain at the beginning
	BlockTime   time.Duration
	Period      int64 // blocks that a contract lasts
	RenewWindow int64 // blocks before its end in which it is renewed
	Peers       int

	Hosts       int
	Contracts   int   // with the first so many hosts
	HostStorage int64 // bytes that each host offers

	Sector       int64 // bytes
	Data, Parity int   // pieces of a chunk, where the caller names none

	Wallet        *big.Int // hastings, before the contracts are formed
	ContractFunds *big.Int // put into each contract
	ContractFees  *big.Int // paid for forming it
	Prices        Prices

	Up      Bandwidth
	Latency Latency
	// LatencyOf is that of single routes ("/renter/files"), in place of Latency.
	LatencyOf map[string]Latency

	// KeepBytes bounds the content that is kept in memory, so that it can be
	// downloaded; KeepEach is the largest object of which it is kept.
	KeepBytes, KeepEach int64
	// Content is asked for the content of an object that was not kept.
	Content func(path string, size int64) io.Reader

	Faults Faults
}

// Prices are hosts' prices in hastings.
type Prices struct {
	Storage  *big.Int // of a byte and a block
	Upload   *big.Int // of a byte
	Download *big.Int // of a byte
	Contract *big.Int // of forming one
}

// Bandwidth is that of the uplink at an age t of the simulator, in bytes/s of
// what hosts take, padding and redundancy included:
//
//	Floor + (Start − Floor) · exp(−t/Decay)
type Bandwidth struct {
	Start float64
	Floor float64
	Decay time.Duration // 0: it stays at Start
}

// Latency is how long the API takes for an answer:
//
//	Base + PerFile · files + PerByte · absolute bytes + PerSecond · age
//
// times a factor drawn evenly from 1 ± Jitter. An answer is the state in the
// middle of that time.
type Latency struct {
	Base      time.Duration
	PerFile   time.Duration
	PerByte   float64 // seconds
	PerSecond float64 // seconds for each second that the simulator is old
	Jitter    float64
}

// SC is n thousandths of a siacoin in hastings.
func SC(thousandths int64) *big.Int {
	return new(big.Int).Mul(big.NewInt(thousandths), new(big.Int).Exp(big.NewInt(10), big.NewInt(21), nil))
}

// Defaults are a renter on the main network: chunks of 10 + 20 pieces of 4 MiB,
// blocks of ten minutes, and prices as they were recorded.
func Defaults() Config {
	return Config{
		Version: "1.5.9", Password: "simulated", WalletPassword: "simulated",
		Height: 300_000, BlockTime: 10 * time.Minute, Period: 12_960, RenewWindow: 4_032, Peers: 8,
		Hosts: 60, Contracts: 50, HostStorage: 4 << 40,
		Sector: 4 << 20, Data: 10, Parity: 20,
		Wallet: SC(10_000_000), ContractFunds: SC(80_000), ContractFees: SC(3_459),
		Prices: Prices{Storage: big.NewInt(11_574_074_074), Upload: big.NewInt(1_000_000_000_000), Download: big.NewInt(25_000_000_000_000), Contract: SC(150)},
		Up:     Bandwidth{Start: 5e6},
		// siad and the client are on one machine.
		Latency:   Latency{Base: 2 * time.Millisecond},
		KeepBytes: 64 << 20, KeepEach: 1 << 20,
	}
}

func (c Config) filled() Config {
	d := Defaults()
	or(&c.Version, d.Version)
	or(&c.Password, d.Password)
	or(&c.WalletPassword, d.WalletPassword)
	or(&c.Height, d.Height)
	or(&c.BlockTime, d.BlockTime)
	or(&c.Period, d.Period)
	or(&c.RenewWindow, min(d.RenewWindow, c.Period/3))
	or(&c.Peers, d.Peers)
	or(&c.Hosts, d.Hosts)
	or(&c.Contracts, min(d.Contracts, c.Hosts))
	or(&c.HostStorage, d.HostStorage)
	or(&c.Sector, d.Sector)
	or(&c.Data, d.Data)
	or(&c.Parity, d.Parity)
	or(&c.Wallet, d.Wallet)
	or(&c.ContractFunds, d.ContractFunds)
	or(&c.ContractFees, d.ContractFees)
	or(&c.Prices.Storage, d.Prices.Storage)
	or(&c.Prices.Upload, d.Prices.Upload)
	or(&c.Prices.Download, d.Prices.Download)
	or(&c.Prices.Contract, d.Prices.Contract)
	or(&c.Up.Start, d.Up.Start)
	or(&c.Latency, d.Latency)
	or(&c.KeepBytes, d.KeepBytes)
	or(&c.KeepEach, d.KeepEach)
	return c
}

// or sets a value that is zero.
func or[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}
