package siad

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/patience"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
)

// deathTime is how long the end of a process may take to be noticed after its
// connections broke.
const deathTime = 500 * time.Millisecond

// explain adds to an error what is behind it: a process that has ended, or what
// a status means.
func (a *api) explain(err error) error {
	if err == nil || web.Status(err) != 0 || a.alive == nil {
		return meaning(err)
	}
	if !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		select {
		case <-a.alive.Done():
		case <-time.After(deathTime):
		}
	}
	return patience.Explain(a.alive, err)
}

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
		{"wallet must be unlocked", system.ErrLocked, unlockHint},
		{"not enough contracts", system.ErrTooFew, "GET /renter/uploadready says how many are needed"},
		{"not enough workers", system.ErrTooFew, "hosts are offline or on cooldown: GET /renter/workers"},
		{"path does not exist", system.ErrNotFound, ""},
		{"no file known with that", system.ErrNotFound, ""},
		{"invalid SiaPath", system.ErrBadRef, ""},
	} {
		if strings.Contains(e.Said, known.text) {
			if known.hint != "" {
				return fmt.Errorf("%w: %w; %s", err, known.means, known.hint)
			}
			return fmt.Errorf("%w: %w", err, known.means)
		}
	}
	switch e.Status {
	case http.StatusUnauthorized:
		return fmt.Errorf("%w: %w; the variable that option `password` names must hold the API password (siad keeps it in the file apipassword)", err, system.ErrAuth)
	case 491:
		return fmt.Errorf("%w; siad runs without that module: start it with -M gctwr", err)
	}
	return err
}

const unlockHint = "POST /wallet/unlock, or set option `wallet_password`"

// notThere reports an answer that says so, of a kind that has no error of its own.
func notThere(err error) bool {
	return web.Status(err) == http.StatusBadRequest
}
