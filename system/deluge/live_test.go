package deluge

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
	"github.com/plimsoll-project/plimsoll/testbed"
)

var must = systemtest.Must

// startOn starts a swarm that ends with the test, its client on the last host.
func startOn(t *testing.T, hosts []testbed.Host, opt system.Options) []*member.Daemon {
	t.Helper()
	systemtest.Need(t, name, system.Check(t.Context(), System{}, opt))
	last := len(hosts) - 1
	c, err := system.Begin(systemtest.Context(t), System{}, system.Start, system.Deployment{Hosts: hosts[:last],
		Client: hosts[last], Dir: t.TempDir(), Options: opt})
	must(t, err)
	systemtest.StopAtEnd(t, c)
	var nodes []*member.Daemon
	for _, n := range c.Nodes() {
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

// completes polls until n has all of ref, or the limit passes.
func completes(t *testing.T, n *member.Daemon, ref system.Ref, limit time.Duration) (f system.Progress, ok bool) {
	t.Helper()
	for end := time.Now().Add(limit); !f.Complete && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		f = fetched(t, n, ref)
	}
	return f, f.Complete
}

// stored is the file of a content, of which a node has one.
func stored(t *testing.T, n *member.Daemon, ref system.Ref) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(n.Dir().Sub(dataDir).Path, string(ref)+"-*", "*"))
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

// TestWrongBytesAreFound: a daemon claims what it is said to have without a
// look; reading back shows it, and no leecher ever takes it.
func TestWrongBytesAreFound(t *testing.T) {
	t.Parallel()
	nodes := startOn(t, systemtest.Hosts(t, 3), nil)
	data := systemtest.Bytes("wrong", 1<<20)
	ref := publish(t, nodes[0], data)
	wrong := bytes.Clone(data)
	slices.Reverse(wrong[700_000:700_100])
	must(t, os.WriteFile(stored(t, nodes[0], ref), wrong, 0o644))
	if f := fetched(t, nodes[0], ref); !f.Complete || f.Verified != 1<<20 {
		t.Errorf("the seeder has noticed without a look: %+v", f)
	}
	var got bytes.Buffer
	if err := nodes[0].ReadBack(systemtest.Context(t), ref, &got); err != nil || !bytes.Equal(got.Bytes(), wrong) {
		t.Errorf("read back is not what is on disk: %d bytes, %v", got.Len(), err)
	}
	fetch(t, nodes[1], ref, nodes[0])
	for end := time.Now().Add(time.Minute); fetched(t, nodes[1], ref).Received == 0 && time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond)
	}
	f, ok := completes(t, nodes[1], ref, 4*time.Second)
	if ok || f.Verified > 3<<18 {
		t.Errorf("a leecher is content with wrong bytes: %+v", f)
	}
	if f.Received == 0 {
		t.Errorf("the leecher received %d bytes: the case shows nothing", f.Received)
	}
}

// TestPublishedAgainAfterRestart: a seeder that kept its data hashes that, and takes no
// new copy.
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

// TestTransportsDoNotMix: what speaks uTP alone is not reached by what speaks TCP
// alone, and each of them among its own.
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

// TestOnlyItsOwnAddress: a daemon listens nowhere but at its host's address, on
// the port of the peers and that of the API.
func TestOnlyItsOwnAddress(t *testing.T) {
	t.Parallel()
	nodes := startOn(t, systemtest.Hosts(t, 3), system.Options{"transport": "both"})
	for _, n := range nodes {
		sockets := listening(t, n.Processes()[0].ID().PID)
		for _, at := range sockets {
			if !strings.HasPrefix(at, n.Host.Addr().String()+":") {
				t.Errorf("%s has a socket at %s, its address is %s", n.Label, at, n.Host.Addr())
			}
		}
		if len(sockets) != 3 { // peers TCP and UDP, the API
			t.Errorf("%s has the sockets %v: expected are three", n.Label, sockets)
		}
	}
}
