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

// connect makes an API without asking the daemon anything. Reports need no password, so that a wrong one goes
// unnoticed. The API answers before the modules are there, which it gets all at once, and says 490 to
// their calls until then.
func connect(base *url.URL, password string, from testbed.Host) *sia.API {
	return sia.Connect(sia.API{System: name, Base: base, Consensus: "/consensus", Meanings: meanings(),
		Header: http.Header{"User-Agent": {"Sia-Agent"}}, // any other is refused: "Browser access disabled"
	}, password, from)
}

const unlockHint = "unlock it: siac wallet unlock, or POST /wallet/unlock"

// meanings: siad says 400 and 500 for everything, so that the text is all there is to go by.
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

// checkPassword asks for something that is refused without the password and
// does nothing with it: a download to nowhere.
func checkPassword(ctx context.Context, a *sia.API) error {
	err := a.Get(ctx, "/renter/download/plimsoll-password-check", nil, nil)
	switch web.Status(err) {
	case http.StatusBadRequest, http.StatusInternalServerError:
		return nil // the password was right, the download is not
	}
	if err == nil {
		return fmt.Errorf("siad: %s took a download without a destination: it is no siad v1.5", a.Base.Host)
	}
	return err
}
