// Package ssh is machines of a list that are reached by ssh: the program is copied to each,
// checked, and leaves nothing when the run is over.
package ssh

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/crypto/ssh/knownhosts"
)

// list is a file of hosts. What is said for all holds for those that do not say otherwise.
type list struct {
	User       string `yaml:"user"`
	Port       int    `yaml:"port"`
	Key        string `yaml:"key"`         // file; empty: the keys of the ssh agent, else the usual files
	KnownHosts string `yaml:"known_hosts"` // file; empty: ~/.ssh/known_hosts
	Dir        string `yaml:"dir"`         // where runs keep what they need, on all machines; empty: /var/tmp
	Hosts      []host `yaml:"hosts"`
}

type host struct {
	Name    string `yaml:"name"`    // empty: SSH
	SSH     string `yaml:"ssh"`     // name or address, as reached from here
	Address string `yaml:"address"` // as reached by the others; empty: that of SSH
	User    string `yaml:"user"`
	Port    int    `yaml:"port"`
	Key     string `yaml:"key"`
	Zone    string `yaml:"zone"`

	addr netip.Addr
}

func readList(file string) (*list, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var l list
	if err := yaml.NewDecoder(bytes.NewReader(b), yaml.Strict()).Decode(&l); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if err := l.fill(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return &l, nil
}

// fill puts in what is left out.
func (l *list) fill() error {
	if l.Dir == "" {
		l.Dir = "/var/tmp"
	}
	if l.Port == 0 {
		l.Port = 22
	}
	if l.User == "" {
		u, err := user.Current()
		if err != nil {
			return err
		}
		l.User = u.Username
	}
	if l.KnownHosts = home(l.KnownHosts); l.KnownHosts == "" {
		l.KnownHosts = home("~/.ssh/known_hosts")
	}
	if !filepath.IsAbs(l.Dir) || strings.ContainsFunc(l.Dir, func(r rune) bool { return r <= ' ' || r == '\'' }) {
		return fmt.Errorf("dir: %q: want an absolute path without spaces and quotes", l.Dir)
	}
	if len(l.Hosts) == 0 {
		return errors.New("hosts: there are none")
	}
	seen := map[string]bool{}
	for i := range l.Hosts {
		h := &l.Hosts[i]
		if err := h.fill(l); err != nil {
			return fmt.Errorf("hosts[%d]: %w", i, err)
		}
		if seen[h.Name] || seen[h.addr.String()] {
			return fmt.Errorf("hosts[%d]: %s (%s) is in the list twice; a machine runs one agent", i, h.Name, h.addr)
		}
		seen[h.Name], seen[h.addr.String()] = true, true
	}
	return nil
}

func (h *host) fill(l *list) (err error) {
	if h.SSH == "" {
		return errors.New("ssh: is missing: the name or address to log in to")
	}
	if h.Name == "" {
		h.Name = h.SSH
	}
	if h.User == "" {
		h.User = l.User
	}
	if h.Port == 0 {
		h.Port = l.Port
	}
	if h.Key = home(h.Key); h.Key == "" {
		h.Key = home(l.Key)
	}
	if h.Address == "" {
		h.Address = h.SSH
	}
	if h.addr, err = netip.ParseAddr(h.Address); err == nil {
		return nil
	}
	ip, err := net.ResolveIPAddr("ip", h.Address)
	if err != nil {
		return fmt.Errorf("address: %w", err)
	}
	h.addr, _ = netip.AddrFromSlice(ip.IP)
	h.addr = h.addr.Unmap()
	return nil
}

func (h *host) at() string { return net.JoinHostPort(h.SSH, strconv.Itoa(h.Port)) }

// home expands a tilde.
func home(path string) string {
	rest, ok := strings.CutPrefix(path, "~/")
	if dir, err := os.UserHomeDir(); ok && err == nil {
		return filepath.Join(dir, rest)
	}
	return path
}

// config is how to log in to a host.
func (l *list) config(h *host) (*ssh.ClientConfig, error) {
	known, err := knownhosts.New(l.KnownHosts)
	if err != nil {
		return nil, fmt.Errorf("known hosts: %w", err)
	}
	keys, err := signers(h.Key)
	if err != nil {
		return nil, err
	}
	return &ssh.ClientConfig{
		User: h.User, Auth: []ssh.AuthMethod{ssh.PublicKeysCallback(keys)}, Timeout: connectTime,
		HostKeyCallback: func(name string, remote net.Addr, key ssh.PublicKey) error {
			return explain(known(name, remote, key), l.KnownHosts, h)
		},
		HostKeyAlgorithms: algorithms(known, h.at()),
	}, nil
}

// explain says what is wrong with a host's key.
func explain(err error, file string, h *host) error {
	var unknown *knownhosts.KeyError
	switch {
	case !errors.As(err, &unknown):
		return err
	case len(unknown.Want) == 0:
		return fmt.Errorf("%s has no key of %s; if you trust it, log in once with ssh, or add what ssh-keyscan "+
			"prints: %w", file, h.SSH, err)
	}
	return fmt.Errorf("the key of %s is not the one in %s line %d: it is another machine, or one in between: %w", h.SSH,
		file, unknown.Want[0].Line, err)
}

// algorithms are those of the keys that are known of a host: it may have others, too.
func algorithms(known ssh.HostKeyCallback, at string) (all []string) {
	var none *knownhosts.KeyError
	if !errors.As(known(at, &net.TCPAddr{}, noKey{}), &none) {
		return nil
	}
	for _, k := range none.Want {
		of := []string{k.Key.Type()}
		if of[0] == ssh.KeyAlgoRSA {
			of = []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
		}
		for _, a := range of {
			if !slices.Contains(all, a) {
				all = append(all, a)
			}
		}
	}
	return all
}

// noKey is a key that no host has.
type noKey struct{}

func (noKey) Type() string                        { return "none" }
func (noKey) Marshal() []byte                     { return nil }
func (noKey) Verify([]byte, *ssh.Signature) error { return errors.New("no key") }

// signers are the keys to log in with: that of a file, those of the agent, the usual files.
func signers(file string) (func() ([]ssh.Signer, error), error) {
	if file != "" {
		s, err := readKey(file)
		return func() ([]ssh.Signer, error) { return []ssh.Signer{s}, nil }, err
	}
	if socket := os.Getenv("SSH_AUTH_SOCK"); socket != "" {
		c, err := net.Dial("unix", socket)
		if err != nil {
			return nil, fmt.Errorf("the ssh agent: %w", err)
		}
		return agent.NewClient(c).Signers, nil
	}
	var all []ssh.Signer
	for _, name := range []string{"id_ed25519", "id_ecdsa", "id_rsa"} {
		if s, err := readKey(home("~/.ssh/" + name)); err == nil {
			all = append(all, s)
		} else if !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	if len(all) == 0 {
		return nil, errors.New("there is no key to log in with: say key: FILE, or start an ssh agent")
	}
	return func() ([]ssh.Signer, error) { return all, nil }, nil
}

func readKey(file string) (ssh.Signer, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	s, err := ssh.ParsePrivateKey(b)
	var locked *ssh.PassphraseMissingError
	if errors.As(err, &locked) {
		return nil, fmt.Errorf("%s has a passphrase: add it to an ssh agent (ssh-add) and leave key: out", file)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return s, nil
}
