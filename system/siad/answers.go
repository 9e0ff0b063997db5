package siad

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/plimsoll-project/plimsoll/system/internal/sia"
)

// size is a number of bytes in an answer. siad counts in uint64 and its counts
// have been seen to underflow: what no file can have is an error, not a figure.
type size int64

// UnmarshalJSON implements json.Unmarshaler.
func (s *size) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*s = 0
		return nil
	}
	n, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil || n > math.MaxInt64 {
		return fmt.Errorf("%s is no number of bytes", text)
	}
	*s = size(n)
	return nil
}

// file is what the renter knows of a file. Redundancy is the lowest of all
// chunks: 0 until the last one is on a host.
type file struct {
	SiaPath        string  `json:"siapath"`
	FileSize       size    `json:"filesize"`
	UploadedBytes  size    `json:"uploadedbytes"`
	UploadProgress float64 `json:"uploadprogress"` // percent
	Redundancy     float64 `json:"redundancy"`
	Available      bool    `json:"available"`
	LocalPath      string  `json:"localpath"`
}

type fileAnswer struct {
	File *file `json:"file"`
}

type walletAnswer struct {
	Encrypted bool         `json:"encrypted"`
	Unlocked  bool         `json:"unlocked"`
	Rescan    bool         `json:"rescanning"`
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
	Address string     `json:"netaddress"`
	Peers   []struct{} `json:"peers"`
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
	told bool
	all  []contract
}

// UnmarshalJSON implements json.Unmarshaler. It is called for null, too, which is
// an empty list.
func (p *present) UnmarshalJSON(text []byte) error {
	p.told = true
	return json.Unmarshal(text, &p.all)
}

type contract struct {
	ID          string       `json:"id"`
	Size        figure       `json:"size"`
	Good        *bool        `json:"goodforupload"` // old releases do not tell
	Total       sia.Hastings `json:"totalcost"`
	RenterFunds sia.Hastings `json:"renterfunds"` // not spent yet
	Fees        sia.Hastings `json:"fees"`
	Storage     sia.Hastings `json:"storagespending"` // in any case: StorageSpending before 1.3.4
	Upload      sia.Hastings `json:"uploadspending"`
	Download    sia.Hastings `json:"downloadspending"`
	FundAccount sia.Hastings `json:"fundaccountspending"`
	Maintenance maintenance  `json:"maintenancespending"`
}

type pricesAnswer struct {
	Storage   sia.Hastings `json:"storageterabytemonth"`
	Upload    sia.Hastings `json:"uploadterabyte"`
	Download  sia.Hastings `json:"downloadterabyte"`
	Contracts sia.Hastings `json:"formcontracts"`
	Hosts     json.Number  `json:"hosts"`
}

type hostsAnswer struct {
	Hosts []struct{} `json:"hosts"` // null when none is known
}
