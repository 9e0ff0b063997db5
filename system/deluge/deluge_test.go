package deluge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
	"github.com/plimsoll-project/plimsoll/testbed"
)

func TestMain(m *testing.M) { systemtest.Main(m, System{}) }

func TestConformance(t *testing.T) {
	systemtest.RunSwarm(t, systemtest.Swarm{System: System{}, Plain: true})
}

// TestNothingLooksForPeers checks that a daemon's peers are named only by Plimsoll, whatever the
// options, and that its limits apply on every network.
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
		b, err = os.ReadFile(filepath.Join(dir, configDir, settingsFile))
		must(t, err)
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

var must = systemtest.Must

// startOn starts a swarm that is stopped at the end of the test, with its client on the last host.
func startOn(t *testing.T, hosts []testbed.Host, opt system.Options) []*member.Daemon {
	t.Helper()
	systemtest.Need(t, System{}, opt)
	var nodes []*member.Daemon
	for _, n := range systemtest.Start(t, System{}, opt, hosts).Nodes() {
		nodes = append(nodes, n.(*member.Daemon))
	}
	return nodes
}

func publish(t *testing.T, n *member.Daemon, data []byte) system.Ref {
	t.Helper()
	ref, err := n.Publish(systemtest.Context(t), "x", int64(len(data)), bytes.NewReader(data))
	must(t, err)
	return ref
}

func address(t *testing.T, n *member.Daemon) string {
	t.Helper()
	a, err := n.Address(t.Context())
	must(t, err)
	return a
}

func fetch(t *testing.T, n *member.Daemon, ref system.Ref, from ...*member.Daemon) {
	t.Helper()
	var at []string
	for _, p := range from {
		at = append(at, address(t, p))
	}
	must(t, n.Fetch(systemtest.Context(t), ref, at))
}

func fetched(t *testing.T, n *member.Daemon, ref system.Ref) system.Progress {
	t.Helper()
	f, err := n.Progress(systemtest.Context(t), ref)
	must(t, err)
	return f
}

// completes polls until n has all of ref or the limit expires.
func completes(t *testing.T, n *member.Daemon, ref system.Ref, limit time.Duration) (f system.Progress, ok bool) {
	t.Helper()
	for end := time.Now().Add(limit); !f.Complete && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		f = fetched(t, n, ref)
	}
	return f, f.Complete
}

// stored returns the path of a content's file; a node has one for each content.
func stored(t *testing.T, n *member.Daemon, ref system.Ref) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(n.Dir.Sub(dataDir).Path, string(ref)+"-*", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files of %s: %v, %v", ref, files, err)
	}
	return files[0]
}

func wantBack(t *testing.T, n *member.Daemon, ref system.Ref, data []byte) {
	t.Helper()
	var got bytes.Buffer
	if err := n.ReadBack(systemtest.Context(t), ref, &got); err != nil || !bytes.Equal(got.Bytes(), data) {
		t.Errorf("read back %s: %d bytes of %d, %v", ref, got.Len(), len(data), err)
	}
}

// TestPublishedAgainAfterRestart checks that a seeder that kept its data hashes them instead of
// storing a new copy.
func TestPublishedAgainAfterRestart(t *testing.T) {
	t.Parallel()
	n := startOn(t, systemtest.Hosts(t, 2), nil)[0]
	data := systemtest.Bytes("again", 64<<20)
	ref := publish(t, n, data)
	kept := stored(t, n, ref)
	for _, what := range []string{"restarted", "serving"} {
		if what == "restarted" {
			must(t, n.Restart(systemtest.Context(t), true))
		}
		if again := publish(t, n, data); again != ref || stored(t, n, ref) != kept {
			t.Errorf("%s: published anew as %s in %s, before as %s in %s", what, again, stored(t, n, ref), ref, kept)
		}
		if f := fetched(t, n, ref); !f.Complete {
			t.Errorf("%s: published, and it does not serve: %+v", what, f)
		}
	}
}

// TestTransportsDoNotMix checks that daemons with only uTP and daemons with only TCP do not reach
// each other, but reach daemons of their own kind.
func TestTransportsDoNotMix(t *testing.T) {
	t.Parallel()
	data := systemtest.Bytes("transports", 2<<20)
	var seeders []*member.Daemon
	hosts := systemtest.Hosts(t, 5)
	for i, transport := range []string{"tcp", "utp"} {
		nodes := startOn(t, append(hosts[2*i:2*i+2:2*i+2], hosts[4]), system.Options{"transport": transport})
		ref := publish(t, nodes[0], data)
		if i == 0 {
			seeders = append(seeders, nodes[0])
		} else {
			fetch(t, nodes[1], ref, seeders[0])
			if f, ok := completes(t, nodes[1], ref, 5*time.Second); ok || f.Peers > 0 {
				t.Errorf("fetched by uTP from a TCP peer: %+v", f)
			}
		}
		fetch(t, nodes[1], ref, nodes[0])
		if f, ok := completes(t, nodes[1], ref, time.Minute); !ok {
			t.Errorf("%s: %+v", transport, f)
		}
		wantBack(t, nodes[1], ref, data)
	}
}

// TestOnlyItsOwnAddress checks that a daemon listens only at its host's address, on the ports for
// peers (TCP and UDP) and for the API.
func TestOnlyItsOwnAddress(t *testing.T) {
	t.Parallel()
	n := startOn(t, systemtest.Hosts(t, 2), system.Options{"transport": "both"})[0]
	sockets := 0
	for _, line := range listening(t, n.Processes()[0].ID().PID) {
		if sockets++; !line.Equal(n.Host.Addr().AsSlice()) {
			t.Errorf("%s has a socket at %s, its address is %s", n.Label, line, n.Host.Addr())
		}
	}
	if sockets != 3 {
		t.Errorf("%s has %d sockets: expected are three", n.Label, sockets)
	}
}

// listening returns the addresses of a process's sockets that listen (TCP) or are bound (UDP).
func listening(t *testing.T, pid int) (all []net.IP) {
	t.Helper()
	proc, err := procfs.NewProc(pid)
	must(t, err)
	open, err := proc.FileDescriptorTargets()
	must(t, err)
	fs, err := procfs.NewFS(fmt.Sprintf("/proc/%d", pid)) // the sockets in its network namespace
	must(t, err)
	const listens = 10 // TCP state
	//lint:ignore SA1019 netlink, which replaces it, would have to enter the namespace of the process
	tcp4, err1 := fs.NetTCP()
	//lint:ignore SA1019 as above
	tcp6, err2 := fs.NetTCP6()
	udp4, err3 := fs.NetUDP()
	udp6, err4 := fs.NetUDP6()
	must(t, errors.Join(err1, err2, err3, err4))
	for _, line := range slices.Concat(tcp4, tcp6) {
		if line.St == listens && slices.Contains(open, fmt.Sprintf("socket:[%d]", line.Inode)) {
			all = append(all, line.LocalAddr)
		}
	}
	for _, line := range slices.Concat(udp4, udp6) {
		if slices.Contains(open, fmt.Sprintf("socket:[%d]", line.Inode)) {
			all = append(all, line.LocalAddr)
		}
	}
	return all
}
