package siad

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/sia"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// api is one siad's HTTP API. Reports need no password, so that a wrong one goes unnoticed.
type api struct{ *sia.API }

// connect makes an api without asking the daemon anything.
func connect(base *url.URL, password string, from testbed.Host) (*api, error) {
	// Any other agent is refused: "Browser access disabled".
	a, err := sia.Connect(name, base, http.Header{"User-Agent": {"Sia-Agent"}}, password, from, meaning)
	return &api{a}, err
}

// post sends a form. Its success, 204, says that the order was taken, not that
// it was carried out.
func (a *api) post(ctx context.Context, path string, form url.Values) error {
	if form == nil {
		return a.Send(ctx, http.MethodPost, path, nil, nil, nil)
	}
	return a.Send(ctx, http.MethodPost, path, nil, form, nil)
}

// checkPassword asks for something that is refused without the password and
// does nothing with it: a download to nowhere.
func (a *api) checkPassword(ctx context.Context) error {
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

func (a *api) version(ctx context.Context) (string, error) {
	var v struct {
		Version string `json:"version"`
	}
	err := a.Get(ctx, "/daemon/version", nil, &v)
	return v.Version, err
}

const unlockHint = "unlock it: siac wallet unlock, or POST /wallet/unlock"

// meaning adds what a status and its text mean. siad says 400 and 500 for
// everything, so that the text is all there is to go by.
func meaning(err error) error {
	var e *web.StatusError
	if !errors.As(err, &e) {
		return err
	}
	for _, known := range []struct {
		text  string
		means error
		hint  string
	}{
		{"wallet must be unlocked", system.ErrLocked, "; " + unlockHint},
		{"not enough contracts", system.ErrTooFew, "; GET /renter/uploadready says how many are needed"},
		{"not enough workers", system.ErrTooFew, "; hosts are offline or on cooldown: GET /renter/workers"},
		{"path does not exist", system.ErrNotFound, ""},
		{"no file known with that", system.ErrNotFound, ""},
		{"invalid SiaPath", system.ErrBadRef, ""},
	} {
		if strings.Contains(e.Said, known.text) {
			return fmt.Errorf("%w: %w%s", err, known.means, known.hint)
		}
	}
	switch e.Status {
	case http.StatusUnauthorized:
		return fmt.Errorf("%w: %w; the variable that option `password` names must hold the API password (siad keeps "+
			"it in the file apipassword)", err, system.ErrAuth)
	case 491:
		return fmt.Errorf("%w; siad runs without that module: start it with -M gctwr", err)
	}
	return err
}
