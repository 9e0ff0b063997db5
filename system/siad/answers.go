package siad

import (
	"encoding/json"
	"fmt"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/sia"
)

// file is what the renter knows of a file. Redundancy is the lowest of all
// chunks: 0 until the last one is on a host.
type file struct {
	SiaPath       string    `json:"siapath"`
	FileSize      sia.Bytes `json:"filesize"`
	UploadedBytes sia.Bytes `json:"uploadedbytes"`
	Progress      float64   `json:"uploadprogress"` // percent; it never falls, not even when hosts are lost
	Redundancy    float64   `json:"redundancy"`
	Available     bool      `json:"available"`
	Health        float64   `json:"health"` // 0: all pieces are there
}

// absurd is an error when a number of bytes is none that a file can have.
func (f file) absurd() error {
	for _, b := range []sia.Bytes{f.FileSize, f.UploadedBytes} {
		if b.Bad != "" {
			return fmt.Errorf("siad: file %s: %s is no number of bytes: %w", f.SiaPath, b.Bad, system.ErrAnswer)
		}
	}
	return nil
}

type walletAnswer struct {
	Unlocked  bool         `json:"unlocked"`
	Confirmed sia.Hastings `json:"confirmedsiacoinbalance"`
	Outgoing  sia.Hastings `json:"unconfirmedoutgoingsiacoins"`
	Incoming  sia.Hastings `json:"unconfirmedincomingsiacoins"`
}

type consensusAnswer struct {
	Synced       bool        `json:"synced"`
	Height       json.Number `json:"height"`
	CurrentBlock string      `json:"currentblock"`
	// of the next block: its identity is at most these 32 numbers, bytes
	Target           json.RawMessage `json:"target"`
	GenesisTimestamp int64           `json:"genesistimestamp"` // seconds
	// siacoins for the first block; one less for each that follows
	InitialCoinbase uint64 `json:"initialcoinbase"`
	MinimumCoinbase uint64 `json:"minimumcoinbase"`
}

type gatewayAnswer struct {
	Peers []struct{} `json:"peers"` // null when there are none
}

type readyAnswer struct {
	Ready        bool  `json:"ready"`
	Needed       int64 `json:"contractsneeded"`
	Active       int64 `json:"numactivecontracts"`
	DataPieces   int64 `json:"datapieces"`
	ParityPieces int64 `json:"paritypieces"`
}

// renterAnswer leaves out `currentperiod`, which underflows on young chains.
type renterAnswer struct {
	Settings struct {
		Allowance struct {
			Funds  sia.Hastings `json:"funds"`
			Period int64        `json:"period"` // blocks
		} `json:"allowance"`
	} `json:"settings"`
	Metrics struct {
		Contracts sia.Hastings `json:"contractspending"`
		Unspent   sia.Hastings `json:"unspent"`
		Withheld  sia.Hastings `json:"withheldfunds"`
		Previous  sia.Hastings `json:"previousspending"`
	} `json:"financialmetrics"`
}

// maintenance is what the renter's own calls to hosts cost.
type maintenance struct {
	Balance sia.Hastings `json:"accountbalancecost"`
	Fund    sia.Hastings `json:"fundaccountcost"`
	Prices  sia.Hastings `json:"updatepricetablecost"`
}

func (m maintenance) sum() sia.Hastings { return m.Balance.Plus(m.Fund, m.Prices) }

// contractsAnswer has each contract in one of its lists, null when empty. What is over
// is there only when it is asked for (allContracts).
type contractsAnswer struct {
	Active  []contract `json:"activecontracts"`
	Passive []contract `json:"passivecontracts"`
	// Refreshed contracts were replaced before their end, by one that counts the
	// same data: what they cost is theirs all the same.
	Refreshed        []contract `json:"refreshedcontracts"`
	Disabled         []contract `json:"disabledcontracts"`
	Expired          []contract `json:"expiredcontracts"`
	ExpiredRefreshed []contract `json:"expiredrefreshedcontracts"`
}

type contract struct {
	ID          string       `json:"id"`
	Size        sia.Bytes    `json:"size"`
	Good        bool         `json:"goodforupload"`
	Total       sia.Hastings `json:"totalcost"`
	RenterFunds sia.Hastings `json:"renterfunds"` // not spent yet
	Fees        sia.Hastings `json:"fees"`
	Storage     sia.Hastings `json:"storagespending"`
	Upload      sia.Hastings `json:"uploadspending"`
	Download    sia.Hastings `json:"downloadspending"`
	FundAccount sia.Hastings `json:"fundaccountspending"`
	Maintenance maintenance  `json:"maintenancespending"`
}

// accounts says what a contract pays for. siad 1.5 pays for calls of its own from
// accounts with hosts and reports what went there (accounts, maintenance): without it the
// parts do not make the total.
func accounts() sia.Accounts[contract] {
	return sia.Accounts[contract]{
		Total:   func(c contract) sia.Hastings { return c.Total },
		Unspent: func(c contract) sia.Hastings { return c.RenterFunds },
		Purposes: []sia.Purpose[contract]{
			{Name: "fees", Of: func(c contract) sia.Hastings { return c.Fees }},
			{Name: "storage", Of: func(c contract) sia.Hastings { return c.Storage }},
			{Name: "upload", Of: func(c contract) sia.Hastings { return c.Upload }},
			{Name: "download", Of: func(c contract) sia.Hastings { return c.Download }},
			{Name: "accounts", Of: func(c contract) sia.Hastings { return c.FundAccount }},
			{Name: "maintenance", Of: func(c contract) sia.Hastings { return c.Maintenance.sum() }},
		},
	}
}

type pricesAnswer struct {
	Storage   sia.Hastings `json:"storageterabytemonth"`
	Upload    sia.Hastings `json:"uploadterabyte"`
	Download  sia.Hastings `json:"downloadterabyte"`
	Contracts sia.Hastings `json:"formcontracts"`
}

type hostsAnswer struct {
	Hosts []struct {
		NetAddress string `json:"netaddress"`
	} `json:"hosts"` // null when none is known
}

func (a hostsAnswer) has(address string) bool {
	for _, h := range a.Hosts {
		if h.NetAddress == address {
			return true
		}
	}
	return false
}
