package siad

import (
	"context"
	"crypto/rand"
	"fmt"
	"math/big"
	"net/url"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.sia.tech/core/types"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
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

// Amounts in siacoins.
const (
	hostFunds = 20_000    // collateral for many contracts
	enough    = 1_000_000 // for the hosts and the allowance
)

// form makes a network of freshly started daemons. siad dictates the order: each step silently does
// nothing until the previous one is done. word is the password of all wallets; it is not needed
// again.
func form(ctx context.Context, n *node, renter daemon, hosts []daemon, p sia.Plan, word string) error {
	get := func(path string) error { return n.API.Get(ctx, path, nil, nil) } // GET, although it changes state
	for _, step := range []func() error{
		func() error {
			return group.Each(hosts, func(_ int, h daemon) error { return h.join(ctx, renter.At[peers]) })
		},
		func() error {
			return group.Each(append(hosts, renter), func(_ int, d daemon) error { return d.openWallet(ctx, word) })
		},
		func() error { return get("/miner/start") },
		func() error { return renter.funded(ctx, hastings(enough), "the miner's coins did not mature") },
		func() error {
			for _, h := range hosts { // one after another: each payment spends the change of the previous one
				if err := h.pay(ctx, n.API); err != nil {
					return err
				}
			}
			return nil
		},
		func() error {
			return group.Each(hosts, func(_ int, h daemon) error { return h.offer(ctx, p.HostSize) })
		},
		func() error { return n.contracts(ctx, hosts, p) },
		func() error { return get("/miner/stop") },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func hastings(siacoins uint32) *big.Int { return types.Siacoins(siacoins).Big() }

// join connects to the peer that all daemons connect to.
func (d daemon) join(ctx context.Context, peer string) error {
	err := d.API.Post(ctx, "/gateway/connect/"+peer, nil)
	if err != nil && strings.Contains(err.Error(), "already connected") {
		return nil
	}
	return err
}

func (d daemon) openWallet(ctx context.Context, word string) error {
	password := url.Values{"encryptionpassword": {word}}
	if err := d.API.Post(ctx, "/wallet/init", password); err != nil { // the answer is the seed, which is not kept
		return err
	}
	return d.API.Post(ctx, "/wallet/unlock", password)
}

// funded waits until the wallet has at least this balance, in hastings.
func (d daemon) funded(ctx context.Context, least *big.Int, what string) error {
	return sia.Poll(ctx, name, what, func(ctx context.Context) (bool, string, error) {
		var w walletAnswer
		if err := d.API.Get(ctx, "/wallet", nil, &w); err != nil || w.Confirmed.Int == nil {
			return false, "no balance reported", err
		}
		return w.Confirmed.Cmp(least) >= 0, "balance " + w.Confirmed.String(), nil
	})
}

// pay sends a host the coins for its collateral.
func (d daemon) pay(ctx context.Context, renter *sia.API) error {
	var to struct {
		Address string `json:"address"`
	}
	if err := d.API.Get(ctx, "/wallet/address", nil, &to); err != nil {
		return err
	}
	payment := url.Values{"amount": {hastings(hostFunds).String()}, "destination": {to.Address}}
	for range 2 { // a lost announcement locks the coins of one payment for many blocks
		if err := renter.Post(ctx, "/wallet/siacoins", payment); err != nil {
			return err
		}
	}
	return nil
}

// offer makes a host accept contracts once its payment has arrived.
func (d daemon) offer(ctx context.Context, size int64) error {
	err := d.funded(ctx, big.NewInt(1), "a host's coins were not confirmed")
	if err == nil {
		err = d.API.Post(ctx, "/host/storage/folders/add", url.Values{"path": {d.Store.Path},
			"size": {strconv.FormatInt(size, 10)}})
	}
	if err == nil {
		err = d.API.Post(ctx, "/host", url.Values{"acceptingcontracts": {"true"}, "netaddress": {d.At[renters]}})
	}
	if err == nil {
		err = d.announce(ctx)
	}
	return err
}

func (d daemon) announce(ctx context.Context) error {
	return d.API.Post(ctx, "/host/announce", url.Values{"netaddress": {d.At[renters]}})
}

// announceAgain is the time, several blocks long, after which an announcement is considered lost:
// siad relays its transaction only once, and about every third start loses one.
const announceAgain = 20 * time.Second

// awaitKnown waits until the renter knows all hosts. Each time it has waited for again without
// success, it makes the missing hosts announce themselves once more.
func (n *node) awaitKnown(ctx context.Context, hosts []daemon, again time.Duration) error {
	announced := time.Now()
	var refused error // a host may still lack coins that a lost announcement has not locked
	return sia.Poll(ctx, name, "the renter did not come to know its hosts", func(ctx context.Context) (bool, string,
		error) {
		var known struct {
			Hosts []struct{ NetAddress string } // null when none is known
		}
		err := n.API.Get(ctx, "/hostdb/active", nil, &known)
		ok := len(known.Hosts) >= len(hosts)
		if err == nil && !ok && time.Since(announced) > again {
			refused = group.Each(hosts, func(_ int, h daemon) error {
				for _, k := range known.Hosts {
					if k.NetAddress == h.At[renters] {
						return nil
					}
				}
				return h.announce(ctx)
			})
			announced = time.Now()
		}
		state := fmt.Sprintf("%d of %d known", len(known.Hosts), len(hosts))
		if refused != nil {
			state += ", announcing again: " + refused.Error()
		}
		return ok, state, err
	})
}

// contracts sets the allowance once the hosts are known, and waits for contracts.
func (n *node) contracts(ctx context.Context, hosts []daemon, p sia.Plan) error {
	if err := n.awaitKnown(ctx, hosts, announceAgain); err != nil {
		return err
	}
	// The allowance is generous, so that no experiment ends for lack of money. All hosts are on one
	// subnet, and by default siad forms only one contract per subnet.
	allowance := url.Values{
		"funds": {hastings(5_000).String()}, "hosts": {strconv.FormatInt(p.Hosts, 10)},
		"period": {"200"}, "renewwindow": {"50"},
		"expectedstorage": {"1000000000"}, "expectedupload": {"10000000"}, "expecteddownload": {"10000000"},
		"expectedredundancy": {"2.0"}, "maxperiodchurn": {"10000000000"},
		"checkforipviolation": {"false"},
	}
	if err := n.API.Post(ctx, "/renter", allowance); err != nil {
		return err
	}
	return sia.Poll(ctx, name, "contracts were not formed", func(ctx context.Context) (bool, string, error) {
		r, err := n.uploadReady(ctx)
		return r.Ready, fmt.Sprintf("%d of %d contracts", r.Active, r.Needed), err
	})
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
