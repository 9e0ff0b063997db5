package tahoe

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
)

// config is the shape of a grid that is started.
type config struct {
	nodes                int
	needed, happy, total int
	foolscap             bool
}

// maxDaemons keeps a slip of the pen from filling the machine: each takes some
// 85 MB.
const maxDaemons = 256

func parseConfig(opt system.Options) (config, error) {
	number := func(name string) int { n, _ := opt.Int(name); return int(n) }
	c := config{nodes: number("nodes"), needed: number("needed"), happy: number("happy"), total: number("total"),
		foolscap: opt["protocol"] == "foolscap"}
	if c.needed > c.total {
		return c, fmt.Errorf("tahoe: %d shares are needed and only %d are stored: make `needed` at most `total`",
			c.needed, c.total)
	}
	if c.happy == 0 {
		c.happy = min(c.total, c.nodes)
	}
	if c.happy > c.total {
		return c, fmt.Errorf("tahoe: %d shares cannot be on %d storage nodes: make `happy` at most `total`", c.total,
			c.happy)
	}
	if c.happy > c.nodes {
		return c, fmt.Errorf("tahoe: a put cannot reach %d of %d storage nodes: make `happy` at most `nodes`", c.happy,
			c.nodes)
	}
	return c, nil
}

func (c config) protocol() string {
	if c.foolscap {
		return "foolscap"
	}
	return "gbs"
}

// storageConfig listens at host, port. Without reserved_space a node refuses
// shares while the disk has less than 1 GB free.
func (c config) storageConfig(nickname string, host netip.Addr, port int) string {
	return fmt.Sprintf(`[node]
nickname = %s
web.port =
tub.port = %s
tub.location = %s
[storage]
enabled = true
reserved_space = 0
force_foolscap = %t
`, nickname, endpoint(host, port), hint(host, port), c.foolscap)
}

// clientConfig serves the web API at host, port, and takes no shares.
func (c config) clientConfig(nickname string, host netip.Addr, port int) string {
	return fmt.Sprintf(`[node]
nickname = %s
web.port = %s
tub.port = disabled
tub.location = disabled
[client]
shares.needed = %d
shares.happy = %d
shares.total = %d
force_foolscap = %t
[storage]
enabled = false
`, nickname, endpoint(host, port), c.needed, c.happy, c.total, c.foolscap)
}

// serversYAML is the list of storage nodes that makes an introducer needless.
// JSON strings are YAML strings.
func (c config) serversYAML(all []announcement) string {
	var b strings.Builder
	b.WriteString("storage:\n")
	for i, a := range all {
		fmt.Fprintf(&b, "  v0-%s:\n    ann:\n      nickname: storage-%d\n      anonymous-storage-FURL: %q\n      "+
			"permutation-seed-base32: %q\n",
			a.key, i+1, a.furl, a.key)
		if !c.foolscap {
			fmt.Fprintf(&b, "      anonymous-storage-NURLs: [%q]\n", a.nurl)
		}
	}
	return b.String()
}

// configFile is the name of a node's configuration in its directory.
const configFile = "tahoe.cfg"

// runningFile is where a node keeps its process id while it runs.
const runningFile = "running.process"

// makeDirectory makes a node's directory, as `tahoe create-node` does in a
// second of CPU time. One that is there is kept, but for the process id of a node
// that was killed: whatever process has that number by now, after a reboot say,
// Tahoe would take it for the node. Nodes of ours do not outlive us.
func makeDirectory(ctx context.Context, dir disk.Dir, config string) error {
	return errors.Join(
		dir.Files.RemoveAll(dir.Sub(runningFile).Path),
		dir.Files.MkdirAll(dir.Sub("private").Path, 0o700),
		dir.Files.Write(ctx, dir.Sub("tahoe-client.tac").Path, 0o644, strings.NewReader("")),
		dir.Files.Write(ctx, dir.Sub(configFile).Path, 0o600, strings.NewReader(config)),
	)
}
