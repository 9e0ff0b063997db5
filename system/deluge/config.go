package deluge

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"maps"
	"net/netip"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
)

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
	core, err := json.Marshal(s.Core)
	if err != nil {
		return err
	}
	settings, err := json.Marshal(map[string]any{
		"settings": s.Libtorrent, "host": control.Addr().String(), "port": control.Port(), "token": token,
		"data": dir.Sub(dataDir).Path, "peers": port, "piece": opt.Int("piece"),
	})
	if err != nil {
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
