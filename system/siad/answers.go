package siad

import (
	"cmp"
	"context"
	"fmt"

	"go.sia.tech/core/types"

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
	if bad := cmp.Or(f.FileSize.Absurd(), f.UploadedBytes.Absurd()); bad != "" {
		return fmt.Errorf("siad: file %s: %s: %w", f.SiaPath, bad, system.ErrAnswer)
	}
	return nil
}

type walletAnswer struct {
	Unlocked  bool         `json:"unlocked"`
	Confirmed sia.Hastings `json:"confirmedsiacoinbalance"`
}

// consensusAnswer is how far a daemon is, and what the next block is to be.
type consensusAnswer struct {
	Height           int64         `json:"height"`
	Tip              types.BlockID `json:"currentblock"`
	Target           [32]byte      `json:"target"`           // the block's identity is at most this
	GenesisTimestamp int64         `json:"genesistimestamp"` // seconds
	// siacoins for the first block; one less for each that follows
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
	Maintenance struct {     // what the renter's own calls to hosts cost
		Balance sia.Hastings `json:"accountbalancecost"`
		Fund    sia.Hastings `json:"fundaccountcost"`
		Prices  sia.Hastings `json:"updatepricetablecost"`
	} `json:"maintenancespending"`
}

// account says what a contract pays for. siad 1.5 pays for calls of its own from
// accounts with hosts and reports what went there (accounts, maintenance): without it the
// parts do not make the total.
func (c contract) account() sia.Account {
	return sia.Account{Total: c.Total, Unspent: c.RenterFunds, Parts: []sia.Amount{
		{Name: "fees", Is: c.Fees}, {Name: "storage", Is: c.Storage}, {Name: "upload", Is: c.Upload},
		{Name: "download", Is: c.Download}, {Name: "accounts", Is: c.FundAccount},
		{Name: "maintenance", Is: c.Maintenance.Balance.Plus(c.Maintenance.Fund, c.Maintenance.Prices)},
	}}
}
