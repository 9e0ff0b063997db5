// Package deluge starts a swarm of Deluge daemons (deluged with libtorrent), one on each host,
// whose peers are named only by Plimsoll.
package deluge

import (
	"context"
	"crypto/rand"
	"crypto/sha1"
	_ "embed"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/install"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/testbed"
)

const name = "deluge"

//go:embed info.yaml
var description string

// System implements system.System.
type System struct{}

// Info implements system.System.
func (System) Info() system.Info { return system.Describe(description) }

// Check implements system.System.
func (s System) Check(ctx context.Context, opt system.Options) []system.Problem {
	_, _, _, err := versions(ctx, opt)
	return s.Info().Missing(err)
}

func versions(ctx context.Context, opt system.Options) (bin, python string, found map[string]string, err error) {
	return install.Versions(ctx, name, opt, "PLIMSOLL_DELUGE", "deluge", "libtorrent", "Twisted")
}

// Start implements system.System: it starts a daemon on each host, concurrently. They know no peers
// until Plimsoll names some.
func (s System) Start(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	opt := d.Options
	bin, python, v, err := versions(ctx, opt)
	if err != nil {
		return nil, fmt.Errorf("%w; %s", err, s.Info().Install)
	}
	identity := map[string]string{
		"version": "deluge " + v["deluge"], "binary": bin,
		"libraries": "libtorrent " + v["libtorrent"] + ", Twisted " + v["Twisted"] +
			", Python " + v["Python"],
		"peers":                          "named by us; no tracker, DHT, PEX or local discovery; private torrents",
		"ignore_limits_on_local_network": "false", "allow_multiple_connections_per_ip": "false",
		"max_failcount": "none",
	}
	for _, k := range []string{"transport", "piece", "upload_slots", "encryption", "reconnect"} {
		identity[k] = opt[k]
	}
	return kind(opt, python).Cluster(ctx, d, identity)
}

// kind returns the daemons' kind. A daemon returns the bencoded torrent of what it publishes.
func kind(opt system.Options, python string) *member.Swarm {
	token := rand.Text()
	return &member.Swarm{
		Name: name,
		Ref:  func(ref system.Ref) error { return member.Hex(name, ref, sha1.Size) },
		Command: func(ctx context.Context, n *member.Daemon) (testbed.Command, error) {
			n.Header = http.Header{"Authorization": {"Bearer " + token}}
			peers, control := netip.MustParseAddrPort(n.Config.Listen), netip.MustParseAddrPort(n.Control)
			conf := n.Dir.Sub(configDir)
			return testbed.Command{
				Args: []string{python, conf.Sub(launcherFile).Path, conf.Sub(settingsFile).Path, "-d", "-c", conf.Path,
					"-L", "warning"},
				Env: []string{"PYTHONUNBUFFERED=1"}, ReadyTimeout: readyTimeout,
			}, write(ctx, opt, n.Dir, peers, control, token)
		},
	}
}

// readyTimeout allows for daemons that start together on a busy machine: each needs about a second
// of CPU time before it listens.
const readyTimeout = 2 * time.Minute
