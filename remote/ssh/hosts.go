// Package ssh provides machines from a list, reached by the user's ssh. It copies the program to
// each of them, and leaves nothing after the run.
package ssh

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml"
)

// Place is a list of machines. Unset options are as the user has configured ssh.
type Place struct {
	User       string `yaml:"user"`
	Key        string `yaml:"key"`         // file
	KnownHosts string `yaml:"known_hosts"` // file
	Dir        string `yaml:"dir"`         // where runs keep their files, on all machines; empty: /var/tmp
	Hosts      []host `yaml:"hosts"`
}

type host struct {
	Name    string `yaml:"name"`    // empty: SSH
	SSH     string `yaml:"ssh"`     // name or address, as reached from this machine
	Address string `yaml:"address"` // as reached by the other machines; empty: SSH
	Zone    string `yaml:"zone"`

	addr netip.Addr
}

// Open reads a list; it makes no connections.
func Open(file string) (*Place, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	p := &Place{}
	if err = yaml.NewDecoder(bytes.NewReader(b), yaml.Strict()).Decode(p); err == nil {
		err = p.fill()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return p, nil
}

// fill sets defaults.
func (p *Place) fill() error {
	p.Dir = cmp.Or(p.Dir, "/var/tmp")
	if !filepath.IsAbs(p.Dir) || strings.ContainsFunc(p.Dir, func(r rune) bool { return r <= ' ' || r == '\'' }) {
		return fmt.Errorf("dir: %q: want an absolute path without spaces and quotes", p.Dir)
	}
	if len(p.Hosts) == 0 {
		return errors.New("hosts: there are none")
	}
	seen := map[string]bool{}
	for i := range p.Hosts {
		h := &p.Hosts[i]
		if err := h.fill(); err != nil {
			return fmt.Errorf("hosts[%d]: %w", i, err)
		}
		if seen[h.Name] || seen[h.addr.String()] {
			return fmt.Errorf("hosts[%d]: %s (%s) is in the list twice; a machine runs one agent", i, h.Name, h.addr)
		}
		seen[h.Name], seen[h.addr.String()] = true, true
	}
	return nil
}

func (h *host) fill() error {
	if h.SSH == "" {
		return errors.New("ssh: is missing: the name or address to log in to")
	}
	h.Name, h.Address = cmp.Or(h.Name, h.SSH), cmp.Or(h.Address, h.SSH)
	ip, err := net.ResolveIPAddr("ip", h.Address)
	if err != nil {
		return fmt.Errorf("address: %w; say at which one the other machines reach it", err)
	}
	addr, _ := netip.AddrFromSlice(ip.IP)
	h.addr = addr.Unmap().WithZone(ip.Zone)
	return nil
}

// login returns the arguments of ssh for a host. With them ssh never prompts, accepts no unknown
// host key, and ignores other session settings in the user's configuration.
func (p *Place) login(h *host) []string {
	args := strings.Fields("-T -a -x -S none -o BatchMode=yes -o StrictHostKeyChecking=yes -o LogLevel=ERROR " +
		"-o ConnectTimeout=15 -o ServerAliveInterval=15 -o ServerAliveCountMax=2 -o ClearAllForwardings=yes " +
		"-o RemoteCommand=none")
	if p.KnownHosts != "" {
		args = append(args, "-o", `UserKnownHostsFile="`+p.KnownHosts+`"`)
	}
	if p.Key != "" {
		args = append(args, "-o", "IdentitiesOnly=yes", "-i", p.Key)
	}
	if p.User != "" {
		args = append(args, "-l", p.User)
	}
	return append(args, "--", h.SSH)
}
