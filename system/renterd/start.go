package renterd

import (
	"context"
	"embed"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.sia.tech/core/types"
	"go.sia.tech/coreutils/wallet"

	"github.com/plimsoll-project/plimsoll/internal/timing"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/sia"
	"github.com/plimsoll-project/plimsoll/testbed"
)

const (
	hostd      = "hostd"
	startLimit = 5 * time.Minute // for a network to become ready; an idle machine takes ten seconds
	pace       = time.Second     // interval of blocks until then
	// blockTime is the interval of blocks after that. Contracts run for 6048 blocks. The node
	// reports that it is synced for three hours after a block, and after about 4000 blocks their
	// difficulty has risen too far.
	blockTime = 5 * time.Minute
)

// daemon is the renterd or a hostd of the private network.
type daemon struct {
	*sia.Daemon
	phrase  string // of the wallet
	address types.Address
}

// Indexes of a daemon's addresses. 0 is its API.
const (
	peers   = 1
	renters = 2 // hosts only
	all     = 3
)

func newDaemon(ctx context.Context, d system.Deployment, h testbed.Host, program, role string) (one daemon, err error) {
	one.Daemon, err = sia.NewDaemon(ctx, name, program, role, h, filepath.Join(d.DirOf(h), role), all, connect)
	if err == nil && program == hostd {
		one.API.Consensus, one.API.Meanings = "/consensus/tip", nil
	}
	one.phrase = wallet.NewSeedPhrase()
	var seed [32]byte
	_ = wallet.SeedFromPhrase(&seed, one.phrase) // the phrase is valid
	one.address = types.StandardUnlockHash(wallet.KeyFromSeed(&seed, 0).PublicKey())
	return one, err
}

// configs holds the configuration files of the two programs. They allow no peers except the private
// chain, and no requests to other servers. The storage hosts may share an address.
//
//go:embed *.yml
var configs embed.FS

// run starts the daemon on the chain with its configuration file.
func (one daemon) run(ctx context.Context, c *privateChain, program, path string) error {
	files, config := one.Host.Files(), filepath.Join(one.Dir, "plimsoll.yml")
	text, err := configs.ReadFile(program + ".yml")
	if err == nil {
		err = c.give(ctx, files, one.Dir)
	}
	if err == nil {
		err = files.Write(ctx, config, 0o600, strings.NewReader(strings.NewReplacer("DIR", strconv.Quote(one.Dir),
			"API", one.At[0], "PEER", one.At[peers], "RHP", one.At[renters]).Replace(string(text))))
	}
	if err != nil {
		return fmt.Errorf("renterd: %w", err)
	}
	c.peers = append(c.peers, one.At[peers])
	v := strings.ToUpper(program)
	return one.Launch(ctx, testbed.Command{Args: []string{path, "-env"}, Env: []string{
		v + "_CONFIG_FILE=" + config, v + "_API_PASSWORD=" + one.Password,
		"RENTERD_SEED=" + one.phrase, "HOSTD_WALLET_SEED=" + one.phrase,
		"RENTERD_NETWORK=zen", // renterd's image sets another network, which overrides the file
	}})
}

// startNetwork starts the daemons and forms a network of them.
func startNetwork(ctx context.Context, d system.Deployment, renterProgram, hostProgram string, p sia.Plan,
	identity map[string]string) (*node, error) {
	renter, err := newDaemon(ctx, d, d.Client, name, "client-1")
	if err != nil {
		return nil, err
	}
	wallets := []types.Address{renter.address}
	var hosts []daemon
	for i := range p.Hosts {
		h, err := newDaemon(ctx, d, d.Hosts[0], hostd, "storage-"+strconv.FormatInt(i+1, 10))
		if err != nil {
			return nil, err
		}
		hosts, wallets = append(hosts, h), append(wallets, h.address)
	}
	n := newNode(renter.API, d.Options)
	n.Write = true
	if n.chain, err = newChain(d.Client, wallets); err != nil {
		return nil, fmt.Errorf("renterd: private chain: %w", err)
	}
	err = n.Form(ctx, startLimit, func(ctx context.Context) error {
		n.Include(renter.Daemon)
		if err := renter.run(ctx, n.chain, name, renterProgram); err != nil {
			return err
		}
		for _, h := range hosts {
			n.Include(h.Daemon)
			if err := h.MakeStore(); err != nil {
				return err
			}
			if err := h.run(ctx, n.chain, hostd, hostProgram); err != nil {
				return err
			}
		}
		return nil
	}, func(ctx context.Context) error {
		if err := n.form(ctx, hosts, p, d.Options["packing"] == "on", pace, n.chain.block); err != nil {
			return err
		}
		err := n.attach(ctx, "keep", identity) // the same checks as for a running node
		identity["network"] = "private"
		return err
	})
	if err != nil {
		n.chain.stop()
		return nil, err
	}
	n.chain.goOn(blockTime)
	return n, nil
}

