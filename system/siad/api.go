package siad

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/url"

	"go.sia.tech/core/types"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/sia"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// connect returns an API without contacting the daemon. siad answers reports without a password, so
// they do not reveal a wrong one. The API listens before the modules are loaded, all at once, and
// answers calls to them with status 490 until then.
func connect(base *url.URL, password string, from testbed.Host) *sia.API {
	return sia.Connect(sia.API{System: name, Base: base, Consensus: "/consensus", Meanings: meanings(),
		Header: http.Header{"User-Agent": {"Sia-Agent"}}, // siad refuses all others: "Browser access disabled"
	}, password, from)
}

const unlockHint = "unlock it: siac wallet unlock, or POST /wallet/unlock"

// meanings identifies errors by their text, because siad answers all of them with status 400 or
// 500.
func meanings() []sia.Meaning {
	return []sia.Meaning{
		{Text: "wallet must be unlocked", Means: system.ErrLocked, Hint: unlockHint},
		{Text: "not enough contracts", Means: system.ErrTooFew,
			Hint: "GET /renter/uploadready says how many are needed"},
		{Text: "not enough workers", Means: system.ErrTooFew,
			Hint: "hosts are offline or on cooldown: GET /renter/workers"},
		{Text: "path does not exist", Means: system.ErrNotFound},
		{Text: "no file known with that", Means: system.ErrNotFound},
		{Text: "invalid SiaPath", Means: system.ErrBadRef},
		{Status: http.StatusUnauthorized, Means: system.ErrAuth, Hint: "the variable that option `password` names " +
			"must hold the API password (siad keeps it in the file apipassword)"},
		{Status: 491, Hint: "siad runs without that module: start it with -M gctwr"},
	}
}

// checkPassword makes a call that siad refuses without the password and that has no effect with it:
// a download without a destination.
func checkPassword(ctx context.Context, a *sia.API) error {
	err := a.Get(ctx, "/renter/download/plimsoll-password-check", nil, nil)
	switch web.Status(err) {
	case http.StatusBadRequest, http.StatusInternalServerError:
		return nil // the password is right; siad refused the download itself
	}
	if err == nil {
		return fmt.Errorf("siad: %s took a download without a destination: it is no siad v1.5", a.Base.Host)
	}
	return err
}

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
