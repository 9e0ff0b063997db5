package deluge

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anacrolix/torrent/metainfo"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// TestInfoHash: the hash is that which libtorrent 2.1.1 gives the same torrent.
func TestInfoHash(t *testing.T) {
	pieces, err := metainfo.GeneratePieces(bytes.NewReader(systemtest.Bytes("rec", 100_000)), 256<<10, nil)
	if err != nil {
		t.Fatal(err)
	}
	const ref = "4e4b8ec6dc5975c4b6053a2096a84b2a4c71f08b"
	made, err := newTorrent(metainfo.Info{Name: "x", Length: 100_000, PieceLength: 256 << 10, Pieces: pieces})
	if err != nil || made.ref != ref {
		t.Errorf("info hash %s, want %s (%v)", made.ref, ref, err)
	}
}

func TestRefs(t *testing.T) {
	for _, ref := range []system.Ref{"", "x", "4E4B8EC6DC5975C4B6053A2096A84B2A4C71F08B",
		"4e4b8ec6dc5975c4b6053a2096a84b2a4c71f0", "../../4e4b8ec6dc5975c4b6053a2096a84b2a4c71f08b"} {
		if err := parseRef(ref); !errors.Is(err, system.ErrBadRef) {
			t.Errorf("%q: %v", ref, err)
		}
	}
	for _, a := range []string{"", "x", "10.0.0.1", "10.0.0.1:0", "name:1", "10.0.0.1:99999"} {
		if _, err := parsePeers([]string{a}); err == nil {
			t.Errorf("%q is taken for a peer's address", a)
		}
	}
	if p, err := parsePeers([]string{"[fd77::1]:6881"}); err != nil || p[0].Port() != 6881 {
		t.Errorf("IPv6: %v, %v", p, err)
	}
}

func TestOptions(t *testing.T) {
	for name, bad := range map[string][]string{
		"piece": {"0", "1000", "262145", "33554432", "x"}, "upload_slots": {"-1", "x"}, "reconnect": {"0s", "1ms", "x",
			"100h"},
	} {
		for _, v := range bad {
			full, err := System{}.Info().Fill(system.Options{name: v})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := parseConfig(full); err == nil || !strings.HasPrefix(err.Error(), "deluge: ") ||
				!strings.Contains(err.Error(), name) {
				t.Errorf("%s %q: %v", name, v, err)
			}
		}
	}
}

// TestNothingLooksForPeers: whatever the options, we alone name its peers to a daemon, and its limits hold on every
// network.
func TestNothingLooksForPeers(t *testing.T) {
	for _, transport := range []string{"tcp", "utp", "both"} {
		full, err := System{}.Info().Fill(system.Options{"transport": transport, "upload_slots": "4"})
		if err != nil {
			t.Fatal(err)
		}
		c, err := parseConfig(full)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := c.write(t.Context(), disk.Dir{Files: testbed.LocalFiles{}, Path: dir}, netip.MustParseAddr("fd77::1"),
			6881, "[fd77::1]:1234", "secret"); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(dir, coreFile))
		if err != nil {
			t.Fatal(err)
		}
		d := json.NewDecoder(bytes.NewReader(b))
		var version, core map[string]any
		var launch struct{ Settings map[string]any }
		if err := errors.Join(d.Decode(&version), d.Decode(&core)); err != nil || version["file"] != 1.0 {
			t.Fatalf("core.conf: %v, %v", version, err)
		}
		if b, err = os.ReadFile(filepath.Join(dir, settingsFile)); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, &launch); err != nil {
			t.Fatal(err)
		}
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

func TestInterpreter(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"#!/opt/venv/bin/python\nimport x\n": "/opt/venv/bin/python", "#!/usr/bin/python3 \n": "/usr/bin/python3",
		"#!/bin/sh\n": "", "\x7fELF": "", "": "", "#!/usr/bin/env python3\n": "",
	} {
		path := filepath.Join(dir, "deluged")
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		if p, _ := locate(t.Context(), system.Options{"binary": path}); p.python != want {
			t.Errorf("%q: %q", text, p.python)
		}
	}
}

// TestMissingProgram: what is not there is named, with the way to get it.
func TestMissingProgram(t *testing.T) {
	problems := system.Check(t.Context(), System{}, system.Options{"binary": "/nowhere/deluged"})
	if len(problems) != 1 || !strings.Contains(problems[0].What, "/nowhere/deluged") ||
		!strings.Contains(problems[0].Hint, "systems install deluge") {
		t.Errorf("%+v", problems)
	}
	if problems := system.Check(t.Context(), System{}, system.Options{"transport": "pigeon"}); len(problems) != 1 ||
		!strings.Contains(problems[0].What, "pigeon") {
		t.Errorf("%+v", problems)
	}
}
