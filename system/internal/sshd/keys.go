package sshd

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"os"
	"path/filepath"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// writeKeys makes the server's key and the client's, for this deployment alone,
// and gives each side the other's.
func (s *Server) writeKeys(root string) error {
	host, err := writeKey(filepath.Join(root, "host_key"))
	if err != nil {
		return err
	}
	s.KeyFile, s.KnownHosts = filepath.Join(root, "client_key"), filepath.Join(root, "known_hosts")
	if s.Signer, err = writeKey(s.KeyFile); err != nil {
		return err
	}
	s.HostKey = host.PublicKey()
	if err := os.WriteFile(filepath.Join(root, "authorized_keys"), ssh.MarshalAuthorizedKey(s.Signer.PublicKey()), 0o600); err != nil {
		return err
	}
	known := knownhosts.Line([]string{s.hostPort()}, s.HostKey) + "\n"
	return os.WriteFile(s.KnownHosts, []byte(known), 0o600)
}

// writeKey makes an Ed25519 key in OpenSSH's own format.
func writeKey(path string) (ssh.Signer, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	block, err := ssh.MarshalPrivateKey(key, "plimsoll")
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
		return nil, err
	}
	return ssh.NewSignerFromKey(key)
}
