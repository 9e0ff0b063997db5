// Package sftp stores objects as files over SFTP: on an OpenSSH server started
// here, or on any SSH server that runs already.
package sftp

import (
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/sshd"
)

const name = "sftp"

// Info implements system.System.
func (System) Info() system.Info {
	return system.Info{
		Name:     name,
		Summary:  "files over SFTP (OpenSSH started here, or any SSH server): the baseline of encrypted copying",
		Modes:    []system.Mode{system.Start, system.Attach},
		Can:      []string{"put", "range", "stat", "delete", "list", "update", "fresh", "stats"},
		Install:  sshd.Install,
		Baseline: true,
		Kept:     "data", // the server gets other keys and another port
		Options: append(sshd.Options(), []system.Option{
			{Name: "url", Type: "string", Help: "attach: sftp://USER@HOST[:PORT]/DIRECTORY; /~/ is the user's home"},
			{Name: "key", Type: "string", Help: "attach: file of a private key without a passphrase"},
			{Name: "password", Type: "string", Secret: true, Help: "attach: environment variable with the password"},
			{Name: "known_hosts", Type: "string", Help: "attach: file of host keys; empty: ~/.ssh/known_hosts"},
		}...),
	}
}
