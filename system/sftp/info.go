// Package sftp stores objects as files over SFTP: on an OpenSSH server started
// here, or on any SSH server that runs already.
package sftp

import (
	"slices"

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
		Options: slices.Concat([]system.Option{
			{Name: "concurrent", Type: "bool", Default: "true", Help: "up to 64 requests of one transfer under way at the same time; false: each waits for the one before"},
			{Name: "packet", Type: "size", Default: "32768", Help: "bytes in one request, from 1 KiB to 255 KiB; servers other than OpenSSH may take no more than 32 KiB"},
		}, sshd.Options(), []system.Option{
			{Name: "url", Type: "string", Help: "attach: sftp://USER@HOST[:PORT]/DIRECTORY; /~/ begins a directory below the user's home"},
			{Name: "key", Type: "string", Help: "attach: file of the private key to log in with, without a passphrase"},
			{Name: "password", Type: "string", Secret: true, Help: "attach: environment variable with the password to log in with"},
			{Name: "known_hosts", Type: "string", Help: "attach: file with the server's host key; empty: ~/.ssh/known_hosts"},
			{Name: "fingerprint", Type: "string", Help: "attach: fingerprint of the server's host key, SHA256:…, instead of a file"},
		}),
	}
}
