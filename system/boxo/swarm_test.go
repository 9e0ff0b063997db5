package boxo

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
	"github.com/plimsoll-project/plimsoll/testbed"
)

func startSwarmNode(t *testing.T, hosts []testbed.Host) *swarmNode {
	t.Helper()
	c, err := System{}.Start(systemtest.Context(t), system.Deployment{Hosts: hosts[:1], Client: hosts[1], Dir: t.TempDir(), Options: system.Options{"via": "swarm"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Stop(context.Background()) })
	return c.Nodes()[0].(*swarmNode)
}

func seed(t *testing.T, n *swarmNode, data []byte) system.Ref {
	t.Helper()
	ref, err := n.Seed(systemtest.Context(t), "x", int64(len(data)), bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// fetched is how many blocks the client's node keeps that it did not import.
func fetched(t *testing.T, n *swarmNode) int {
	t.Helper()
	files, err := os.ReadDir(n.near)
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

// held is what both nodes keep, in bytes.
func held(t *testing.T, n *swarmNode) int64 {
	t.Helper()
	h, err := n.Stats(systemtest.Context(t))
	if err != nil {
		t.Fatal(err)
	}
	return h.Absolute
}

// TestSwarmMovesBlocks looks at what the client's node keeps: what was fetched
// over the swarm is there and nothing else, until it is made to forget.
func TestSwarmMovesBlocks(t *testing.T) {
	n := startSwarmNode(t, systemtest.Hosts(t, 2))
	if err := n.Cool(systemtest.Context(t), n.probe); err != nil {
		t.Fatal(err)
	}
	data := systemtest.Bytes("swarm", 10<<18) // 10 leaves and a root
	ref := seed(t, n, data)
	want := func(after string, blocks int) {
		t.Helper()
		if got := fetched(t, n); got != blocks {
			t.Errorf("after %s the client's node keeps %d fetched blocks, want %d", after, got, blocks)
		}
	}
	want("seed", 0)
	before := held(t, n)
	var got bytes.Buffer
	if err := n.Get(systemtest.Context(t), ref, &got); err != nil || !bytes.Equal(got.Bytes(), data) {
		t.Fatalf("get: %d bytes, %v", got.Len(), err)
	}
	want("get", 11)
	if err := n.Cool(systemtest.Context(t), ref); err != nil {
		t.Fatal(err)
	}
	want("cool", 0)
	got.Reset()
	if err := n.GetRange(systemtest.Context(t), ref, 10<<18-100, 100, &got); err != nil || !bytes.Equal(got.Bytes(), data[10<<18-100:]) {
		t.Fatalf("range: %d bytes, %v", got.Len(), err)
	}
	want("a range in the last leaf", 2)
	if after := held(t, n); after != before {
		t.Errorf("the nodes held %d bytes before reads, and hold %d after them: what was fetched is no holding", before, after)
	}

	own, err := n.Put(systemtest.Context(t), "y", 1000, systemtest.Content("own", 1000))
	if err != nil {
		t.Fatal(err)
	}
	want("put", 2)
	if grown := held(t, n) - before; grown < 1000 {
		t.Errorf("a put of 1000 bytes made the nodes hold %d more", grown)
	}
	if err := n.Get(systemtest.Context(t), own, io.Discard); err != nil {
		t.Error(err)
	}
	want("get of what was put", 2)
	// What was put at the client is not at the storage node; once it is there
	// too, the client's node goes on answering from what it imported.
	if err := n.Cool(systemtest.Context(t), own); !errors.Is(err, system.ErrNotFound) {
		t.Errorf("cool of what only the client has: %v, want ErrNotFound", err)
	}
	if again := seed(t, n, systemtest.Bytes("own", 1000)); again != own {
		t.Fatalf("seeded as %s, put as %s", again, own)
	}
	if err := n.Cool(systemtest.Context(t), own); !errors.Is(err, system.ErrWarm) {
		t.Errorf("cool of what was put: %v, want ErrWarm", err)
	}
}

func TestSwarmTellsAnUnknownBlock(t *testing.T) {
	n := startSwarmNode(t, systemtest.Hosts(t, 2))
	for _, ref := range truths.Unknown {
		from := time.Now()
		if err := n.Get(systemtest.Context(t), ref, io.Discard); !errors.Is(err, system.ErrNotFound) {
			t.Errorf("%s: %v", ref, err)
		}
		if took := time.Since(from); took > 10*time.Second {
			t.Errorf("took %v: it searches on", took)
		}
	}
	// A No is of its moment: what is stored after it is found.
	data := systemtest.Bytes("later", 1000)
	other := startNode(t, nil)
	ref := add(t, other, data) // the same name everywhere
	if err := n.Get(systemtest.Context(t), ref, io.Discard); !errors.Is(err, system.ErrNotFound) {
		t.Errorf("before it is stored: %v", err)
	}
	if seed(t, n, data) != ref {
		t.Fatal("two nodes name the same content differently")
	}
	if err := n.Get(systemtest.Context(t), ref, io.Discard); err != nil {
		t.Errorf("after it is stored: %v", err)
	}
}

// TestSwarmStorageKilled: the client's node lives on and says what is missing.
func TestSwarmStorageKilled(t *testing.T) {
	n := startSwarmNode(t, systemtest.Hosts(t, 2))
	ref := seed(t, n, systemtest.Bytes("killed", 32<<20))
	w := &killer{kill: func() { n.storage.proc.Stop(context.Background()) }}
	from := time.Now()
	if err := n.Get(systemtest.Context(t), ref, w); err == nil {
		t.Error("get from a storage node that was killed meanwhile: no error")
	}
	err := n.Get(systemtest.Context(t), truths.Unknown[0], io.Discard)
	if err == nil || errors.Is(err, system.ErrNotFound) || !strings.Contains(err.Error(), errLost.Error()) {
		t.Errorf("get without a storage node: %v, want %q", err, errLost)
	}
	if took := time.Since(from); took > 4*reconnect {
		t.Errorf("took %v to be told", took)
	}
	if err := n.Health(systemtest.Context(t)); err == nil || !strings.Contains(err.Error(), "storage-1") {
		t.Errorf("health: %v, want the name of the process that ended", err)
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

// TestSwarmInNamespaces: nothing but the hosts' own functions reaches a node,
// and over IPv6.
func TestSwarmInNamespaces(t *testing.T) {
	n := startSwarmNode(t, systemtest.HostsOf(t, testbed.Options{IPv6: true}, 2))
	data := systemtest.Bytes("namespaces", 3<<20)
	ref := seed(t, n, data)
	var got bytes.Buffer
	if err := n.Get(systemtest.Context(t), ref, &got); err != nil || !bytes.Equal(got.Bytes(), data) {
		t.Errorf("get: %d bytes, %v", got.Len(), err)
	}
	if err := n.Cool(systemtest.Context(t), ref); err != nil {
		t.Error(err)
	}
}

// TestForgetKeepsWhatWasImported: the check looks at every block, not at the root.
func TestForgetKeepsWhatWasImported(t *testing.T) {
	n := startSwarmNode(t, systemtest.Hosts(t, 2))
	shared := systemtest.Bytes("shared", 1<<18) // one leaf
	if _, err := n.Put(systemtest.Context(t), "x", 1<<18, bytes.NewReader(shared)); err != nil {
		t.Fatal(err)
	}
	ref := seed(t, n, append(shared, "and more"...))
	if err := n.Get(systemtest.Context(t), ref, io.Discard); err != nil {
		t.Fatal(err)
	}
	if err := n.Cool(systemtest.Context(t), ref); !errors.Is(err, system.ErrWarm) {
		t.Errorf("cool of an object with a leaf that was put here: %v, want ErrWarm", err)
	}
}
