package renterd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.sia.tech/core/types"
	"go.sia.tech/coreutils/wallet"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/system/internal/sia"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// plan is what to start.
type plan struct {
	renterd, hostd string // programs
	hosts          int
	shards         url.Values // redundancy of the node
	hostSize       int64
	packing        bool
	pace           time.Duration // between blocks until the network is ready
	every          time.Duration // and after
	timeout        time.Duration // until it is ready
}

func planOf(opt system.Options) (p plan, err error) {
	hosts, err1 := opt.Int("hosts")
	size, err2 := opt.Int("host_size")
	every, err3 := opt.Duration("block_time")
	timeout, err4 := opt.Duration("start_timeout")
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return p, fmt.Errorf("renterd: %w", err)
	}
	if p.shards, err = redundancy(opt); err != nil {
		return p, err
	}
	if p.shards == nil {
		p.shards = url.Values{"minshards": {"1"}, "totalshards": {strconv.FormatInt(hosts, 10)}}
	}
	total, _ := strconv.ParseInt(p.shards.Get("totalshards"), 10, 64) // checked above
	switch {
	case hosts < 1 || hosts > 64:
		return p, fmt.Errorf("renterd: option \"hosts\": %d is not between 1 and 64", hosts)
	case total > hosts:
		return p, fmt.Errorf("renterd: %d shards need as many hosts, there are %d: %w", total, hosts, system.ErrTooFew)
	case size < sia.Sector || size%sia.Sector != 0:
		return p, fmt.Errorf("renterd: option \"host_size\": %d is not a multiple of 4 MiB", size)
	case every < time.Second || every > time.Hour: // the node says that it is synced for three hours after a block
		return p, fmt.Errorf("renterd: option \"block_time\": %v is not between 1s and 1h", every)
	case timeout <= 0:
		return p, fmt.Errorf("renterd: option \"start_timeout\": %v is not positive", timeout)
	}
	p.hosts, p.hostSize, p.packing = int(hosts), size, opt["packing"] == "on"
	p.pace, p.every, p.timeout = time.Second, every, timeout
	return p, nil
}

// programs finds both.
func (p *plan) programs(opt system.Options) (err error) {
	if p.renterd, err = system.Program(name, opt, "binary", "PLIMSOLL_RENTERD", "renterd"); err != nil {
		return err
	}
	p.hostd, err = system.Program(hostd, system.Options{system.ImageName: opt["hostd_image"], hostd: opt[hostd]}, hostd,
		"PLIMSOLL_HOSTD", hostd)
	return err
}

// Start implements system.System: renterd on the client's host, the storage hosts on the
// server's, all on a chain of their own.
func (s System) Start(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	opt := d.Options
	p, err := planOf(opt)
	if err == nil {
		err = p.programs(opt)
	}
	if err != nil {
		return nil, err
	}
	if len(d.Hosts) == 0 {
		return nil, errors.New("renterd: no server host to start storage hosts on")
	}
	const outside = "hostd would ask servers on the internet for a certificate and for its latest version"
	if err := sia.OwnNetwork(name, outside, append([]testbed.Host{d.Client}, d.Hosts...)...); err != nil {
		return nil, err
	}
	identity := map[string]string{
		"binary": p.renterd, hostd: p.hostd, "currency": "SC", "sector": strconv.Itoa(sia.Sector),
		"bucket": opt["bucket"],
		"hosts":  strconv.Itoa(p.hosts), "blocks": "one every " + p.every.String(),
	}
	return group.Start(ctx, 1, identity, func(ctx context.Context, _ int) (group.Node, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, p.timeout,
			fmt.Errorf("the network was not ready within %v (option `start_timeout`)", p.timeout))
		defer cancel()
		n, err := startNetwork(ctx, d, p)
		if err != nil {
			return nil, err
		}
		return n, n.attachOwn(ctx, identity)
	})
}

// attachOwn holds a node that was started to what one that is attached to is held to.
func (n *node) attachOwn(ctx context.Context, identity map[string]string) error {
	err := n.attach(ctx, "keep", identity)
	identity["network"] = "private"
	if err != nil {
		err = errors.Join(err, n.Stop(context.WithoutCancel(ctx)))
	}
	return err
}

// daemon is renterd, or a hostd, of the private network.
type daemon struct {
	sia.Daemon
	dir      string
	password string
	phrase   string // of the wallet
	address  types.Address
	peer     string // where peers connect
	rhp      string // where renters reach a host
}

func newDaemon(ctx context.Context, d system.Deployment, h testbed.Host, program, role string) (*daemon, error) {
	ports, err := member.Ports(ctx, h, nil, 3)
	if err != nil {
		return nil, fmt.Errorf("renterd: %s: %w", role, err)
	}
	one := &daemon{
		Daemon:   sia.Daemon{Process: member.Process{System: name, Label: program + "/" + role, Host: h}},
		dir:      filepath.Join(d.DirOf(h), role),
		password: rand.Text(), phrase: wallet.NewSeedPhrase(),
		peer: system.JoinPort(h, ports[1]), rhp: system.JoinPort(h, ports[2]),
	}
	var seed [32]byte
	if err := wallet.SeedFromPhrase(&seed, one.phrase); err != nil {
		return nil, fmt.Errorf("renterd: %s: %w", role, err)
	}
	one.address = types.StandardUnlockHash(wallet.KeyFromSeed(&seed, 0).PublicKey())
	one.API, err = connect(&url.URL{Scheme: "http", Host: system.JoinPort(h, ports[0])}, one.password, h)
	return one, err
}

