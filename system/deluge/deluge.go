// Package deluge starts a swarm of Deluge daemons (deluged with libtorrent), one on each host,
// whose peers are named only by Plimsoll.
package deluge

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha1"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/install"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
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
			peers, control := netip.MustParseAddrPort(n.Listen), netip.MustParseAddrPort(n.Control)
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

// settings contains core.conf, for the libtorrent settings that Deluge sets itself and would
// overwrite, and libtorrent's other settings for launch.py.
//
//go:embed settings.yaml
var settings string

// configure returns the settings in the file, completed by the options and the address.
func configure(opt system.Options, addr netip.Addr, port int) (s struct{ Core, Libtorrent map[string]any }, err error) {
	if err := yaml.Unmarshal([]byte(settings), &s); err != nil {
		return s, err
	}
	listen := addr.String()
	if addr.Is6() {
		listen = "[" + listen + "]" // Deluge adds a colon and the port
	}
	policy := 2 // disabled
	if opt["encryption"] == "prefer" {
		policy = 1 // enabled
	}
	slots := cmp.Or(opt.Int("upload_slots"), -1) // no limit, in the notation of Deluge and libtorrent
	maps.Copy(s.Core, map[string]any{
		"listen_interface": listen, "outgoing_interface": addr.String(), "listen_ports": []int{port, port},
		"max_upload_slots_global": slots, "enc_in_policy": policy, "enc_out_policy": policy,
	})
	tcp, utp := opt["transport"] != "utp", opt["transport"] != "tcp"
	maps.Copy(s.Libtorrent, map[string]any{
		"listen_interfaces": netip.AddrPortFrom(addr, uint16(port)).String(), "outgoing_interfaces": addr.String(),
		"enable_outgoing_tcp": tcp, "enable_incoming_tcp": tcp, "enable_outgoing_utp": utp, "enable_incoming_utp": utp,
		"min_reconnect_time": int(opt.Duration("reconnect") / time.Second),
	})
	return s, nil
}

//go:embed launch.py
var launcher []byte

const (
	configDir    = "config"
	dataDir      = "data"
	coreFile     = "core.conf"
	launcherFile = "launch.py"
	settingsFile = "settings.json"
)

// write creates a daemon's directories in dir. It removes the daemon's own state, above all its
// resume data, because files may have changed since. peers is the address for peers, control that
// of the API.
func write(ctx context.Context, opt system.Options, dir disk.Dir, peers, control netip.AddrPort, token string) error {
	port := int(peers.Port())
	s, err := configure(opt, peers.Addr(), port)
	if err != nil {
		return err
	}
	core, failed := json.Marshal(s.Core)
	settings, err := json.Marshal(map[string]any{
		"settings": s.Libtorrent, "host": control.Addr().String(), "port": control.Port(), "token": token,
		"data": dir.Sub(dataDir).Path, "peers": port, "piece": opt.Int("piece"),
	})
	if err = errors.Join(failed, err); err != nil {
		return err
	}
	conf := dir.Sub(configDir)
	put := func(name string, b []byte) error {
		return dir.Files.Write(ctx, conf.Sub(name).Path, 0o600, bytes.NewReader(b))
	}
	return errors.Join(
		dir.Files.RemoveAll(conf.Path),
		dir.Files.MkdirAll(dir.Sub(dataDir).Path, 0o755),
		// The file has two JSON values: its version, then its content.
		put(coreFile, append([]byte(`{"file": 1, "format": 1}`), core...)),
		put(launcherFile, launcher),
		put(settingsFile, settings),
	)
}
