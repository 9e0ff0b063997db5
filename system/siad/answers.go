package siad

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
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

// hastings is an amount of money, 10^24 to the siacoin, sent as text.
type hastings struct{ *big.Int }

// UnmarshalJSON implements json.Unmarshaler.
func (h *hastings) UnmarshalJSON(text []byte) error {
	s := strings.Trim(string(text), `"`)
	if s == "null" || s == "" {
		h.Int = nil
		return nil
	}
	n, ok := new(big.Int).SetString(s, 10)
	if !ok {
		return fmt.Errorf("%.80s is no amount of hastings", text)
	}
	h.Int = n
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

type filesAnswer struct {
	Files []file `json:"files"` // null when there are none
}

type walletAnswer struct {
	Encrypted bool     `json:"encrypted"`
	Unlocked  bool     `json:"unlocked"`
	Rescan    bool     `json:"rescanning"`
	Confirmed hastings `json:"confirmedsiacoinbalance"`
}

type consensusAnswer struct {
	Synced bool        `json:"synced"`
	Height json.Number `json:"height"`
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
	Metrics struct {
		Fees        hastings `json:"contractfees"`
		Download    hastings `json:"downloadspending"`
		FundAccount hastings `json:"fundaccountspending"`
		Storage     hastings `json:"storagespending"`
		Upload      hastings `json:"uploadspending"`
		Maintenance struct {
			Balance hastings `json:"accountbalancecost"`
			Fund    hastings `json:"fundaccountcost"`
			Prices  hastings `json:"updatepricetablecost"`
		} `json:"maintenancespending"`
	} `json:"financialmetrics"`
}

type contractsAnswer struct {
	Active  []contract `json:"activecontracts"` // each null when empty
	Passive []contract `json:"passivecontracts"`
}

type contract struct {
	RenterFunds hastings `json:"renterfunds"`
}

type pricesAnswer struct {
	Storage   hastings    `json:"storageterabytemonth"`
	Upload    hastings    `json:"uploadterabyte"`
	Download  hastings    `json:"downloadterabyte"`
	Contracts hastings    `json:"formcontracts"`
	Hosts     json.Number `json:"hosts"`
}

type hostsAnswer struct {
	Hosts []struct{} `json:"hosts"` // null when none is known
}
