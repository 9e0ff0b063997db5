package sshd

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"text/template"
)

// Nothing of the machine's own server is read. Limits are out of the way of a
// burst; what is not needed is off. A failure to log in is an error, so that the
// log says why.
var config = template.Must(template.New("sshd_config").Parse(`ListenAddress {{.Address}}
HostKey {{.Root}}/host_key
AuthorizedKeysFile {{.Root}}/authorized_keys
PidFile none
LogLevel ERROR
UsePAM no
StrictModes no
AllowUsers {{.User}}
PermitRootLogin prohibit-password
AuthenticationMethods publickey
PasswordAuthentication no
KbdInteractiveAuthentication no
MaxStartups 200
MaxSessions 200
LoginGraceTime 60
UseDNS no
PermitUserRC no
PermitTTY no
PrintLastLog no
PrintMotd no
DisableForwarding yes
Subsystem sftp internal-sftp
`))

func (s *Server) writeConfig(ctx context.Context, root string) (string, error) {
	if bad := strings.IndexFunc(root, unsafe); bad >= 0 {
		return "", fmt.Errorf("the directory %q has %q in it, which sshd's configuration or the remote shell of scp "+
			"would not take literally; choose another --out", root, root[bad:bad+1])
	}
	path := filepath.Join(root, "sshd_config")
	var text bytes.Buffer
	if err := config.Execute(&text, struct{ Address, Root, User string }{s.Address(), root, s.User}); err != nil {
		return "", err
	}
	return path, s.Host.Files().Write(ctx, path, 0o644, &text)
}

// Literal says whether a file name means itself to sshd, to scp and to a shell.
func Literal(name string) bool { return strings.IndexFunc(name, unsafe) < 0 }

func unsafe(r rune) bool {
	letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	return !letter && !strings.ContainsRune("/._-=+,@", r)
}
