package siad

import (
	"context"
	"fmt"
	"math"

	"go.sia.tech/core/types"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/sia"
)

// file is the renter's report on a file. Redundancy is the lowest of all chunks, so it is 0 until
// the last chunk is on a host.
type file struct {
	SiaPath       string  `json:"siapath"`
	FileSize      float64 `json:"filesize"`
	UploadedBytes float64 `json:"uploadedbytes"`
	Progress      float64 `json:"uploadprogress"` // percent; never decreases, even if hosts are lost
	Redundancy    float64 `json:"redundancy"`
	Available     bool    `json:"available"`
	Health        float64 `json:"health"` // 0: all pieces are stored
}

// absurd returns an error if a reported number of bytes is impossible for a file: the daemon counts
// in uint64, and its counts have been seen to underflow.
func (f file) absurd() error {
	if bytes := max(f.FileSize, f.UploadedBytes); bytes >= math.MaxInt64 {
		return fmt.Errorf("siad: file %s: %.0f is no number of bytes: %w", f.SiaPath, bytes, system.ErrAnswer)
	}
	return nil
}

type walletAnswer struct {
	Unlocked  bool         `json:"unlocked"`
	Confirmed sia.Hastings `json:"confirmedsiacoinbalance"`
}

// consensusAnswer holds the state of a daemon's chain and the requirements for its next block.
type consensusAnswer struct {
	Height           int64         `json:"height"`
	Tip              types.BlockID `json:"currentblock"`
	Target           [32]byte      `json:"target"`           // upper bound of the block's ID
	GenesisTimestamp int64         `json:"genesistimestamp"` // seconds
	// in siacoins, for the first block; 1 less for each block after it
	InitialCoinbase uint64 `json:"initialcoinbase"`
	MinimumCoinbase uint64 `json:"minimumcoinbase"`
}

func consensus(ctx context.Context, a *sia.API) (c consensusAnswer, err error) {
	err = a.Get(ctx, "/consensus", nil, &c)
	return c, err
}

type readyAnswer struct {
	Ready        bool  `json:"ready"`
	Needed       int64 `json:"contractsneeded"`
	Active       int64 `json:"numactivecontracts"`
	DataPieces   int64 `json:"datapieces"`
	ParityPieces int64 `json:"paritypieces"`
}

// contractsAnswer lists each contract in exactly one field; empty lists are null. siad lists
// contracts that are no longer active only if asked to (allContracts).
type contractsAnswer struct {
	Active  []contract `json:"activecontracts"`
	Passive []contract `json:"passivecontracts"`
	// Refreshed contracts were replaced before their end by a contract that counts the same data.
	// Their own costs still count.
	Refreshed        []contract `json:"refreshedcontracts"`
	Disabled         []contract `json:"disabledcontracts"`
	Expired          []contract `json:"expiredcontracts"`
	ExpiredRefreshed []contract `json:"expiredrefreshedcontracts"`
}

type contract struct {
	ID          string       `json:"id"`
	Size        float64      `json:"size"`
	Good        bool         `json:"goodforupload"`
	Total       sia.Hastings `json:"totalcost"`
	RenterFunds sia.Hastings `json:"renterfunds"` // not spent yet
	Fees        sia.Hastings `json:"fees"`
	Storage     sia.Hastings `json:"storagespending"`
	Upload      sia.Hastings `json:"uploadspending"`
	Download    sia.Hastings `json:"downloadspending"`
	FundAccount sia.Hastings `json:"fundaccountspending"`
	Maintenance struct {     // cost of the renter's own calls to hosts
		Balance sia.Hastings `json:"accountbalancecost"`
		Fund    sia.Hastings `json:"fundaccountcost"`
		Prices  sia.Hastings `json:"updatepricetablecost"`
	} `json:"maintenancespending"`
}

// account returns the costs of a contract. siad 1.5 pays for some of its own calls from accounts
// with hosts and reports these payments separately (accounts, maintenance); without them, the parts
// do not add up to the total.
func (c contract) account() sia.Account {
	return sia.Account{Total: c.Total, Unspent: c.RenterFunds, Parts: []sia.Amount{
		{Name: "fees", Is: c.Fees}, {Name: "storage", Is: c.Storage}, {Name: "upload", Is: c.Upload},
		{Name: "download", Is: c.Download}, {Name: "accounts", Is: c.FundAccount},
		{Name: "maintenance", Is: c.Maintenance.Balance.Plus(c.Maintenance.Fund, c.Maintenance.Prices)},
	}}
}
