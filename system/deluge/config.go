package deluge

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"net/netip"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
)

// config is what the options say.
type config struct {
	transport  string
	piece      int64
	slots      int64 // 0: no limit
	encryption bool
	reconnect  time.Duration
}

func configOf(opt system.Options) config {
	c := config{transport: opt["transport"], encryption: opt["encryption"] == "prefer"}
	c.piece, _ = opt.Int("piece")
	c.slots, _ = opt.Int("upload_slots")
	c.reconnect, _ = opt.Duration("reconnect")
	return c
}

// core is core.conf: what Deluge sets itself, and would overwrite.
func (c config) core(addr netip.Addr, port int) map[string]any {
	listen := addr.String()
	if addr.Is6() {
		listen = "[" + listen + "]" // Deluge adds a colon and the port
	}
	policy := 2 // disabled
	if c.encryption {
		policy = 1 // enabled
	}
	slots := c.slots
	if slots == 0 {
		slots = -1 // no limit, as Deluge and libtorrent have it
	}
	return map[string]any{
		"listen_interface": listen, "outgoing_interface": addr.String(),
		"listen_ports": []int{port, port}, "random_port": false, "listen_use_sys_port": false,
		"dht": false, "upnp": false, "natpmp": false, "lsd": false, "utpex": false,
		"new_release_check": false, "send_info": false, "enabled_plugins": []string{},
		"ignore_limits_on_local_network": false, // else the slots would not hold for private addresses
		"max_upload_slots_global":        slots, "max_connections_global": -1,
		"max_active_seeding": -1, "max_active_downloading": -1, "max_active_limit": -1,
		"stop_seed_at_ratio": false, "auto_managed": false, "pre_allocate_storage": false,
		"enc_in_policy": policy, "enc_out_policy": policy,
	}
}

// settings are libtorrent's, for launch.py.
func (c config) settings(addr netip.Addr, port int) map[string]any {
	tcp, utp := c.transport != "utp", c.transport != "tcp"
	return map[string]any{
		"listen_interfaces": netip.AddrPortFrom(addr, uint16(port)).String(), "outgoing_interfaces": addr.String(),
		"listen_system_port_fallback": false,
		"enable_ip_notifier":          false, // it would listen anew
		"enable_dht":                  false, "enable_lsd": false, "enable_upnp": false, "enable_natpmp": false,
		"dht_bootstrap_nodes": "",
		"enable_outgoing_tcp": tcp, "enable_incoming_tcp": tcp,
		"enable_outgoing_utp": utp, "enable_incoming_utp": utp,
		// Every peer has an address of its own.
		"allow_multiple_connections_per_ip": false,
		// No tracker would name again a peer that was given up.
		"min_reconnect_time": int(c.reconnect / time.Second), "max_failcount": 1 << 20,
	}
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
func (c config) write(ctx context.Context, dir disk.Dir, peers, control netip.AddrPort, token string) error {
	addr, port := peers.Addr(), int(peers.Port())
	core, err := json.Marshal(c.core(addr, port))
	if err != nil {
		return err
	}
	settings, err := json.Marshal(map[string]any{
		"settings": c.settings(addr, port), "host": control.Addr().String(), "port": control.Port(), "token": token,
		"data": dir.Sub(dataDir).Path, "peers": port, "piece": c.piece,
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
