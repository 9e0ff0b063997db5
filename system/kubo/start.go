package kubo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/pair"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// Start implements system.System: a node on the first server host and one on
// the client's, on a private swarm of their own.
func (s System) Start(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	opt, err := s.Info().Fill(d.Options)
	if err != nil {
		return nil, err
	}
	d.Options = opt
	for _, key := range []string{"url", "server_url", "gateway"} {
		if opt[key] != "" {
			return nil, fmt.Errorf("kubo: option %q is for mode: attach", key)
		}
	}
	bin, err := program(opt)
	if err != nil {
		return nil, fmt.Errorf("%w; %s", err, s.Info().Install)
	}
	n, err := newNode(opt)
	if err != nil {
		return nil, err
	}
	about := n.about(opt)
	about["binary"] = bin
	if d.Swarm {
		return startSwarm(ctx, d, bin, about)
	}
	about["seed"] = "add on the server's node, pinned"
	return group.Start(ctx, 1, about, func(ctx context.Context, _ int) (group.Node, error) {
		version, err := n.start(ctx, d, bin)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("kubo: %w", err), n.Stop(context.WithoutCancel(ctx)))
		}
		about["version"] = version
		return private{seeding{n}}, nil
	})
}

func (n *node) start(ctx context.Context, d system.Deployment, bin string) (version string, err error) {
	key := swarmKey()
	err = n.Start(ctx, d, func(ctx context.Context, h testbed.Host, label string, port int, server *rpc) (pair.Started[*rpc], error) {
		k, err := newDaemon(ctx, d, h, label, bin, key, port)
		if err != nil {
			return pair.Started[*rpc]{}, err
		}
		if server == nil {
			n.gateway = k.gateway
		}
		return pair.Started[*rpc]{API: k.rpc, Proc: k.Processes()[0], Dir: k.repo}, nil
	})
	if err != nil {
		return "", err
	}
	if n.farAddr, err = n.Far().Address(ctx); err != nil {
		return "", err
	}
	i, err := n.Near().id(ctx)
	return i.AgentVersion, err
}

// settings keep a node to itself and its swarm, and give every network service
// that would disturb a measurement a rest.
func settings(ip netip.Addr, rpcPort, gatewayPort, swarmPort int) map[string]any {
	family := "ip6"
	if ip.Is4() {
		family = "ip4"
	}
	at := func(port int) string { return fmt.Sprintf("/%s/%s/tcp/%d", family, ip, port) }
	return map[string]any{
		"Addresses.API": at(rpcPort), "Addresses.Gateway": at(gatewayPort),
		"Addresses.Swarm":                       []string{at(swarmPort)}, // TCP: a private swarm has no QUIC
		"Bootstrap":                             []string{},
		"AutoConf.Enabled":                      false,
		"AutoTLS.Enabled":                       false,
		"AutoNAT.ServiceMode":                   "disabled",
		"Discovery.MDNS.Enabled":                false,
		"Gateway.DisableHTMLErrors":             true,
		"Gateway.NoDNSLink":                     true,
		"HTTPRetrieval.Enabled":                 false,
		"Routing.Type":                          "none",
		"Swarm.DisableNatPortMap":               true,
		"Swarm.EnableHolePunching":              false,
		"Swarm.RelayClient.Enabled":             false,
		"Swarm.RelayService.Enabled":            false,
		"Swarm.ResourceMgr.Enabled":             false, // its limit of connections a second refuses ours when each read has a fresh one
		"Swarm.Transports.Network.QUIC":         false,
		"Swarm.Transports.Network.Relay":        false,
		"Swarm.Transports.Network.WebRTCDirect": false,
		"Swarm.Transports.Network.WebTransport": false,
		"Swarm.Transports.Network.Websocket":    false,
		"Version.SwarmCheckEnabled":             false,
	}
}

// configure sets the keys in a repo's configuration.
func configure(ctx context.Context, repo disk.Dir, ip netip.Addr, rpcPort, gatewayPort, swarmPort int) error {
	path := repo.Sub(configFile).Path
	b, err := repo.Files.ReadFile(path)
	if err != nil {
		return err
	}
	var config map[string]any
	if err := json.Unmarshal(b, &config); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for key, value := range settings(ip, rpcPort, gatewayPort, swarmPort) {
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
