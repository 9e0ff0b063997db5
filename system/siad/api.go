package siad

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

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
