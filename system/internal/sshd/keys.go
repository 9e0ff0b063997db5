package sshd

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// writeKeys creates the server's and the client's key, only for this deployment, and makes each
// known to the other side.
func (s *Server) writeKeys(ctx context.Context, d system.Deployment) error {
	own, client := d.DirOf(s.Host), d.DirOf(d.Client)
	host, err := writeKey(ctx, s.Host, filepath.Join(own, "host_key"))
	if err != nil {
		return err
	}
	s.KeyFile, s.KnownHosts = filepath.Join(client, s.Host.Name()+"_key"),
		filepath.Join(client, s.Host.Name()+"_known_hosts")
	key, err := writeKey(ctx, d.Client, s.KeyFile)
	if err != nil {
		return err
	}
	s.Auth, s.HostKey = []ssh.AuthMethod{ssh.PublicKeys(key)}, ssh.FixedHostKey(host.PublicKey())
	authorized := bytes.NewReader(ssh.MarshalAuthorizedKey(key.PublicKey()))
	if err := s.Host.Files().Write(ctx, filepath.Join(own, "authorized_keys"), 0o600, authorized); err != nil {
		return err
	}
	known := knownhosts.Line([]string{s.Address}, host.PublicKey()) + "\n"
	return d.Client.Files().Write(ctx, s.KnownHosts, 0o600, strings.NewReader(known))
}

// writeKey creates an Ed25519 key in OpenSSH's format.
func writeKey(ctx context.Context, h testbed.Host, path string) (ssh.Signer, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	block, err := ssh.MarshalPrivateKey(key, "plimsoll")
	if err != nil {
		return nil, err
	}
	if err := h.Files().Write(ctx, path, 0o600, bytes.NewReader(pem.EncodeToMemory(block))); err != nil {
		return nil, err
	}
	return ssh.NewSignerFromKey(key)
}
