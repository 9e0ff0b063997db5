package siad

import (
	"errors"

	"github.com/plimsoll-project/plimsoll/system"
)

// program finds siad, which has to be named.
func program(opt system.Options) (string, error) {
	path, err := system.Named(name, opt, "binary", "PLIMSOLL_SIAD")
	if path == "" && err == nil {
		err = errors.New("siad: no binary is named, and none that plimsoll could use is to be had elsewhere")
	}
	return path, err
}
