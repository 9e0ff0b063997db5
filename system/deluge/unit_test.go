package deluge

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// TestNothingLooksForPeers: whatever the options, we alone name its peers to a daemon, and its limits hold on every
// network.
func TestNothingLooksForPeers(t *testing.T) {
	for _, transport := range []string{"tcp", "utp", "both"} {
		full, err := System{}.Info().Fill(system.Options{"transport": transport, "upload_slots": "4"})
		must(t, err)
		dir := t.TempDir()
		must(t, write(t.Context(), full, disk.Dir{Files: testbed.LocalFiles{}, Path: dir},
			netip.MustParseAddrPort("[fd77::1]:6881"), netip.MustParseAddrPort("[fd77::1]:1234"), "secret"))
		b, err := os.ReadFile(filepath.Join(dir, configDir, coreFile))
		must(t, err)
		d := json.NewDecoder(bytes.NewReader(b))
		var version, core map[string]any
		var launch struct{ Settings map[string]any }
		if err := errors.Join(d.Decode(&version), d.Decode(&core)); err != nil || version["file"] != 1.0 {
			t.Fatalf("core.conf: %v, %v", version, err)
		}
		if b, err = os.ReadFile(filepath.Join(dir, configDir, settingsFile)); err != nil {
			t.Fatal(err)
		}
		must(t, json.Unmarshal(b, &launch))
		for _, key := range []string{"dht", "upnp", "natpmp", "lsd", "utpex", "new_release_check", "send_info",
			"ignore_limits_on_local_network", "random_port"} {
			if core[key] != false {
				t.Errorf("core.conf: %s is %v", key, core[key])
			}
		}
		for key, want := range map[string]any{
			"enable_dht": false, "enable_lsd": false, "enable_upnp": false, "enable_natpmp": false,
			"dht_bootstrap_nodes": "",
			"listen_interfaces":   "[fd77::1]:6881", "outgoing_interfaces": "fd77::1",
			"enable_outgoing_tcp": transport != "utp", "enable_incoming_tcp": transport != "utp",
			"enable_outgoing_utp": transport != "tcp", "enable_incoming_utp": transport != "tcp",
		} {
			if launch.Settings[key] != want {
				t.Errorf("%s: libtorrent's %s is %v, want %v", transport, key, launch.Settings[key], want)
			}
		}
		if core["max_upload_slots_global"] != 4.0 || core["listen_interface"] != "[fd77::1]" {
			t.Errorf("core.conf: %v", core)
		}
	}
}
