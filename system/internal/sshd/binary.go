package sshd

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/plimsoll-project/plimsoll/system"
)

// Install says how to get it.
const Install = "install the Debian package openssh-server (its service need not run), or name the program in option " +
	"`binary` or PLIMSOLL_SSHD"

// Check says what is missing to start a server for the system named name.
func Check(ctx context.Context, name string, opt system.Options) []system.Problem {
	bin, err := program(name, opt)
	if err != nil {
		return []system.Problem{{What: err.Error(), Hint: Install}}
	}
	if _, err := Version(ctx, bin); err != nil {
		return []system.Problem{{What: name + ": " + err.Error(), Hint: Install}}
	}
	if _, err := account(); err != nil {
		return []system.Problem{{What: name + ": " + err.Error(),
			Hint: "run it as a user with an account on this machine"}}
	}
	return nil
}

// program finds sshd, which Debian keeps out of the PATH of ordinary users. sshd
// starts itself again for each connection and so wants an absolute path.
func program(name string, opt system.Options) (string, error) {
	return system.Program(name, opt, "binary", "PLIMSOLL_SSHD", "sshd", "/usr/sbin/sshd", "/usr/local/sbin/sshd")
}

var versionText = regexp.MustCompile(`OpenSSH_[^\s,]+`)

// Version asks a program of OpenSSH. Old ones know no -V, and tell it with their usage.
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
