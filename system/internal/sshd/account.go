package sshd

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
)

// serverAccount is the account that clients log in to, with the way to run sshd for it.
type serverAccount struct {
	name   string
	root   bool     // real root: sshd switches users and confines itself
	prefix []string // of the command
}

// account returns the account of the user who runs Plimsoll: an sshd without root serves only its
// own user. Root of a user namespace looks like root to sshd, but lacks its privileges. There sshd
// runs in a further user namespace, as the ordinary user that this root is outside.
func account() (serverAccount, error) {
	if os.Geteuid() != 0 {
		u, err := user.Current()
		if err != nil {
			return serverAccount{}, fmt.Errorf("who runs this: %w", err)
		}
		return serverAccount{name: u.Username}, nil
	}
	b, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return serverAccount{}, fmt.Errorf("user namespace: %w", err)
	}
	outside, mapped := outsideRoot(string(b))
	if !mapped {
		return serverAccount{name: "root", root: true}, nil
	}
	u, err := user.LookupId(strconv.Itoa(outside))
	if err != nil {
		return serverAccount{}, fmt.Errorf("sshd serves an account, and the user who runs this (uid %d) has none: %w",
			outside, err)
	}
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		return serverAccount{}, errors.New("sshd in a user namespace needs the program unshare (Debian package util-linux)")
	}
	return serverAccount{name: u.Username, prefix: []string{unshare, "--user", "--map-user=" + u.Uid,
		"--map-group=" + u.Gid, "--"}}, nil
}

// outsideRoot parses a uid_map (user_namespaces(7)) and returns the user that root of this
// namespace is outside. mapped is false if the namespace has other users besides root.
func outsideRoot(uidMap string) (outside int, mapped bool) {
	f := strings.Fields(uidMap)
	if len(f) != 3 || f[0] != "0" || f[2] != "1" {
		return 0, false
	}
	outside, err := strconv.Atoi(f[1])
	return outside, err == nil && outside != 0
}
