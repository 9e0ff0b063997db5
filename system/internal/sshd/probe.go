package sshd

import (
	"bytes"
	"context"
	"fmt"
	"path"

	"golang.org/x/crypto/ssh"

	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/sftpsession"
)

// Login is how to get in.
func (s *Server) Login() sftpsession.Login {
	return sftpsession.Login{
		Address: s.Address(), User: s.User,
		Auth:    []ssh.AuthMethod{ssh.PublicKeys(s.Signer)},
		HostKey: ssh.FixedHostKey(s.HostKey),
	}
}

// Probe logs in and reads the probe: the health of the server, whatever the
// state of older connections.
func (s *Server) Probe(ctx context.Context, dial sftpsession.Dial) error {
	session, err := s.Login().Open(ctx, dial)
	if err != nil {
		return fmt.Errorf("health probe: %w", err)
	}
	defer session.Abort()
	defer context.AfterFunc(ctx, session.Abort)()
	f, err := session.Open(path.Join(s.Path, disk.Probe))
	if err != nil {
		return fmt.Errorf("health probe: %w", err)
	}
	var got bytes.Buffer
	if _, err := f.WriteTo(&got); err != nil {
		return fmt.Errorf("health probe: %w", err)
	}
	if !bytes.Equal(got.Bytes(), disk.ProbeContent) {
		return fmt.Errorf("health probe: got %d other bytes than stored", got.Len())
	}
	return nil
}
