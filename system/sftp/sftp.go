// Package sftp stores objects as files over SFTP, on an OpenSSH server started by Plimsoll or on
// any attached SSH server.
package sftp

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/system/internal/sshd"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/testbed"
)

const name = "sftp"

//go:embed info.yaml
var description string

// System implements system.System.
type System struct{}

// Info implements system.System.
func (System) Info() system.Info { return system.Describe(description) }

var (
	_ system.Healther = (*node)(nil)
	_ system.Seeder   = started{}
)

// Check implements system.System.
func (s System) Check(ctx context.Context, opt system.Options) []system.Problem {
	if opt["url"] == "" {
		return sshd.Check(ctx, s.Info(), opt)
	}
	login, _, err := loginOf(opt)
	if err != nil {
		return system.WrongOptions("sftp", err)
	}
	return web.Unreachable(ctx, name, []string{login.Address})
}

// Start implements system.Starter: it starts one server on each host.
func (s System) Start(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	identity := identify()
	return group.Start(ctx, len(d.Hosts), 1, identity, func(ctx context.Context, i int) (group.Node, error) {
		return start(ctx, d, d.Hosts[i], identity)
	})
}

func start(ctx context.Context, d system.Deployment, h testbed.Host, identity map[string]string) (group.Node, error) {
	server, err := sshd.Start(ctx, name, d, h)
	if err != nil {
		return nil, err
	}
	n := newNode(server.Login, d.Client, server.Path)
	n.server = server
	identity["version"], identity["binary"], identity["user"] = server.Version, server.Binary, server.User
	if err := n.on(ctx, "log in", func(s *sshd.Session) error {
		identity["cipher"] = s.Cipher()
		return nil
	}); err != nil {
		return nil, errors.Join(err, n.Stop(context.WithoutCancel(ctx)))
	}
	// Each connection has its own server process, which outlives the observed one.
	alive, _ := member.WhileAlive(context.Background(), server.Processes()...)
	context.AfterFunc(alive, func() { n.pool.close(context.Cause(alive)) })
	return started{n, server.Dir}, nil
}

// Attach implements system.Attacher.
func (s System) Attach(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	login, dir, err := loginOf(d.Options)
	if err != nil {
		return nil, err
	}
	n := newNode(login, d.Client, dir)
	n.mark = d.Mark()
	identity := identify()
	identity["endpoint"], identity["directory"] = login.Address, dir
	err = n.on(ctx, "directory "+dir, func(s *sshd.Session) error {
		identity["version"], identity["cipher"] = s.Server(), s.Cipher()
		info, err := s.Stat(dir)
		if err == nil && !info.IsDir() {
			err = errors.New("it is no directory")
		}
		return err
	})
	if err != nil {
		n.pool.close(errors.New("stopped"))
		return nil, err
	}
	return group.One(identity, n, nil)
}

// started is a directory on a server that Plimsoll started.
type started struct {
	*node
	files disk.Dir
}

// Seed implements system.Seeder.
func (s started) Seed(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	return s.files.Seed(ctx, name, size, r)
}

// Stats implements system.Stats.
func (s started) Stats(ctx context.Context) (system.Holdings, error) { return s.files.Stats(ctx) }

func identify() map[string]string {
	return map[string]string{
		"client": "pkg/sftp " + group.Library("github.com/pkg/sftp"), "packet": strconv.Itoa(packet),
		"requests under way": strconv.Itoa(inFlight), "puts": system.PutsTear,
	}
}

// loginOf parses the options of an attached server.
func loginOf(opt system.Options) (l sshd.Login, dir string, err error) {
	u, err := url.Parse(opt["url"])
	if err != nil {
		// the text may contain a password
		return l, "", errors.New("sftp: option \"url\" cannot be read: is it sftp://USER@HOST[:PORT]/DIRECTORY?")
	}
	if _, has := u.User.Password(); has {
		return l, "", errors.New("sftp: option \"url\" has a password in it, which would be recorded; name an " +
			"environment variable in option \"password\"")
	}
	if u.Scheme != "sftp" || u.Hostname() == "" || u.User.Username() == "" || u.Path == "" || u.RawQuery != "" ||
		u.Fragment != "" {
		return l, "", fmt.Errorf("sftp: option \"url\": %q is not sftp://USER@HOST[:PORT]/DIRECTORY", opt["url"])
	}
	l.Address, l.User = web.HostPort(u), u.User.Username()
	dir = u.Path
	if home, ok := strings.CutPrefix(u.Path+"/", "/~/"); ok {
		dir = filepath.Join(".", home) // sessions begin in the user's home directory
	}
	if l.Auth, err = auth(opt); err != nil {
		return l, "", err
	}
	l.HostKey, err = hostKey(opt)
	return l, dir, err
}

func auth(opt system.Options) ([]ssh.AuthMethod, error) {
	var methods []ssh.AuthMethod
	if file := opt["key"]; file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("sftp: option \"key\": %w", err)
		}
		key, err := ssh.ParsePrivateKey(pem)
		if err != nil {
			return nil, fmt.Errorf("sftp: option \"key\": %s: %w", file, err)
		}
		methods = append(methods, ssh.PublicKeys(key))
	}
	if env := opt["password"]; env != "" {
		password, set := os.LookupEnv(env)
		if !set {
			return nil, fmt.Errorf("sftp: option \"password\": the environment variable %s is not set", env)
		}
		methods = append(methods, ssh.Password(password))
	}
	if len(methods) == 0 {
		return nil, errors.New("sftp: give a private key in option \"key\", or the name of an environment variable " +
			"in option \"password\"")
	}
	return methods, nil
}

func hostKey(opt system.Options) (ssh.HostKeyCallback, error) {
	file := opt["known_hosts"]
	if file == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, fmt.Errorf("sftp: option \"known_hosts\": %w", err)
		}
		file = filepath.Join(home, ".ssh", "known_hosts")
	}
	check, err := knownhosts.New(file)
	if err != nil {
		return nil, fmt.Errorf("sftp: option \"known_hosts\": %w; `ssh-keyscan` writes one", err)
	}
	return check, nil
}
