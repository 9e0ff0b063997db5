package web

import (
	"net/http"

	"github.com/plimsoll-project/plimsoll/system"
)

// maxText is how much of an answer's text an error keeps.
const maxText = 64 << 10

// StatusError is an answer with another status than the one asked for. It wraps
// what the status stands for, such as ErrNotFound for 404 and 410; a system
// whose servers mean something else by it makes an error of its own from Text.
type StatusError struct {
	Code    int
	Text    string // of the answer, at most 64 KiB of it
	message string
}

func (e *StatusError) Error() string { return e.message }

func (e *StatusError) Unwrap() error {
	switch e.Code {
	case http.StatusNotFound, http.StatusGone:
		return system.ErrNotFound
	case http.StatusUnauthorized, http.StatusForbidden:
		return system.ErrAuth
	case http.StatusInsufficientStorage:
		return system.ErrQuota
	}
	return nil
}