const (
	hostd   = "hostd"
	apiTime = 60 * time.Second // from process start to an API that answers
)

// kind is what the two programs differ in.
type kind struct {
	ready                string // a call that is answered when it is up
	file, password, seed string // variables with the configuration file, the API's password, the wallet's seed
	config               string // the file: no peers but ours, and nothing is asked of servers
}

// kinds are renterd, whose storage hosts may share an address, and hostd.
func kinds() map[string]kind {
	return map[string]kind{
		name: {"/bus/consensus/state", "RENTERD_CONFIG_FILE", "RENTERD_API_PASSWORD", "RENTERD_SEED", `directory: DIR
autoOpenWebUI: false
network: zen
http: {address: "API"}
explorer: {disable: true}
bus: {bootstrap: false, gatewayAddr: "PEER", allowPrivateIPs: true}
autopilot: {allowRedundantHostIPs: true}
s3: {enabled: false}
log: {stdout: {enableANSI: false}}
`},
		hostd: {"/consensus/tip", "HOSTD_CONFIG_FILE", "HOSTD_API_PASSWORD", "HOSTD_WALLET_SEED", `directory: DIR
autoOpenWebUI: false
http: {address: "API"}
syncer: {address: "PEER", bootstrap: false, enableUPnP: false}
consensus: {network: zen, indexBatchSize: 100}
explorer: {disable: true}
rhp4: {listenAddresses: [{protocol: tcp, address: "RHP"}, {protocol: quic, address: "RHP"}]}
log: {stdout: {enableANSI: false}}
`},
	}
}

// run starts the daemon with the chain and a configuration file of its own.
func (one *daemon) run(ctx context.Context, c *privateChain, k kind, program string) error {
	if err := c.give(ctx, one.Host, one.dir); err != nil {
		return fmt.Errorf("renterd: %w", err)
	}
	path := filepath.Join(one.dir, "plimsoll.yml")
	config := strings.NewReplacer("DIR", strconv.Quote(one.dir), "API", one.API.Base.Host, "PEER", one.peer, "RHP",
		one.rhp).Replace(k.config)
	if err := one.Host.Files().Write(ctx, path, 0o600, strings.NewReader(config)); err != nil {
		return fmt.Errorf("renterd: %w", err)
	}
	c.peers = append(c.peers, one.peer)
	return one.Launch(ctx, testbed.Command{
		Dir: one.dir, Args: []string{program, "-env"},
		Env: []string{k.file + "=" + path, k.password + "=" + one.password, k.seed + "=" + one.phrase,
			"RENTERD_NETWORK=zen"}, // renterd's image has another, which is over the file
		ReadyTimeout: apiTime,
		Ready:        func(ctx context.Context) error { return one.API.Get(ctx, k.ready, nil, nil) },
		Stop:         []testbed.StopStep{{Signal: syscall.SIGTERM}, {Signal: syscall.SIGKILL, After: sia.StopTime}},
	})
}

// startNetwork starts the daemons and makes a network of them.
func startNetwork(ctx context.Context, d system.Deployment, p plan) (_ *node, err error) {
	var network sia.Network
	var c *privateChain
	defer func() {
		if err != nil {
			if c != nil {
				c.stop()
			}
			err = network.Abandon(ctx, err)
		}
	}()
	renter, err := newDaemon(ctx, d, d.Client, name, "client-1")
	if err != nil {
		return nil, err
	}
	wallets := []types.Address{renter.address}
	var hosts []*daemon
	for i := range p.hosts {
		h, err := newDaemon(ctx, d, d.Hosts[0], hostd, "storage-"+strconv.Itoa(i+1))
		if err != nil {
			return nil, err
		}
		h.Store = disk.Dir{Files: h.Host.Files(), Path: filepath.Join(h.dir, "store")}
		if err := h.Store.Files.MkdirAll(h.Store.Path, 0o755); err != nil {
			return nil, fmt.Errorf("renterd: %w", err)
		}
		hosts, wallets = append(hosts, h), append(wallets, h.address)
	}
	if c, err = newChain(d.Client, wallets); err != nil {
		return nil, err
	}
	if err := renter.run(ctx, c, kinds()[name], p.renterd); err != nil {
		return nil, err
	}
	network.Add(&renter.Daemon)
	for _, h := range hosts {
		if err := h.run(ctx, c, kinds()[hostd], p.hostd); err != nil {
			return nil, err
		}
		network.Add(&h.Daemon)
	}
	n := newNode(renter.API, d.Options["bucket"])
	n.Write, n.network, n.chain = true, &network, c
	n.Prefix = strings.TrimPrefix(d.Options["prefix"], "/")
	if err := network.Form(ctx, func(ctx context.Context) error {
		return n.form(ctx, hosts, p,
			pacer(p.pace, c.block))
	}); err != nil {
		return nil, err
	}
	c.goOn(p.every)
	return n, nil
}

