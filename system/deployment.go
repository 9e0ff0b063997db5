package system

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/testbed"
)

// Mark begins the names of what a run stores in an attached system that it may write to, and
// is empty in any other. It is of 50 bits, random or of a run's id, which is random: no one
// else's objects begin with it, so that a put replaces nothing, and what a failed put
// leaves behind is ours to remove, without asking the system before each put, in
// the time that is measured. All sessions of a run have the same: a later one
// finds by name what an earlier one has stored. Without a run each mark is new.
func (d Deployment) Mark() string {
	switch {
	case !d.Write:
		return ""
	case d.Run == "":
		return rand.Text()[:10] + "-"
	}
	sum := sha256.Sum256([]byte("plimsoll mark of run " + d.Run))
	return base32.StdEncoding.EncodeToString(sum[:])[:10] + "-"
}

// Begin starts the system, or attaches to it, with the defaults of its options.
// Errors of a start begin with the system's name.
func Begin(ctx context.Context, s System, mode Mode, d Deployment) (_ Cluster, err error) {
	info := s.Info()
	if d.Options, err = info.Fill(d.Options); err != nil {
		return nil, err
	}
	if key := info.Attaching(d.Options); key != "" && mode == Start {
		return nil, fmt.Errorf("%s: option %q is for mode: attach", info.Name, key)
	}
	starter, starts := s.(Starter)
	attacher, attaches := s.(Attacher)
	var c Cluster
	switch {
	case mode == Start && starts:
		if err = info.confined(append(slices.Clone(d.Hosts), d.Client)); err == nil {
			c, err = starter.Start(ctx, d)
		}
	case mode == Attach && attaches:
		c, err = attacher.Attach(ctx, d)
	default:
		err = fmt.Errorf("it has no mode %s", mode)
	}
	if err != nil {
		return nil, info.named(err)
	}
	return c, nil
}

// confined refuses a host that shares the network of its machine, this one or another, for a system whose
// programs would reach beyond it.
func (i Info) confined(hosts []testbed.Host) error {
	for _, h := range hosts {
		if i.Outside != "" && !testbed.Emulated(h.Addr()) {
			return fmt.Errorf("host %s has no network namespace of its own, and %s: permit network namespaces "+
				"(`plimsoll doctor` says how), on other machines ask for a link, or attach to a running node", h.Name(),
				i.Outside)
		}
	}
	return nil
}

// named is err, which begins with the system's name.
func (i Info) named(err error) error {
	if strings.HasPrefix(err.Error(), i.Name+": ") {
		return err
	}
	return fmt.Errorf("%s: %w", i.Name, err)
}

// Revive brings a deployment up again on its directory, with the same data under the same refs, after any kind of
// end. Its directory and the addresses of the hosts are those of Start.
func Revive(ctx context.Context, s System, d Deployment) (Cluster, error) {
	h := d.Hosts[0]
	if _, err := testbed.Stat(h.Files(), filepath.Join(d.DirOf(h), s.Info().Kept)); err != nil {
		return nil, fmt.Errorf("%s: no deployment to go on with: %w", s.Info().Name, err)
	}
	return Begin(ctx, s, Start, d)
}

// Check says what is missing to use the system with these options.
func Check(ctx context.Context, s System, opt Options) []Problem {
	full, err := s.Info().Fill(opt)
	if err != nil {
		return WrongOptions(s.Info().Name, err)
	}
	return s.Check(ctx, full)
}

// Node is the command that runs an embedded system: `plimsoll node NAME ARG…`.
func (d Deployment) Node(name string, args ...string) ([]string, error) {
	self := d.Self
	if len(self) == 0 {
		exe, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("%s: find our own executable: %w", name, err)
		}
		self = []string{exe}
	}
	cmd := append([]string{}, self...)
	return append(append(cmd, "node", name), args...), nil
}

// Port is the TCP port that option "port" asks for, or a free one on h. It
// fails when something listens there already, which is clearer than the many
// ways in which daemons say so.
func (d Deployment) Port(ctx context.Context, h testbed.Host) (int, error) {
	want := int(d.Options.Int("port"))
	port, err := h.Port(ctx, want)
	if err != nil && want > 0 {
		return 0, fmt.Errorf("port in use: %s on host %s: %w; choose another `port`, or leave it out for a free one",
			JoinPort(h, want), h.Name(), err)
	}
	return port, err
}

// JoinPort is host:port under which others reach h.
func JoinPort(h testbed.Host, port int) string {
	return netip.AddrPortFrom(h.Addr(), uint16(port)).String()
}

// DirOf is the directory of a host, for all that the deployment keeps there. No two
// hosts share one.
func (d Deployment) DirOf(h testbed.Host) string { return filepath.Join(d.Dir, h.Name()) }
