package siad

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/plimsoll-project/plimsoll/system"
)

// binary finds siad.
func binary(opt system.Options) (string, error) {
	for _, named := range []struct{ by, path string }{{"option `binary`", opt["binary"]}, {"PLIMSOLL_SIAD", os.Getenv("PLIMSOLL_SIAD")}} {
		if named.path == "" {
			continue
		}
		if _, err := exec.LookPath(named.path); err != nil {
			return "", fmt.Errorf("siad: %s: %w", named.by, err)
		}
		return filepath.Abs(named.path)
	}
	return "", errors.New("siad: no binary is named, and none that plimsoll could use is to be had elsewhere")
}