// pacer waits, each time, until a while has passed since the last one, and makes a block.
func pacer(pace time.Duration, block func(context.Context) error) func(context.Context) error {
	var last time.Time
	return func(ctx context.Context) error {
		if wait := pace - time.Since(last); wait > 0 && !member.Sleep(ctx, wait) {
			return context.Cause(ctx)
		}
		last = time.Now()
		return block(ctx)
	}
}

// form makes a network of daemons that answer. next makes the next block.
func (n *node) form(ctx context.Context, hosts []*daemon, p plan, next func(context.Context) error) error {
	if err := sia.Each(hosts, func(h *daemon) error { return h.offer(ctx, p.hostSize) }); err != nil {
		return err
	}
	if err := n.settings(ctx, p); err != nil {
		return err
	}
	for _, wait := range []struct {
		what string
		have func(context.Context) (int, error)
	}{
		// they announce themselves at a block, and are known at the next one
		{"the hosts did not become known", n.known},
		{"contracts were not formed", func(ctx context.Context) (int, error) { return n.formed(ctx, p.hosts) }},
		{"accounts with hosts, which pay for uploads, were not funded", n.funded},
	} {
		if err := sia.Poll(ctx, name, wait.what, func(ctx context.Context) (bool, string, error) {
			if err := next(ctx); err != nil {
				return false, "", err
			}
			have, err := wait.have(ctx)
			return have >= p.hosts, fmt.Sprintf("%d of %d", have, p.hosts), err
		}); err != nil {
			return err
		}
	}
	return nil
}

// known is how many hosts the node knows.
func (n *node) known(ctx context.Context) (int, error) {
	all, err := n.hosts(ctx, "all")
	return len(all), err
}

// formed is how many contracts are in use and in blocks. As long as there are fewer than
// wanted, the node is asked to look for hosts: its own round is half an hour.
func (n *node) formed(ctx context.Context, wanted int) (have int, err error) {
	all, err := n.contracts(ctx)
	for _, c := range all {
		if c.State == "active" && c.Usability == "good" {
			have++
		}
	}
	if err == nil && len(all) < wanted {
		err = n.api.Send(ctx, http.MethodPost, "/autopilot/trigger", nil, map[string]any{"forceScan": true}, nil)
	}
	return have, err
}

// funded is how many accounts can pay.
func (n *node) funded(ctx context.Context) (have int, err error) {
	var all []account
	err = n.api.Get(ctx, "/worker/accounts", nil, &all)
	for _, a := range all {
		if a.Balance.Int != nil && a.Balance.Sign() > 0 && !a.Resync {
			have++
		}
	}
	return have, err
}

// offer makes a host take contracts. It announces itself with the next block.
func (one *daemon) offer(ctx context.Context, size int64) error {
	volume := map[string]any{"localPath": filepath.Join(one.Store.Path, "volume.dat"), "maxSectors": size / sia.Sector}
	if err := one.API.Send(ctx, http.MethodPost, "/volumes", nil, volume, nil); err != nil {
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

// settings are the node's: redundancy, packing, a contract with each host.
func (n *node) settings(ctx context.Context, p plan) error {
	if err := n.bucketIsThere(ctx); err != nil {
		if err := n.api.Send(ctx, http.MethodPost, "/bus/buckets", nil, bucket{n.bucket}, nil); err != nil {
			return err
		}
	}
	var upload map[string]any // as it is, but for what is ours: versions differ
	if err := n.api.Get(ctx, settingsPath, nil, &upload); err != nil {
		return err
	}
	packing, _ := upload["packing"].(map[string]any)
	if packing == nil {
		return fmt.Errorf("renterd: GET %s of %s reports no packing", settingsPath, n.api.Base.Host)
	}
	packing["enabled"] = p.packing
	number := func(of string) int64 {
		v, _ := strconv.ParseInt(p.shards.Get(of), 10, 64) // checked by planOf
		return v
	}
	upload["redundancy"] = map[string]int64{"minShards": number("minshards"), "totalShards": number("totalshards")}
	if err := n.api.Send(ctx, http.MethodPut, settingsPath, nil, upload, nil); err != nil {
		return err
	}
	var pilot map[string]any
	if err := n.api.Get(ctx, "/bus/autopilot", nil, &pilot); err != nil {
		return err
	}
	contracts, _ := pilot["contracts"].(map[string]any)
	if contracts == nil {
		return fmt.Errorf("renterd: GET /bus/autopilot of %s reports no contracts", n.api.Base.Host)
	}
	contracts["amount"] = p.hosts
	return n.api.Send(ctx, http.MethodPut, "/bus/autopilot", nil, map[string]any{"enabled": true,
		"contracts": contracts}, nil)
}
