package sftp

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/sshd"
)

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
	port := u.Port()
	if port == "" {
		port = "22"
	}
	l.Address, l.User = net.JoinHostPort(u.Hostname(), port), u.User.Username()
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
