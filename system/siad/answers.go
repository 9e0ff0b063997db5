package siad

import (
	"encoding/json"
	"fmt"
	"slices"

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
	Health        *float64  `json:"health"` // 0: all pieces are there; releases before 1.4 do not report it
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
	Synced           bool            `json:"synced"`
	Height           json.Number     `json:"height"`
	CurrentBlock     string          `json:"currentblock"`
	Target           json.RawMessage `json:"target"`           // of the next block: its identity is at most these 32 numbers, bytes
	GenesisTimestamp int64           `json:"genesistimestamp"` // seconds
	InitialCoinbase  uint64          `json:"initialcoinbase"`  // siacoins for the first block; one less for each that follows
	MinimumCoinbase  uint64          `json:"minimumcoinbase"`
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
		Allowance allowed `json:"allowance"`
	} `json:"settings"`
	Metrics struct {
		Contracts   sia.Hastings `json:"contractspending"`
		Unspent     sia.Hastings `json:"unspent"`
		Withheld    sia.Hastings `json:"withheldfunds"`
		Previous    sia.Hastings `json:"previousspending"`
		Fees        sia.Hastings `json:"contractfees"`
		Download    sia.Hastings `json:"downloadspending"`
		FundAccount sia.Hastings `json:"fundaccountspending"`
		Storage     sia.Hastings `json:"storagespending"`
		Upload      sia.Hastings `json:"uploadspending"`
		Maintenance maintenance  `json:"maintenancespending"`
	} `json:"financialmetrics"`
}

// allowed is an allowance as it is in force.
type allowed struct {
	Funds  sia.Hastings `json:"funds"`
	Hosts  int64        `json:"hosts"`
	Period int64        `json:"period"`      // blocks
	Renew  int64        `json:"renewwindow"` // blocks before the end of a period
}

// maintenance is what the renter's own calls to hosts cost.
type maintenance struct {
	Balance sia.Hastings `json:"accountbalancecost"`
	Fund    sia.Hastings `json:"fundaccountcost"`
	Prices  sia.Hastings `json:"updatepricetablecost"`
}

func (m maintenance) sum() sia.Hastings { return m.Balance.Plus(m.Fund, m.Prices) }

type contractsAnswer struct {
	All      []contract `json:"contracts"`       // each null when empty
	Active   []contract `json:"activecontracts"` //
	Inactive []contract `json:"inactivecontracts"`
	Passive  []contract `json:"passivecontracts"`
	// Refreshed contracts were replaced before their end, by one that counts the
	// same data: what they cost is theirs all the same.
	Refreshed []contract `json:"refreshedcontracts"`
	// Releases that know the following lists return them on request: contracts that
	// are of no use any more, and those of periods that are over.
	Disabled         []contract `json:"disabledcontracts"`
	Expired          present    `json:"expiredcontracts"`
	ExpiredRefreshed []contract `json:"expiredrefreshedcontracts"`
}

// present are contracts of a list that a release may not know.
type present struct {
	known bool
	all   []contract
}

// UnmarshalJSON implements json.Unmarshaler. It is called for null, too, which is
// an empty list.
func (p *present) UnmarshalJSON(text []byte) error {
	p.known = true
	return json.Unmarshal(text, &p.all)
}

// current are the contracts that are not over.
func (a contractsAnswer) current() []contract {
	return once(nil, a.Active, a.Passive, a.Inactive, a.All)
}

// ended are the contracts that are over, or of no use any more.
func (a contractsAnswer) ended() []contract {
	return once(append(a.current(), a.Refreshed...), a.Disabled, a.Expired.all, a.ExpiredRefreshed)
}

// once are the contracts of these lists, each once, without those of another.
func once(without []contract, lists ...[]contract) (out []contract) {
	seen := map[string]bool{}
	for _, c := range without {
		seen[c.ID] = true
	}
	for _, c := range slices.Concat(lists...) {
		if c.ID == "" || !seen[c.ID] {
			seen[c.ID] = true
			out = append(out, c)
		}
	}
	return out
}

type contract struct {
	ID          string       `json:"id"`
	Size        sia.Bytes    `json:"size"`
	Good        *bool        `json:"goodforupload"` // old releases do not report it
	Total       sia.Hastings `json:"totalcost"`
	RenterFunds sia.Hastings `json:"renterfunds"` // not spent yet
	Fees        sia.Hastings `json:"fees"`
	Storage     sia.Hastings `json:"storagespending"` // in any case: StorageSpending before 1.3.4
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
	Hosts     json.Number  `json:"hosts"`
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
