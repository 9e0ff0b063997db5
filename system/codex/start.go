package codex

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/pair"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// Start implements system.System: a node on the first server host and one on
// the client's, which know of no other; or the nodes of a swarm.
func (s System) Start(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	opt, err := s.Info().Fill(d.Options)
	if err != nil {
		return nil, err
	}
	d.Options = opt
	if opt["url"] != "" || opt["server_url"] != "" {
		return nil, errors.New("codex: options \"url\" and \"server_url\" are for mode: attach")
	}
	bin, err := program(opt)
	if err != nil {
		return nil, fmt.Errorf("%w; %s", err, s.Info().Install)
	}
	if d.Client.Addr().IsLoopback() {
		return nil, errors.New("codex: its discovery listens on every address of the machine, which only a network namespace keeps in, and there are none here; see plimsoll doctor")
	}
	n, err := newNode(opt)
	if err != nil {
		return nil, err
	}
	speaks, err := speaks(ctx, bin)
	if err != nil {
		return nil, err
	}
	if d.Swarm {
		return startSwarm(ctx, d, bin, speaks)
	}
	identity := map[string]string{
		"binary": bin, "quota": opt["quota"], "block_retries": opt["block_retries"],
		"put": "import into the client's node: nothing crosses the link", "seed": "import into the server's node", "get": "network/stream",
		"connections": "kept between the nodes", "requests": "one connection to the client's own node for each",
	}
	return group.Start(ctx, 1, identity, func(ctx context.Context, _ int) (group.Node, error) {
		if err := n.start(ctx, d, bin, speaks, identity); err != nil {
			return nil, errors.Join(fmt.Errorf("codex: %w", err), n.Stop(context.WithoutCancel(ctx)))
		}
		return seeding{n}, nil
	})
}

func (n *node) start(ctx context.Context, d system.Deployment, bin string, speaks dialect, identity map[string]string) error {
	return n.Start(ctx, d, func(ctx context.Context, h testbed.Host, label string, port int, server *api) (s pair.Started[*api], err error) {
		bootstrap := ""
		if server != nil {
			if bootstrap, err = server.record(ctx); err != nil {
				return s, err
			}
		}
		k, err := newDaemon(ctx, d, h, label, bin, speaks, port, bootstrap)
		if err != nil {
			return s, err
		}
		identity["version"], identity["dialect"] = k.version, k.api.dialect.String()
		return pair.Started[*api]{API: k.api, Proc: k.Processes()[0], Dir: k.dir}, nil
	})
}

// arguments are the flags of a node on a private network.
func arguments(opt system.Options, speaks dialect, ip netip.Addr, dir string, port, peers, discovery int, bootstrap string) ([]string, error) {
	quota, err := opt.Int("quota")
	if err != nil || quota < 1<<20 || quota%(1<<20) != 0 {
		return nil, fmt.Errorf("option \"quota\": %q is not a number of whole MiB", opt["quota"])
	}
	if n, err := opt.Int("block_retries"); err != nil || n < 1 {
		return nil, fmt.Errorf("option \"block_retries\" is at least 1, not %q", opt["block_retries"])
	}
	args := []string{
		"--data-dir=" + dir,
		"--api-bindaddr=" + ip.String(), "--api-port=" + strconv.Itoa(port),
		"--nat=extip:" + ip.String(),
		fmt.Sprintf("--storage-quota=%dmb", quota>>20),
		"--block-ttl=30d", // never 0: it says that 0 keeps blocks for ever, and removes them all
		"--block-retries=" + opt["block_retries"],
		"--log-level=warn", "--log-format=nocolors",
	}
	switch speaks {
	case logos:
		args = append(args, "--listen-ip="+ip.String(), "--listen-port="+strconv.Itoa(peers))
		if bootstrap == "" {
			args = append(args, "--no-bootstrap-node") // or it joins a public network
		}
	default:
		args = append(args, fmt.Sprintf("--listen-addrs=/%s/%s/tcp/%d", family(ip), ip, peers), "--disc-port="+strconv.Itoa(discovery))
	}
	if bootstrap != "" {
		args = append(args, "--bootstrap-node="+bootstrap)
	}
	return args, nil
}

func family(ip netip.Addr) string {
	if ip.Is4() {
		return "ip4"
	}
	return "ip6"
}

// speaks asks a program for its version, which says which of the two it is.
func speaks(ctx context.Context, bin string) (dialect, error) {
	if system.Says(ctx, name, bin, "Codex version", "--version") == nil {
		return codex, nil
	}
	return logos, system.Says(ctx, name, bin, "Storage version", "--version")
}
