package codex

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/daemon"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/testbed"
)

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
	if system.Says(ctx, name, bin, "Codex version", "--version") != nil {
		speaks, err = logos, system.Says(ctx, name, bin, "Storage version", "--version")
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
