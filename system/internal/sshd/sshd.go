// Package sshd starts the OpenSSH server of SFTP and scp, the baselines of encrypted copying.
package sshd

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	_ "embed"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

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

// Install explains how to install sshd.
const Install = "install the Debian package openssh-server (its service need not run), or name the program in option " +
	"`binary` or PLIMSOLL_SSHD"

// Check reports what is missing to start a server for a system.
func Check(ctx context.Context, i system.Info, opt system.Options) []system.Problem {
	bin, err := program(i.Name, opt)
	if err == nil {
		_, err = Version(ctx, bin)
	}
	if err == nil {
		_, err = account()
	}
	return i.Missing(err)
}

// program finds sshd, which Debian keeps out of the PATH of ordinary users. sshd re-executes itself
// for each connection, so it needs an absolute path.
func program(name string, opt system.Options) (string, error) {
	return system.Program(name, opt, "binary", "PLIMSOLL_SSHD", "sshd", "/usr/sbin/sshd", "/usr/local/sbin/sshd")
}

var versionText = regexp.MustCompile(`OpenSSH_[^\s,]+`)

// Version returns the version of an OpenSSH program. Old versions do not support -V, but print the
// version with their usage.
func Version(ctx context.Context, bin string) (string, error) {
	out, err := system.Output(ctx, bin, "-V")
	if v := versionText.FindString(out); v != "" {
		return v, nil
	}
	err = cmp.Or(err, errors.New("no version in its answer"))
	return "", fmt.Errorf("%s -V: %w", bin, err)
}

// serverAccount is the account that clients log in to, with the way to run sshd for it.
type serverAccount struct {
	name   string
	root   bool     // real root: sshd switches users and confines itself
	prefix []string // of the command
}

// account returns the account of the user who runs Plimsoll: an sshd without root serves only its
// own user. Root of a user namespace looks like root to sshd, but lacks its privileges. There sshd
// runs in a further user namespace, as the ordinary user that this root is outside.
func account() (serverAccount, error) {
	if os.Geteuid() != 0 {
		u, err := user.Current()
		if err != nil {
			return serverAccount{}, fmt.Errorf("who runs this: %w", err)
		}
		return serverAccount{name: u.Username}, nil
	}
	b, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return serverAccount{}, fmt.Errorf("user namespace: %w", err)
	}
	outside, mapped := outsideRoot(string(b))
	if !mapped {
		return serverAccount{name: "root", root: true}, nil
	}
	u, err := user.LookupId(strconv.Itoa(outside))
	if err != nil {
		return serverAccount{}, fmt.Errorf("sshd serves an account, and the user who runs this (uid %d) has none: %w",
			outside, err)
	}
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		return serverAccount{}, errors.New("sshd in a user namespace needs the program unshare (Debian package util-linux)")
	}
	return serverAccount{name: u.Username, prefix: []string{unshare, "--user", "--map-user=" + u.Uid,
		"--map-group=" + u.Gid, "--"}}, nil
}

// outsideRoot parses a uid_map (user_namespaces(7)) and returns the user that root of this
// namespace is outside. mapped is false if the namespace has other users besides root.
func outsideRoot(uidMap string) (outside int, mapped bool) {
	f := strings.Fields(uidMap)
	if len(f) != 3 || f[0] != "0" || f[2] != "1" {
		return 0, false
	}
	outside, err := strconv.Atoi(f[1])
	return outside, err == nil && outside != 0
}

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

// The configuration ignores that of the machine's own server. Limits are high enough for a burst,
// and unneeded features are off. Failed logins are logged as errors, so that the log contains the
// reason.
//
//go:embed sshd_config
var config string

func (s *Server) writeConfig(ctx context.Context, root string) (string, error) {
	if bad := unsafe.FindString(root); bad != "" {
		return "", fmt.Errorf("the directory %q has %q in it, which sshd's configuration or the remote shell of scp "+
			"would not take literally; choose another --out", root, bad)
	}
	path := filepath.Join(root, "sshd_config")
	text := strings.NewReplacer("ADDRESS", s.Address, "ROOT", root, "USER", s.User).Replace(config)
	return path, s.Host.Files().Write(ctx, path, 0o644, strings.NewReader(text))
}

// Literal reports whether sshd, scp and a shell take a file name literally.
func Literal(name string) bool { return !unsafe.MatchString(name) }

var unsafe = regexp.MustCompile(`[^a-zA-Z0-9/._=+,@-]`)
