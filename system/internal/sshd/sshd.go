// Package sshd starts the OpenSSH server of SFTP and scp, the baselines of encrypted copying.
package sshd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// Server is a running server, with the data that its clients need.
type Server struct {
	Version    string // "OpenSSH_9.2p1 …"
	Binary     string
	Port       int
	Login             // of the user who runs Plimsoll
	disk.Dir          // of the objects; it contains the probe
	KeyFile    string // the client's private key
	KnownHosts string // a file that contains only this server
	member.Process
	dial web.Dial // of the client's host
}

// Start starts a server for the system called name, and waits until the client has logged in and
// read the probe.
func Start(ctx context.Context, name string, d system.Deployment, h testbed.Host) (*Server, error) {
	bin, err := program(name, d.Options)
	if err != nil {
		return nil, err
	}
	s := &Server{Process: member.Process{System: name, Label: name + "/server", Host: h}, Binary: bin, dial: d.Client.Dial}
	if s.Version, err = Version(ctx, bin); err != nil {
		return nil, err
	}
	who, err := account()
	if err != nil {
		return nil, err
	}
	s.User = who.name
	if s.Port, err = d.Port(ctx, h); err != nil {
		return nil, err
	}
	s.Address = system.JoinPort(h, s.Port)
	root := d.DirOf(h)
	if s.Dir, err = disk.NewDir(ctx, h.Files(), filepath.Join(root, "data")); err != nil {
		return nil, err
	}
	if err := s.writeKeys(ctx, d); err != nil {
		return nil, err
	}
	conf, err := s.writeConfig(ctx, root)
	if err != nil {
		return nil, err
	}
	if who.root {
		if err := h.Files().MkdirAll(privsep, 0o755); err != nil {
			return nil, fmt.Errorf("sshd as root needs the directory %s: %w", privsep, err)
		}
	}
	err = s.Run(ctx, testbed.Command{
		Dir:  root,
		Args: append(who.prefix, bin, "-D", "-e", "-f", conf),
		Ready: func(ctx context.Context) error {
			// A login before the server listens would only add to the log.
			c, err := h.Dial(ctx, "tcp", s.Address)
			if err != nil {
				return err
			}
			c.Close()
			return s.probe(ctx)
		},
	})
	if err != nil {
		if errors.Is(err, system.ErrAuth) {
			err = fmt.Errorf("%w; is the account of %s locked (`passwd -S %s`), or its shell not in place?", err,
				s.User, s.User)
		}
		return nil, fmt.Errorf("start: %w", err)
	}
	return s, nil
}

// privsep is the directory to which sshd confines its unprivileged process. The path is compiled
// in; the machine's own service creates the directory when it starts.
const privsep = "/run/sshd"
