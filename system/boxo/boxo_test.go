package boxo

import (
	"bytes"
	"io"
	"testing"
	"time"

	blocks "github.com/ipfs/go-block-format"
	"github.com/ipld/go-car/v2"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

func TestMain(m *testing.M) { systemtest.Main(m, System{}) }

var truths = systemtest.Truths{
	ContentAddressed: true,
	Unknown: []system.Ref{
		"bafkreifzjut3te7nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e", // a leaf
		"bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi", // a node
	},
}

func TestConformance(t *testing.T) {
	truths := truths
	truths.Without = []string{"spread", "restart"}
	systemtest.Run(t, systemtest.Suite{System: System{}, Truths: truths})
}

func TestSwarm(t *testing.T) {
	for name, opt := range map[string]system.Options{"defaults": nil, "small blocks": {"chunk": "65536"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			systemtest.RunSwarm(t, systemtest.Swarm{System: System{}, Options: opt, Brief: opt != nil, Plain: true})
		})
	}
}

// TestPassedOnMidway checks that, in a chain, the last node gets blocks from a node that is not
// complete.
func TestPassedOnMidway(t *testing.T) {
	const size = 12 << 20
	hosts, _ := systemtest.SlowHosts(t, 16e6, 4)
	var nodes [3]*member.Daemon
	for i, n := range systemtest.Start(t, System{}, nil, hosts).Nodes() {
		nodes[i] = n.(*member.Daemon)
	}
	ref, err := nodes[0].Publish(systemtest.Context(t), "chain", size, systemtest.Content("chain", size))
	must(t, err)
	for i, n := range nodes[1:] {
		from, err := nodes[i].Address(systemtest.Context(t))
		if err == nil {
			err = n.Fetch(systemtest.Context(t), ref, []string{from})
		}
		must(t, err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		last, err := nodes[2].Progress(systemtest.Context(t), ref)
		must(t, err)
		middle, err := nodes[1].Progress(systemtest.Context(t), ref)
		must(t, err)
		if last.Verified > 0 && !middle.Complete { // middle was polled later
			t.Logf("%+v, after %+v", last, middle)
			return
		}
		if middle.Complete || time.Now().After(end) {
			t.Fatalf("nothing was passed on midway: %+v, after %+v", last, middle)
		}
	}
}

var must = systemtest.Must

func startNode(t *testing.T, opt system.Options) *gatewayNode {
	t.Helper()
	return systemtest.Start(t, System{}, opt, systemtest.Hosts(t, 2)).Nodes()[0].(*gatewayNode)
}

func add(t *testing.T, n *gatewayNode, data []byte) system.Ref {
	t.Helper()
	ref, err := n.Put(systemtest.Context(t), "x", int64(len(data)), bytes.NewReader(data))
	must(t, err)
	return ref
}

// TestCIDs checks the CIDs of `ipfs add --cid-version=1`, so that objects have the same names in
// every run and in other implementations.
func TestCIDs(t *testing.T) {
	const want = "bafkreifjjcie6lypi6ny7amxnfftagclbuxndqonfipmb64f2km2devei4"
	if got := add(t, startNode(t, nil), []byte("hello world\n")); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestFormats verifies the blocks of the gateway's answers, not just the status.
func TestFormats(t *testing.T) {
	data := systemtest.Bytes("formats", 1_000_000) // four leaves
	car1 := func(t *testing.T, b []byte) map[string]blocks.Block {
		t.Helper()
		r, err := car.NewBlockReader(bytes.NewReader(b)) // verifies every hash
		must(t, err)
		all := map[string]blocks.Block{}
		for {
			block, err := r.Next()
			if err == io.EOF {
				return all
			}
			must(t, err)
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
		body := systemtest.Fetch(t, target)
		all := car1(t, body)
		if len(all) != 5 || all[string(ref)] == nil {
			t.Errorf("%d blocks", len(all))
		}
		// A reference copy is useful only if the answer is the same each time.
		if again := systemtest.Fetch(t, target); !bytes.Equal(again, body) {
			t.Error("the same CAR is not the same bytes")
		}
		// A range of the file: whole blocks, and the root.
		target.URL.RawQuery = "format=car&dag-scope=entity&entity-bytes=300000:300001"
		if body := systemtest.Fetch(t, target); len(car1(t, body)) != 2 {
			t.Errorf("entity-bytes: %d blocks", len(car1(t, body)))
		}
		// Get returns the object in any case.
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
		if body := systemtest.Fetch(t, target); !bytes.Equal(body, small) {
			t.Errorf("%d bytes", len(body))
		}
	})
}
