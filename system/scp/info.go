// Package scp copies objects with the program scp, a process for each
// operation, to an OpenSSH server started here.
package scp

import (
	"slices"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/sshd"
)

const name = "scp"

// Info implements system.System.
func (System) Info() system.Info {
	return system.Info{
		Name: name,
		Summary: "files copied by the program scp, a process and a login for each (OpenSSH started here): the " +
			"baseline of the Tahoe-LAFS study",
		Modes:    []system.Mode{system.Start},
		Can:      []string{"put", "update", "fresh", "stats", "phases"},
		Install:  sshd.Install + "; and openssh-client, whose program option `scp` can name",
		Fresh:    true,
		Baseline: true,
		Options: slices.Concat([]system.Option{
			{Name: "protocol", Type: "enum", Enum: []string{"sftp", "scp"}, Default: "sftp",
				Help: "sftp (scp's default since OpenSSH 9.0) or scp (scp -O)"},
			{Name: "scp", Type: "string", Help: "path of scp; empty: PLIMSOLL_SCP, then PATH"},
		}, sshd.Options()),
	}
}
