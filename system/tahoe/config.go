package tahoe

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
)

// config is the shape of a started grid.
type config struct {
	nodes                int
	needed, happy, total int
	protocol             string // to the storage nodes: "gbs", "foolscap"
}

func parseConfig(opt system.Options) (config, error) {
	number := func(name string) int { return int(opt.Int(name)) }
	c := config{nodes: number("nodes"), needed: number("needed"), happy: number("happy"), total: number("total"),
		protocol: opt["protocol"]}
	if c.needed > c.total {
		return c, fmt.Errorf("tahoe: %d shares are needed and only %d are stored: make `needed` at most `total`",
			c.needed, c.total)
	}
	if c.happy == 0 {
		c.happy = min(c.total, c.nodes)
	}
	if c.happy > min(c.total, c.nodes) {
		return c, fmt.Errorf("tahoe: a put cannot reach %d of %d storage nodes with %d shares: make `happy` at most "+
			"`nodes` and `total`", c.happy, c.nodes, c.total)
	}
	return c, nil
}

// Configurations: a storage node listens for clients; a client, which accepts no shares, serves the
// web API.
var (
	//go:embed storage.cfg
	storageConfig string
	//go:embed client.cfg
	clientConfig string
)

// fill fills in one of the configurations for a node that listens at host and port. A storage node
// advertises the address HINT; ENDPOINT is Twisted's description, in which a colon ends a field.
func (c config) fill(text, nickname string, host netip.Addr, port int) string {
	endpoint := fmt.Sprintf("tcp:%d:interface=%s", port, strings.ReplaceAll(host.String(), ":", `\:`))
	hint := "tcp:" + netip.AddrPortFrom(host, uint16(port)).String()
	return strings.NewReplacer("NICKNAME", nickname, "ENDPOINT", endpoint, "HINT", hint,
		"NEEDED", strconv.Itoa(c.needed), "HAPPY", strconv.Itoa(c.happy), "TOTAL", strconv.Itoa(c.total),
		"FOOLSCAP", strconv.FormatBool(c.protocol == "foolscap")).Replace(text)
}

// serversYAML returns the list of storage nodes that replaces an introducer. JSON strings are valid
// YAML strings.
func (c config) serversYAML(all []announcement) string {
	var b strings.Builder
	b.WriteString("storage:\n")
	for i, a := range all {
		fmt.Fprintf(&b, "  v0-%s:\n    ann:\n      nickname: storage-%d\n      anonymous-storage-FURL: %q\n      "+
			"permutation-seed-base32: %q\n",
			a.key, i+1, a.furl, a.key)
		if c.protocol == "gbs" {
			fmt.Fprintf(&b, "      anonymous-storage-NURLs: [%q]\n", a.nurl)
		}
	}
	return b.String()
}

// configFile is the name of the configuration file in a node's directory.
const configFile = "tahoe.cfg"

// runningFile is where a running node stores its process id.
const runningFile = "running.process"

// makeDirectory makes a node's directory, like `tahoe create-node` but without its second of CPU
// time. An existing directory is kept, except for the node's old address and for the process id of a
// killed node: Tahoe would take whatever process has that id now, say after a reboot, for the node.
// Nodes started by Plimsoll do not outlive it.
func makeDirectory(ctx context.Context, dir disk.Dir, config string) error {
	return errors.Join(
		dir.Files.RemoveAll(dir.Sub(runningFile).Path),
		dir.Files.RemoveAll(dir.Sub(furlFile).Path),
		dir.Files.MkdirAll(dir.Sub("private").Path, 0o700),
		dir.Files.Write(ctx, dir.Sub("tahoe-client.tac").Path, 0o644, strings.NewReader("")),
		dir.Files.Write(ctx, dir.Sub(configFile).Path, 0o600, strings.NewReader(config)),
	)
}
