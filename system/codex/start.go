package codex

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/patience"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// Start implements system.System: a node on the first server host and one on
// the client's, which know of nobody but each other; or the nodes of a swarm.
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
		i, err := n.start(ctx, d, bin, speaks)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("codex: %w", err), n.Stop(context.WithoutCancel(ctx)))
		}
		identity["version"], identity["dialect"] = i.version(), n.near.dialect.String()
		return pair{n}, nil
	})
}

func (n *node) start(ctx context.Context, d system.Deployment, bin string, speaks dialect) (info, error) {
	var i info
	port, err := d.Port(ctx, d.Hosts[0])
	if err != nil {
		return i, err
	}
	if n.far, i, err = n.daemon(ctx, d, d.Hosts[0], "codex/storage-1", bin, speaks, port, ""); err != nil {
		return i, err
	}
	record, err := n.far.record(ctx)
	if err != nil {
		return i, err
	}
	if port, err = d.Client.FreePort(ctx); err != nil {
		return i, err
	}
	if n.near, i, err = n.daemon(ctx, d, d.Client, "codex/client-1", bin, speaks, port, record); err != nil {
		return i, err
	}
	n.alive, n.unwatch = patience.Watch(n.procs...)
	address, err := n.far.address(ctx)
	if err != nil {
		return i, err
	}
	return i, n.Connect(ctx, address)
}

// daemon starts one node; bootstrap is the record of the one that it is to know.
func (n *node) daemon(ctx context.Context, d system.Deployment, h testbed.Host, process, bin string, speaks dialect, port int, bootstrap string) (*api, info, error) {
	dir := filepath.Join(d.Dir, strings.ReplaceAll(process, "/", "-"))
	if err := os.MkdirAll(dir, 0o700); err != nil { // it starts in no other
		return nil, info{}, err
	}
	peers, err := h.FreePort(ctx)
	if err != nil {
		return nil, info{}, err
	}
	discovery, err := h.FreePort(ctx)
	if err != nil {
		return nil, info{}, err
	}
	args, err := arguments(d.Options, speaks, h.Addr(), dir, port, peers, discovery, bootstrap)
	if err != nil {
		return nil, info{}, err
	}
	base := &url.URL{Scheme: "http", Host: system.JoinPort(h, port)}
	var a *api
	var i info
	p, err := h.Start(ctx, testbed.Command{
		Name: process, Role: "system", Args: append([]string{bin}, args...), Dir: dir,
		Ready: func(ctx context.Context) (err error) {
			a, i, err = connect(ctx, h.Dial, base)
			return err
		},
	})
	if err != nil {
		return nil, i, err
	}
	n.procs, n.dirs = append(n.procs, p), append(n.dirs, dir)
	return a, i, nil
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
