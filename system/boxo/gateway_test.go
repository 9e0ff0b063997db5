package boxo

import (
	"bytes"
	"io"
	"strings"
	"testing"

	blocks "github.com/ipfs/go-block-format"
	"github.com/ipld/go-car/v2"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

func startNode(t *testing.T, opt system.Options) *gatewayNode {
	t.Helper()
	hosts := systemtest.Hosts(t, 2)
	c, err := system.Begin(systemtest.Context(t), System{}, system.Start, system.Deployment{Hosts: hosts[:1],
		Client: hosts[1], Dir: t.TempDir(), Options: opt})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Stop(t.Context()) })
	return c.Nodes()[0].(*gatewayNode)
}

func add(t *testing.T, n *gatewayNode, data []byte) system.Ref {
	t.Helper()
	ref, err := n.Put(systemtest.Context(t), "x", int64(len(data)), bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// TestCIDs pins what `ipfs add` gives with the same settings, so that objects
// have the same names in every run and on other implementations.
func TestCIDs(t *testing.T) {
	for _, c := range []struct {
		opt  system.Options
		data string
		want system.Ref
	}{
		// --cid-version=1
		{nil, "hello world\n", "bafkreifjjcie6lypi6ny7amxnfftagclbuxndqonfipmb64f2km2devei4"},
		// no flags
		{system.Options{"cid_version": "0", "raw_leaves": "false"}, "hello world\n",
			"QmT78zSuBmuS4z925WZfrqQ1qHaJ56DQaTfyMUF7F8ff5o"},
	} {
		if got := add(t, startNode(t, c.opt), []byte(c.data)); got != c.want {
			t.Errorf("options %v: %s, want %s", c.opt, got, c.want)
		}
	}
}

// TestFormats checks the blocks of what the gateway gives, never the status alone.
func TestFormats(t *testing.T) {
	data := systemtest.Bytes("formats", 1_000_000) // four leaves
	car1 := func(t *testing.T, b []byte) map[string]blocks.Block {
		t.Helper()
		r, err := car.NewBlockReader(bytes.NewReader(b)) // checks every hash
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]blocks.Block{}
		for {
			block, err := r.Next()
			if err == io.EOF {
				return all
			}
			if err != nil {
				t.Fatal(err)
			}
			all[block.Cid().String()] = block
		}
	}
	t.Run("car", func(t *testing.T) {
		n := startNode(t, system.Options{"format": "car"})
		ref := add(t, n, data)
		target, err := n.Target(ref)
		if err != nil || target.Encoded != "car" {
			t.Fatalf("target %+v, %v", target, err)
		}
		status, body, _ := systemtest.Fetch(t, target, "")
		all := car1(t, body)
		if status != 200 || len(all) != 5 || all[string(ref)] == nil {
			t.Errorf("status %d, %d blocks", status, len(all))
		}
		// A reference copy is only of use when the answer is the same each time.
		if _, again, _ := systemtest.Fetch(t, target, ""); !bytes.Equal(again, body) {
			t.Error("the same CAR is not the same bytes")
		}
		// A part of the file: whole blocks, and the root.
		target.URL.RawQuery = "format=car&dag-scope=entity&entity-bytes=300000:300001"
		if _, body, _ := systemtest.Fetch(t, target, ""); len(car1(t, body)) != 2 {
			t.Errorf("entity-bytes: %d blocks", len(car1(t, body)))
		}
		// What Get gives is the object all the same.
		var got bytes.Buffer
		if err := n.Get(t.Context(), ref, &got); err != nil || !bytes.Equal(got.Bytes(), data) {
			t.Errorf("get: %d bytes, %v", got.Len(), err)
		}
	})
	t.Run("raw", func(t *testing.T) {
		n := startNode(t, system.Options{"format": "raw"})
		small := data[:100_000] // one block: the root block is the object
		target, err := n.Target(add(t, n, small))
		if err != nil || target.Encoded != "raw" {
			t.Fatalf("target %+v, %v", target, err)
		}
		if status, body, _ := systemtest.Fetch(t, target, ""); status != 200 || !bytes.Equal(body, small) {
			t.Errorf("status %d, %d bytes", status, len(body))
		}
	})
}

func TestBadOptions(t *testing.T) {
	hosts := systemtest.Hosts(t, 2)
	for want, opt := range map[string]system.Options{
		`"chunk" is from 1 B to 1 MiB`: {"chunk": "2097152"},
		"one of file, raw, car":        {"format": "tar"},
		"one of 0, 1":                  {"cid_version": "2"},
		"unknown option":               {"chunker": "1"},
	} {
		_, err := system.Begin(t.Context(), System{}, system.Start, system.Deployment{Hosts: hosts[:1],
			Client: hosts[1], Dir: t.TempDir(), Options: opt})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("options %v: %v, want %q", opt, err, want)
		}
	}
}
