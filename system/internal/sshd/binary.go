package sshd

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/plimsoll-project/plimsoll/system"
)

// Install explains how to install sshd.
const Install = "install the Debian package openssh-server (its service need not run), or name the program in option " +
	"`binary` or PLIMSOLL_SSHD"

// Check reports what is missing to start a server for a system.
func Check(ctx context.Context, i system.Info, opt system.Options) []system.Problem {
	bin, err := program(i.Name, opt)
	if err == nil {
		_, err = Version(ctx, bin)
	}
	if err == nil {
		_, err = account()
	}
	return i.Missing(err)
}

// program finds sshd, which Debian keeps out of the PATH of ordinary users. sshd re-executes itself
// for each connection, so it needs an absolute path.
func program(name string, opt system.Options) (string, error) {
	return system.Program(name, opt, "binary", "PLIMSOLL_SSHD", "sshd", "/usr/sbin/sshd", "/usr/local/sbin/sshd")
}

var versionText = regexp.MustCompile(`OpenSSH_[^\s,]+`)

// Version returns the version of an OpenSSH program. Old versions do not support -V, but print the
// version with their usage.
func Version(ctx context.Context, bin string) (string, error) {
	out, err := system.Output(ctx, bin, "-V")
	if v := versionText.FindString(out); v != "" {
		return v, nil
	}
	if err == nil {
		err = errors.New("no version in its answer")
	}
	return "", fmt.Errorf("%s -V: %w", bin, err)
}