// form makes a network of daemons that have just started. block makes the next block.
func (n *node) form(ctx context.Context, hosts []daemon, p sia.Plan, packing bool, pace time.Duration,
	block func(context.Context) error) error {
	if err := group.Each(hosts, func(_ int, h daemon) error { return h.offer(ctx, p.HostSize) }); err != nil {
		return err
	}
	if err := n.settings(ctx, p, packing); err != nil {
		return err
	}
	for _, wait := range []struct {
		what string
		have func(context.Context) (int64, error)
	}{
		// hosts announce themselves in one block, and are known after the next one
		{"the hosts did not become known", n.known},
		{"contracts were not formed", func(ctx context.Context) (int64, error) { return n.formed(ctx, p.Hosts) }},
		{"accounts with hosts, which pay for uploads, were not funded", n.funded},
	} {
		if err := sia.Poll(ctx, name, wait.what, func(ctx context.Context) (bool, string, error) {
			if !timing.Pause(ctx, pace) {
				return false, "", context.Cause(ctx)
			}
			if err := block(ctx); err != nil {
				return false, "", err
			}
			have, err := wait.have(ctx)
			return have >= p.Hosts, fmt.Sprintf("%d of %d", have, p.Hosts), err
		}); err != nil {
			return err
		}
	}
	return nil
}

// known returns how many hosts the node knows.
func (n *node) known(ctx context.Context) (int64, error) {
	all, err := n.hosts(ctx, "all")
	return int64(len(all)), err
}

// formed returns how many contracts are usable and on the chain. While there are fewer contracts
// than wanted, it makes the node look for hosts, which it otherwise does only every half hour.
func (n *node) formed(ctx context.Context, wanted int64) (have int64, err error) {
	all, err := n.contracts(ctx)
	for _, c := range all {
		if c.State == "active" && c.Usability == "good" {
			have++
		}
	}
	if err == nil && int64(len(all)) < wanted {
		err = n.API.Post(ctx, "/autopilot/trigger", map[string]any{"forceScan": true})
	}
	return have, err
}

// funded returns how many accounts can pay.
func (n *node) funded(ctx context.Context) (have int64, err error) {
	var all []struct {
		Balance sia.Hastings `json:"balance"`
		Resync  bool         `json:"requiresSync"`
	}
	err = n.API.Get(ctx, "/worker/accounts", nil, &all)
	for _, a := range all {
		if a.Balance.Int != nil && a.Balance.Sign() > 0 && !a.Resync {
			have++
		}
	}
	return have, err
}

// offer makes a host accept contracts. It announces itself with the next block.
func (one daemon) offer(ctx context.Context, size int64) error {
	volume := map[string]any{"localPath": filepath.Join(one.Store.Path, "volume.dat"), "maxSectors": size / sia.Sector}
	if err := one.API.Post(ctx, "/volumes", volume); err != nil {
		return err
	}
	if err := sia.Poll(ctx, name, "a host's storage was not ready", func(ctx context.Context) (bool, string, error) {
		var all []struct {
			Status string `json:"status"`
		}
		if err := one.API.Get(ctx, "/volumes", nil, &all); err != nil || len(all) == 0 {
			return false, "no volume", err
		}
		return all[0].Status == "ready", all[0].Status, nil
	}); err != nil {
		return err
	}
	return one.API.Send(ctx, http.MethodPatch, "/settings", nil,
		map[string]any{"acceptingContracts": true, "netAddress": one.Host.Addr().String()}, nil)
}

// settings changes the node's redundancy and packing, and asks for a contract with each host. It
// keeps the rest of each section, since versions differ.
func (n *node) settings(ctx context.Context, p sia.Plan, packing bool) error {
	if err := n.bucketIsThere(ctx); err != nil {
		if err := n.API.Post(ctx, "/bus/buckets", bucket{n.bucket}); err != nil {
			return err
		}
	}
	for _, change := range []struct {
		path, section, key string
		to                 any
		more               map[string]any
	}{
		{settingsPath, "packing", "enabled", packing,
			map[string]any{"redundancy": map[string]int64{"minShards": p.Data, "totalShards": p.Total}}},
		{"/bus/autopilot", "contracts", "amount", p.Hosts, map[string]any{"enabled": true}},
	} {
		var settings map[string]any
		if err := n.API.Get(ctx, change.path, nil, &settings); err != nil {
			return err
		}
		section, _ := settings[change.section].(map[string]any)
		if section == nil {
			return fmt.Errorf("renterd: GET %s of %s reports no %s", change.path, n.API.Base.Host, change.section)
		}
		section[change.key] = change.to
		change.more[change.section] = section
		if err := n.API.Send(ctx, http.MethodPut, change.path, nil, change.more, nil); err != nil {
			return err
		}
	}
	return nil
}
