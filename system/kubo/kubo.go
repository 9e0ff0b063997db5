// Package kubo stores objects in Kubo, the common IPFS node. A put is an import into the client's
// own node; only reads of data that another node holds cross the link.
package kubo

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/daemon"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/testbed"
)

const name = "kubo"

//go:embed info.yaml
var description string

// System implements system.System.
type System struct{}

// Info implements system.System.
func (System) Info() system.Info { return system.Describe(description) }

var (
	_ system.Healther   = (*node)(nil)
	_ system.Endpointer = (*node)(nil)
	_ system.Seeder     = seeding{}
)

// Check implements system.System.
func (s System) Check(ctx context.Context, opt system.Options) []system.Problem {
	return daemon.Check(ctx, s, opt, func() error {
		_, err := program(ctx, opt)
		return err
	})
}

// Start implements system.Starter: it starts a node on the first server host and one on the
// client's, or the nodes of a swarm, on a private network.
func (s System) Start(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	bin, err := program(ctx, d.Options)
	if err != nil {
		return nil, fmt.Errorf("%w; %s", err, s.Info().Install)
	}
	k, about := kind(d.Options, bin), aboutOf(d.Options)
	about["binary"] = bin
	if d.Swarm {
		delete(about, "put")
		delete(about, "range")
		about["method"], about["exchange"] = "pin", "bitswap"
		about["transport"], about["discovery"] = "TCP, pre-shared key", "none: peers are named"
		return k.Swarm(ctx, d, about)
	}
	about["seed"] = "add on the server's node, pinned"
	return k.Pair(ctx, d, about, func(p *daemon.Pair[*rpc]) group.Node { return private{seeding{newNode(p)}} })
}

// Attach implements system.Attacher.
func (System) Attach(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	about := aboutOf(d.Options)
	return kind(d.Options, "").Attach(ctx, d, about, func(p *daemon.Pair[*rpc]) group.Node {
		if !p.Two() {
			return newNode(p)
		}
		about["seed"] = "add on the node at " + p.Far().At.Host
		return seeding{newNode(p)}
	})
}

// aboutOf returns the settings that affect the measured speed.
func aboutOf(opt system.Options) map[string]string {
	return map[string]string{
		"method": "cat", "range": "cat with offset and length",
		"put":         "add to the client's node, pinned: nothing crosses the link",
		"cid_version": "1", "raw_leaves": "true", "chunk": opt["chunk"],
		"durability": "flatfs does not sync: an add ends in the page cache",
	}
}

func program(ctx context.Context, opt system.Options) (bin string, err error) {
	if bin, err = system.Program(name, opt, "binary", "PLIMSOLL_KUBO", "ipfs"); err == nil {
		err = system.CheckProgram(ctx, name, bin, "ipfs version", "version")
	}
	return bin, err
}

const (
	configFile  = "config" // in the repo
	gatewayPort = 1        // index of the gateway's port in a daemon's ports; 2: the swarm's
)

// kind describes the nodes of a new private network.
func kind(opt system.Options, bin string) *daemon.Program[*rpc] {
	var secret [32]byte
	rand.Read(secret[:]) // never fails
	key := "/key/swarm/psk/1.0.0/\n/base16/\n" + hex.EncodeToString(secret[:]) + "\n"
	return &daemon.Program[*rpc]{
		Name: name, Ref: valid, Redial: 2 * time.Second,
		Client: func(dial web.Dial, at *url.URL) *rpc { return &rpc{daemon.NewAccess(name, dial, at), opt["chunk"]} },
		Init:   func(ctx context.Context, n *daemon.Daemon[*rpc]) error { return initialize(ctx, n, bin, key) },
		Command: func(ctx context.Context, n *daemon.Daemon[*rpc], _ *rpc) (testbed.Command, error) {
			c := testbed.Command{Args: []string{bin, "daemon"}, Env: environment(n.Dir.Path)}
			return c, configure(ctx, n.Dir, n.Host.Addr(), n.Ports)
		},
		Keep: configFile, // it contains the key
	}
}

// initialize creates a repo with the swarm's key.
func initialize(ctx context.Context, n *daemon.Daemon[*rpc], bin, key string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := testbed.Run(ctx, n.Host, testbed.Command{
		Name: n.Label + "/init", Role: "system", Args: []string{bin, "init", "--profile=test,announce-off"},
		Dir: n.Dir.Path, Env: environment(n.Dir.Path),
	}); err != nil {
		return err
	}
	return n.Dir.Files.Write(ctx, n.Dir.Sub("swarm.key").Path, 0o600, strings.NewReader(key))
}

func environment(repo string) []string {
	return []string{
		"IPFS_PATH=" + repo,
		"LIBP2P_FORCE_PNET=1", // otherwise a node without the key joins the public network
		"IPFS_TELEMETRY=off",
	}
}

// settings isolate a node with its swarm, and disable network services that would disturb a
// measurement.
//
//go:embed settings.yaml
var settings string

// configure sets the keys in a repo's configuration.
func configure(ctx context.Context, repo disk.Dir, ip netip.Addr, ports []int) error {
	path := repo.Sub(configFile).Path
	b, err := repo.Files.ReadFile(path)
	if err != nil {
		return err
	}
	var config, ours map[string]any
	if err := errors.Join(json.Unmarshal(b, &config), yaml.Unmarshal([]byte(settings), &ours)); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	at := func(port int) string { return member.Multiaddr(netip.AddrPortFrom(ip, uint16(port))) }
	ours["Addresses.API"], ours["Addresses.Gateway"] = at(ports[0]), at(ports[gatewayPort])
	ours["Addresses.Swarm"] = []string{at(ports[2])} // TCP: a private swarm has no QUIC
	for key, value := range ours {
		set(config, strings.Split(key, "."), value)
	}
	if b, err = json.MarshalIndent(config, "", "  "); err != nil {
		return err
	}
	return repo.Files.Write(ctx, path, 0o600, bytes.NewReader(b))
}

func set(in map[string]any, key []string, value any) {
	if len(key) == 1 {
		in[key[0]] = value
		return
	}
	inner, ok := in[key[0]].(map[string]any)
	if !ok {
		inner = map[string]any{}
		in[key[0]] = inner
	}
	set(inner, key[1:], value)
}
