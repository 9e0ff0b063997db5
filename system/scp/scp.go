// Package scp copies objects with the program scp, one process per operation, to an OpenSSH server
// started by Plimsoll.
package scp

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/sshd"
)

const name = "scp"

//go:embed info.yaml
var description string

// System implements system.System.
type System struct{}

// Info implements system.System.
func (System) Info() system.Info { return system.Describe(description) }

var (
	_ system.Seeder   = (*node)(nil)
	_ system.Healther = (*node)(nil)
)

// Check implements system.System.
func (s System) Check(ctx context.Context, opt system.Options) []system.Problem {
	_, err := program(opt)
	return append(sshd.Check(ctx, s.Info(), opt), s.Info().Missing(err)...)
}

// Start implements system.Starter: it starts one server on each host.
func (s System) Start(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	bin, err := program(d.Options)
	if err != nil {
		return nil, err
	}
	client, err := sshd.Version(ctx, "ssh") // scp runs ssh, and has no version option itself
	if err != nil {
		client = "OpenSSH (version unknown)"
	}
	identity := map[string]string{"client": client, "protocol": d.Options["protocol"],
		"connections": "fresh", "puts": system.PutsTear}
	return group.Start(ctx, len(d.Hosts), 1, identity, func(ctx context.Context, i int) (group.Node, error) {
		server, err := sshd.Start(ctx, name, d, d.Hosts[i])
		if err != nil {
			return nil, err
		}
		identity["version"], identity["binary"], identity["user"] = server.Version, server.Binary, server.User
		n := &node{server: server, host: d.Client, bin: bin, flag: flag(d.Options["protocol"]),
			free: make(chan slot, 1000)}
		n.scratch = disk.Of(d, d.Client, fmt.Sprintf("%s-%d", name, i+1))
		n.prefix = fmt.Sprintf("%s/client-%d-", name, i+1)
		return n, nil
	})
}

// flag returns scp's flag for the protocol.
func flag(protocol string) string {
	if protocol == "scp" {
		return "-O"
	}
	return "-s"
}

// program returns the client program, which never comes from an image: option "image" is only for
// sshd.
func program(opt system.Options) (string, error) {
	path, err := exec.LookPath(cmp.Or(opt["scp"], os.Getenv("PLIMSOLL_SCP"), "scp"))
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return filepath.Abs(path)
}
