package boxo

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
	"github.com/plimsoll-project/plimsoll/testbed"
)

func startPairNode(t *testing.T, hosts []testbed.Host) *pairNode {
	t.Helper()
	c, err := System{}.Start(systemtest.Context(t), system.Deployment{Hosts: hosts[:1], Client: hosts[1], Dir: t.TempDir(), Options: system.Options{"via": "swarm"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Stop(context.Background()) })
	return c.Nodes()[0].(*pairNode)
}

func seed(t *testing.T, n *pairNode, data []byte) system.Ref {
	t.Helper()
	ref, err := n.Seed(systemtest.Context(t), "x", int64(len(data)), bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// sent is how many bytes of blocks the storage node has sent.
func sent(t *testing.T, n *pairNode) int64 {
	t.Helper()
	f, err := n.storage.Progress(systemtest.Context(t), n.probe)
	if err != nil {
		t.Fatal(err)
	}
	return f.Sent
}

// TestPairReadsOverTheSwarm: every read of what the client's node did not import comes
// from the storage node, also where another import has blocks of it, in namespaces and
// over IPv6.
func TestPairReadsOverTheSwarm(t *testing.T) {
	n := startPairNode(t, systemtest.HostsOf(t, testbed.Options{IPv6: true}, 2))
	shared := systemtest.Bytes("shared", 1<<18) // one leaf
	own, err := n.Put(systemtest.Context(t), "x", 1<<18, bytes.NewReader(shared))
	if err != nil {
		t.Fatal(err)
	}
	data := append(shared, systemtest.Bytes("more", 9<<18)...)
	ref := seed(t, n, data)
	h, err := n.Stats(systemtest.Context(t))
	if err != nil {
		t.Fatal(err)
	}
	read := func(what string, ref system.Ref, off, count int64, want []byte, least, most int64) {
		t.Helper()
		before := sent(t, n)
		var got bytes.Buffer
		err := n.GetRange(systemtest.Context(t), ref, off, count, &got)
		if err != nil || !bytes.Equal(got.Bytes(), want) {
			t.Fatalf("%s: %d bytes, %v", what, got.Len(), err)
		}
		if moved := sent(t, n) - before; moved < least || moved > most {
			t.Errorf("%s: the storage node sent %d bytes, want %d to %d", what, moved, least, most)
		}
	}
	all := int64(len(data))
	read("a read", ref, 0, all, data, all, all+2048)
	read("another", ref, 0, all, data, all, all+2048)
	read("the last bytes", ref, all-100, 100, data[all-100:], 1<<18, 1<<18+2048)
	read("what was put", own, 0, 1<<18, shared, 0, 0)
	if after, err := n.Stats(systemtest.Context(t)); err != nil || after.Absolute != h.Absolute {
		t.Errorf("the nodes held %d bytes before the reads, and hold %d (%v)", h.Absolute, after.Absolute, err)
	}
	if err := n.Cool(systemtest.Context(t), own); !errors.Is(err, system.ErrNotFound) {
		t.Errorf("cool of what only the client has: %v, want ErrNotFound", err)
	}
	seed(t, n, shared)
	if err := n.Cool(systemtest.Context(t), own); err != nil {
		t.Fatal(err)
	}
	read("what was put and cooled", own, 0, 1<<18, shared, 1<<18, 1<<18+2048)
}

// TestStatsCountBlocks: and no task of ours. Two leaves that are roots, at either node.
func TestStatsCountBlocks(t *testing.T) {
	n := startPairNode(t, systemtest.Hosts(t, 2))
	if _, err := n.Put(systemtest.Context(t), "x", 1000, systemtest.Content("put", 1000)); err != nil {
		t.Fatal(err)
	}
	seed(t, n, systemtest.Bytes("seed", 500))
	h, err := n.Stats(systemtest.Context(t))
	if want := int64(1500 + len(disk.ProbeContent)); err != nil || h.Absolute != want || h.Entries != 3 {
		t.Errorf("%+v, %v; want %d bytes in 3 blocks", h, err, want)
	}
}

// TestStorageKilled: a read ends with the storage node, and says so.
func TestStorageKilled(t *testing.T) {
	n := startPairNode(t, systemtest.Hosts(t, 2))
	ref := seed(t, n, systemtest.Bytes("killed", 32<<20))
	w := &killer{kill: func() { n.storage.Kill(context.Background()) }}
	for what, err := range map[string]error{
		"get":    n.Get(systemtest.Context(t), ref, w),
		"again":  n.Get(systemtest.Context(t), ref, io.Discard),
		"health": n.Health(systemtest.Context(t)),
	} {
		if err == nil || errors.Is(err, system.ErrNotFound) || !strings.Contains(err.Error(), "storage-1") {
			t.Errorf("%s: %v, want the name of the process that ended", what, err)
		}
	}
}

type killer struct{ kill func() }

func (k *killer) Write(p []byte) (int, error) {
	if k.kill != nil {
		k.kill()
		k.kill = nil
	}
	return len(p), nil
}
