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

// settings are core.conf, what Deluge sets itself and would overwrite, and libtorrent's, for launch.py.
//
//go:embed settings.yaml
var settings string

// configure gives the settings of the file, and what follows from the options and the address.
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
	slots := cmp.Or(opt.Int("upload_slots"), -1) // no limit, as Deluge and libtorrent have it
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

// write makes a daemon's directories, in dir. The daemon's own notes are removed, above all
// its resume data: a file may have changed since they were taken. peers is where it takes them, control where the
// API is.
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
		// Two JSON values: the file's version, then its content.
		put(coreFile, append([]byte(`{"file": 1, "format": 1}`), core...)),
		put(launcherFile, launcher),
		put(settingsFile, settings),
	)
}
