package sshd

import (
	"context"
	_ "embed"
	"fmt"
	"path/filepath"
	"strings"
)

// The configuration ignores that of the machine's own server. Limits are high enough for a burst,
// and unneeded features are off. Failed logins are logged as errors, so that the log contains the
// reason.
//
//go:embed sshd_config
var config string

func (s *Server) writeConfig(ctx context.Context, root string) (string, error) {
	if bad := strings.IndexFunc(root, unsafe); bad >= 0 {
		return "", fmt.Errorf("the directory %q has %q in it, which sshd's configuration or the remote shell of scp "+
			"would not take literally; choose another --out", root, root[bad:bad+1])
	}
	path := filepath.Join(root, "sshd_config")
	text := strings.NewReplacer("ADDRESS", s.Address, "ROOT", root, "USER", s.User).Replace(config)
	return path, s.Host.Files().Write(ctx, path, 0o644, strings.NewReader(text))
}

// Literal reports whether sshd, scp and a shell take a file name literally.
func Literal(name string) bool { return strings.IndexFunc(name, unsafe) < 0 }

func unsafe(r rune) bool {
	letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	return !letter && !strings.ContainsRune("/._-=+,@", r)
}
