package siad

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
)

// chains is a system.Chains of siads, one for each host.
type chains struct {
	system.Cluster
	bin     string
	version string
	d       system.Deployment
	cache   string // where chains are kept
}

// startChains starts nothing yet.
func startChains(ctx context.Context, d system.Deployment, b build) (_ *chains, err error) {
	if _, err := modulesOf(d.Options); err != nil {
		return nil, err
	}
	identity := map[string]string{
		"binary": b.path, "version": "siad " + b.version, "network": "private", "peers": "modules gc, --no-bootstrap",
		"fresh node": "in initial download, from the peers that it is connected to",
	}
	if b.debug {
		identity["checks"] = "built with `debug`: it checks itself while it validates, which takes time"
	}
	c := &chains{bin: b.path, version: b.version, d: d, cache: cmp.Or(d.Cache, filepath.Join(d.DirOf(d.Client),
		"chains"))}
	c.Cluster, err = group.Start(ctx, len(d.Hosts), identity, func(_ context.Context, i int) (group.Node, error) {
		return &follower{c: c, host: d.Hosts[i], role: "node-" + strconv.Itoa(i+1)}, nil
	})
	return c, err
}

// build is a binary, and what it says of itself.
type build struct {
	path    string
	version string // "1.5.9-dev"
	debug   bool
}

const versionTime = 10 * time.Second

var versionWord = regexp.MustCompile(`v([0-9?]+\.\S+)`)

// buildOf asks the binary, which has to be named, and refuses one of public networks.
// Its own network would need hours of mining and hosts with public addresses, and a fresh
// node does what all do when they start, which is to connect to the peers that its code
// knows. In dev builds these are none.
func buildOf(ctx context.Context, opt system.Options) (b build, err error) {
	b.path, err = system.Named(name, opt, "binary", "PLIMSOLL_SIAD", "siad")
	if b.path == "" && err == nil {
		b.path, err = system.Installed(name, "siad")
	}
	if b.path == "" && err == nil {
		err = errors.New("siad: no binary given, and no package that can be installed has one")
	}
	if err != nil {
		return b, err
	}
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, b.path, "version")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return b, fmt.Errorf("siad: ask %s for its version: %w", b.path, errors.Join(err, ctx.Err()))
	}
	found := versionWord.FindSubmatch(out)
	if found == nil {
		return b, fmt.Errorf("siad: %s version: %.80q names no version", b.path, out)
	}
	b.version, b.debug = string(found[1]), strings.Contains(string(out), "debugging enabled")
	if !strings.HasSuffix(b.version, "-dev") {
		return b, fmt.Errorf("siad: %s is version %s: a private network needs a siad built with the `dev` constants, "+
			"whose version ends in -dev", b.path, b.version)
	}
	return b, nil
}

// modulesOf are those of a fresh node. siad itself says which of them need others.
func modulesOf(opt system.Options) (string, error) {
	all := opt["modules"]
	if !strings.ContainsRune(all, 'c') {
		return "", fmt.Errorf("siad: option \"modules\": without c, the consensus, %q follows no chain", all)
	}
	return all, nil
}
