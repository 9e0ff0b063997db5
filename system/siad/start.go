package siad

import (
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/sia"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// daemon is a siad of a private network.
type daemon struct{ *sia.Daemon }

// Indexes of a siad's addresses. 0 is its API; 3 and 4 are for streams and websockets.
const (
	peers   = 1
	renters = 2 // hosts only
	all     = 5
)

// startLimit is how long a network may take to become ready. An idle machine takes a minute or two.
const startLimit = 15 * time.Minute

// startNetwork starts the daemons and forms a network of them.
func startNetwork(ctx context.Context, d system.Deployment, bin string, p sia.Plan,
	identity map[string]string) (*node, error) {
	renter, err := newDaemon(ctx, d, d.Client, "client-1")
	if err != nil {
		return nil, err
	}
	n := newNode(renter.API, d.Options, p)
	var hosts []daemon
	return n, n.Form(ctx, startLimit, func(ctx context.Context) error {
		n.Include(renter.Daemon)
		if err := renter.run(ctx, bin, "gctwrma", true); err != nil {
			return err
		}
		for i := range p.Hosts {
			h, err := newDaemon(ctx, d, d.Hosts[0], "storage-"+strconv.FormatInt(i+1, 10))
			if err != nil {
				return err
			}
			hosts = append(hosts, h)
			n.Include(h.Daemon)
			if err := h.run(ctx, bin, "gctwh", true); err != nil {
				return err
			}
			if err := h.MakeStore(); err != nil {
				return err
			}
		}
		return nil
	}, func(ctx context.Context) error {
		if err := form(ctx, n, renter, hosts, p, rand.Text()); err != nil {
			return err
		}
		return n.identify(ctx, identity)
	})
}

func newDaemon(ctx context.Context, d system.Deployment, h testbed.Host, role string) (daemon, error) {
	one, err := sia.NewDaemon(ctx, name, name, role, h, filepath.Join(d.DirOf(h), role), all, connect)
	return daemon{one}, err
}

// run starts the daemon. If alone, it looks neither for the peers in siad's code nor, until it is
// connected, for blocks.
func (d daemon) run(ctx context.Context, bin, modules string, alone bool) error {
	args := []string{
		bin, "--upnp=false", "-M", modules, "-d", d.Dir,
		"--api-addr", d.At[0], "--rpc-addr", d.At[peers], "--host-addr", d.At[renters],
		"--siamux-addr", d.At[3], "--siamux-addr-ws", d.At[4],
		"--disable-api-security", // siad otherwise insists on an API on loopback; the password remains required
	}
	if alone {
		args = append(args, "--no-bootstrap")
	}
	return d.Launch(ctx, testbed.Command{Args: args, Env: []string{"SIA_API_PASSWORD=" + d.Password}})
}

// build is a siad binary and its version, such as "1.5.9-dev".
type build struct{ path, version string }

var versionWord = regexp.MustCompile(`v([0-9?]+\.\S+)`)

// buildOf finds the binary, and refuses builds for public networks. A private network of these
// would need hours of mining and hosts with public addresses, and a fresh node connects to the
// peers in siad's code when it starts. Dev builds have no such peers.
func buildOf(ctx context.Context, opt system.Options) (b build, err error) {
	if b.path, err = system.Program(name, opt, "binary", "PLIMSOLL_SIAD", "siad"); err != nil {
		return b, err
	}
	out, err := system.Output(ctx, b.path, "version")
	found := versionWord.FindStringSubmatch(out)
	if found == nil {
		return b, fmt.Errorf("siad: %s version: %.80q names no version (%v)", b.path, out, err)
	}
	if b.version = found[1]; !strings.HasSuffix(b.version, "-dev") {
		return b, fmt.Errorf("siad: %s is version %s: a private network needs a siad built with the `dev` constants, "+
			"whose version ends in -dev", b.path, b.version)
	}
	return b, nil
}
