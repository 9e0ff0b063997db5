package scp

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/sshd"
)

// System implements system.System.
type System struct{}

var (
	_ system.Seeder   = (*node)(nil)
	_ system.Healther = (*node)(nil)
)

// Check implements system.System.
func (s System) Check(ctx context.Context, opt system.Options) []system.Problem {
	problems := sshd.Check(ctx, name, opt)
	if _, err := program(opt); err != nil {
		problems = append(problems, system.Problem{What: err.Error(),
			Hint: "install the Debian package openssh-client, or name the program in option `scp`"})
	}
	return problems
}

// Start implements system.System: one server on each host.
func (s System) Start(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	bin, err := program(d.Options)
	if err != nil {
		return nil, err
	}
	identity := map[string]string{"client": clientVersion(ctx), "protocol": d.Options["protocol"],
		"connections": "fresh", "puts": system.PutsTear}
	return group.Start(ctx, len(d.Hosts), identity, func(ctx context.Context, i int) (group.Node, error) {
		server, err := sshd.Start(ctx, name, d, d.Hosts[i], func(ctx context.Context, s *sshd.Server) error {
			return s.Probe(ctx, d.Client.Dial)
		})
		if err != nil {
			return nil, err
		}
		identity["version"], identity["binary"], identity["user"] = server.Version, server.Binary, server.User
		n := &node{server: server, host: d.Client, bin: bin, flag: flag(d.Options["protocol"])}
		n.scratch = disk.Of(d, d.Client, fmt.Sprintf("%s-%d", name, i+1))
		n.slots.prefix = fmt.Sprintf("%s/client-%d-", name, i+1)
		return n, nil
	})
}

// flag is scp's for the protocol.
func flag(protocol string) string {
	if protocol == "scp" {
		return "-O"
	}
	return "-s"
}

// program is the client's: option "image" is for sshd alone.
func program(opt system.Options) (string, error) {
	path, err := system.Named(name, system.Options{"scp": opt["scp"]}, "scp", "PLIMSOLL_SCP")
	if path != "" || err != nil {
		return path, err
	}
	if path, err = exec.LookPath("scp"); err != nil {
		return "", fmt.Errorf("%s: not found in PATH: scp", name)
	}
	return filepath.Abs(path)
}

var versionText = regexp.MustCompile(`OpenSSH_[^\s,]+`)

// clientVersion asks ssh, which scp starts: scp has no version option.
func clientVersion(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, _ := exec.CommandContext(ctx, "ssh", "-V").CombinedOutput()
	if v := versionText.Find(out); v != nil {
		return string(v)
	}
	return "OpenSSH (version unknown)"
}
