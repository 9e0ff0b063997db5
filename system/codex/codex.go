// Package codex stores objects in Codex or its successor Logos Storage: two dialects of one REST
// interface. A put is an import into the client's own node; only reads of data that another node
// holds cross the link.
package codex

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/daemon"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/testbed"
)

const name = "codex"

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
		_, _, _, err := program(ctx, opt)
		return err
	})
}

// Start implements system.Starter: it starts a node on the first server host and one on the
// client's, which know only each other, or the nodes of a swarm.
func (s System) Start(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	bin, speaks, flags, err := program(ctx, d.Options)
	if err != nil {
		return nil, fmt.Errorf("%w; %s", err, s.Info().Install)
	}
	if d.Client.Addr().IsLoopback() {
		return nil, errors.New("codex: its discovery listens on every address of the machine, which only a network " +
			"namespace keeps in, and there are none here; see plimsoll doctor")
	}
	k, about := kind(d.Options, bin, speaks, flags), map[string]string{
		"binary": bin, "dialect": speaks.String(), "quota": d.Options["quota"],
		"block_retries": d.Options["block_retries"],
	}
	if d.Swarm {
		about["discovery"] = "connect"
		about["publish"], about["fetch"], about["progress"] = "import into the node", "POST /data/CID/network",
			"blocks in /space"
		return k.Swarm(ctx, d, about)
	}
	about["put"], about["seed"], about["get"] = "import into the client's node: nothing crosses the link",
		"import into the server's node", "network/stream"
	about["connections"], about["requests"] = "kept between the nodes",
		"one connection to the client's own node for each"
	return k.Pair(ctx, d, about, func(p *daemon.Pair[*api]) group.Node { return seeding{newNode(p)} })
}

// Attach implements system.Attacher.
func (System) Attach(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	about := map[string]string{
		"put": "import into the node at the endpoint", "get": "network/stream",
		"requests": "one connection to the node at the endpoint for each; the nodes keep theirs among each other",
	}
	return kind(d.Options, "", "", "").Attach(ctx, d, about, func(p *daemon.Pair[*api]) group.Node {
		about["dialect"] = p.Near().dialect.String()
		if !p.Two() {
			return newNode(p)
		}
		about["seed"] = "import into the node at " + p.Far().At.Host
		return seeding{newNode(p)}
	})
}

// retryEvery is the interval between a node's requests for a block.
const retryEvery = 2 * time.Second

// kind describes nodes that use one dialect; if speaks is empty, the dialect is detected. flags is
// the program's description of its flags.
func kind(opt system.Options, bin string, speaks dialect, flags string) *daemon.Program[*api] {
	return &daemon.Program[*api]{
		Name: name, Ref: valid, Endless: true, Redial: 5 * time.Second,
		Client: func(dial web.Dial, at *url.URL) *api {
			return &api{Access: daemon.NewAccess(name, dial, at), dialect: speaks,
				quiet: time.Duration(opt.Int("block_retries"))*retryEvery + 10*time.Second}
		},
		// the node does not start in a directory with other permissions
		Init: func(_ context.Context, n *daemon.Daemon[*api]) error { return n.Dir.Files.MkdirAll(n.Dir.Path, 0o700) },
		Command: func(ctx context.Context, n *daemon.Daemon[*api], first *api) (c testbed.Command, err error) {
			bootstrap := ""
			if first != nil {
				if bootstrap, err = first.record(ctx); err != nil {
					return c, err
				}
			}
			args, err := arguments(opt, flags, n.Host.Addr(), n.Dir.Path, n.Ports, bootstrap)
			c.Args = append([]string{bin}, args...)
			return c, err
		},
		Keep: "key",
	}
}

// arguments returns the flags of a node on a private network. ports are those of the API, the peers
// and the discovery.
func arguments(
	opt system.Options, flags string, ip netip.Addr, dir string, ports []int, bootstrap string,
) ([]string, error) {
	quota := opt.Int("quota")
	if quota%(1<<20) != 0 {
		return nil, fmt.Errorf("option \"quota\": %d is not a number of whole MiB", quota)
	}
	args := []string{
		"--data-dir=" + dir,
		"--api-bindaddr=" + ip.String(), "--api-port=" + strconv.Itoa(ports[0]),
		"--nat=extip:" + ip.String(),
		fmt.Sprintf("--storage-quota=%dmb", quota>>20),
		"--block-ttl=30d", // never 0: the help claims that 0 keeps blocks forever, but it removes all of them
		"--block-retries=" + opt["block_retries"],
		"--log-level=warn", "--log-format=nocolors",
	}
	if strings.Contains(flags, "listen-ip") { // Logos Storage since 2026
		args = append(args, "--listen-ip="+ip.String(), "--listen-port="+strconv.Itoa(ports[1]))
	} else {
		args = append(args, "--listen-addrs="+member.Multiaddr(netip.AddrPortFrom(ip, uint16(ports[1]))),
			"--disc-port="+strconv.Itoa(ports[2]))
	}
	const alone = "no-bootstrap-node" // otherwise it joins a public network
	switch {
	case bootstrap != "":
		args = append(args, "--bootstrap-node="+bootstrap)
	case strings.Contains(flags, alone):
		args = append(args, "--"+alone)
	case strings.Contains(flags, "--network"):
		return nil, errors.New("codex: the program would join a public network: it does not know --" + alone)
	}
	return args, nil
}

// program finds a program, and queries its version, which identifies the dialect, and its flags.
func program(ctx context.Context, opt system.Options) (bin string, speaks dialect, flags string, err error) {
	if bin, err = system.Program(name, opt, "binary", "PLIMSOLL_CODEX", "codex", "storage"); err != nil {
		return "", "", "", err
	}
	speaks = codex
	if system.CheckProgram(ctx, name, bin, "Codex version", "--version") != nil {
		speaks, err = logos, system.CheckProgram(ctx, name, bin, "Storage version", "--version")
	}
	if err != nil {
		return "", "", "", err
	}
	flags, err = system.Output(ctx, bin, "--help")
	if err != nil && !strings.Contains(flags, "data-dir") {
		return "", "", "", fmt.Errorf("codex: %s --help: %w", bin, err)
	}
	return bin, speaks, flags, nil
}
