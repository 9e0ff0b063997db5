package siad

import (
	"context"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"go.sia.tech/core/types"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
	"github.com/plimsoll-project/plimsoll/testbed"
)

const devVersion = "siad v1.5.9-dev"

func TestChains(t *testing.T) {
	systemtest.RunChains(t, systemtest.Chains{
		System: System{}, Options: system.Options{"modules": "gc"}, Spec: system.ChainSpec{Blocks: 350, Form: "v1",
			Seed: 1},
		Store: "consensus/consensus.db", NoStranger: true,
	})
}

// TestFakeChains tests everything except siad itself with a fake siad: processes, the cache,
// connecting, how nodes end.
func TestFakeChains(t *testing.T) {
	t.Parallel()
	systemtest.RunChains(t, systemtest.Chains{
		System: System{}, Options: system.Options{"modules": "gct", "binary": fakeBinary(t, "chain", devVersion)},
		Spec:  system.ChainSpec{Blocks: 40, Form: "v1", Seed: 1},
		Store: "consensus/consensus.db", NoStranger: true,
	})
}

// fakeChains returns chains on fake siads.
func fakeChains(t *testing.T, version string) (*chains, error) {
	t.Helper()
	hosts := systemtest.HostsOf(t, testbed.Options{}, 2)
	c, err := system.Begin(systemtest.Context(t), System{}, system.Start, system.Deployment{
		Hosts: hosts[:1], Client: hosts[1], Dir: t.TempDir(), Follow: true,
		Options: system.Options{"binary": fakeBinary(t, "chain", version)},
	})
	if err != nil {
		return nil, err
	}
	systemtest.AtEnd(t, "stop", c.Stop)
	return c.(*chains), nil
}

// TestBinaryOfPublicNetwork checks that such a binary is refused before it is run for anything but
// "version".
func TestBinaryOfPublicNetwork(t *testing.T) {
	for said, want := range map[string]string{
		"siad v1.5.9":         "`dev` constants",
		"siad v1.5.9-testnet": "`dev` constants",
		"Usage: siad":         "names no version",
		"":                    "names no version",
		devVersion:            "",
	} {
		c, err := fakeChains(t, said)
		switch {
		case want == "" && err != nil:
			t.Errorf("%q: %v", said, err)
		case want == "" && c.Identity()["version"] != "siad 1.5.9-dev":
			t.Errorf("%q: %v", said, c.Identity())
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v, want %q", said, err, want)
		}
	}
}

// TestNodeWithDeadPeer checks that a node's error about its only peer is reported, and that the
// node gets no blocks.
func TestNodeWithDeadPeer(t *testing.T) {
	c, err := fakeChains(t, devVersion)
	must(t, err)
	ctx := systemtest.Context(t)
	n := c.Nodes()[0].(*follower)
	must(t, n.Follow(ctx, system.FollowTask{Dir: t.TempDir(), Peers: []string{"127.0.0.1:9"}}))
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		f, err := n.Following(ctx)
		must(t, err)
		if f.Trouble != "" {
			if !strings.Contains(f.Trouble, "refused") || len(f.Peers) != 1 || f.Connected != 0 || f.Height != 0 {
				t.Errorf("%+v", f)
			}
			return
		}
		if time.Now().After(end) {
			t.Fatalf("no trouble: %+v", f)
		}
	}
}

// TestNonces checks that the stored nonces solve the first blocks of dev builds. Their difficulty
// falls by at most a sixth every ten blocks below block 100, and then by at most 2 % per block.
func TestNonces(t *testing.T) {
	for build, first := range map[string]string{"1.5.9": genesis159, "66e7fc630": genesisLast} {
		c := consensusAnswer{GenesisTimestamp: 1424139000, InitialCoinbase: 300000, MinimumCoinbase: 30000}
		must(t, c.Tip.UnmarshalText([]byte(first)))
		all := nonces(c.Tip)
		if len(all) != cheap {
			t.Fatalf("%s: %d nonces, want %d", build, len(all), cheap)
		}
		most := float64(1 << 23) // expected hashes per block
		for _, n := range all {
			b := c.template(types.Address{})
			b.Nonce = n
			if !solved(&b, targetOf(most)) {
				t.Fatalf("%s: the nonce of block %d does not do", build, c.Height+1)
			}
			if solved(&b, types.Hash256{}) {
				t.Fatal("a nonce for an impossible target")
			}
			c.Tip = b.ID()
			switch c.Height++; {
			case c.Height > 100:
				most /= 1.02
			case c.Height%10 == 0:
				most /= 1.2
			}
		}
	}
	if all := nonces(types.BlockID{1}); all != nil {
		t.Errorf("%d nonces for a first block that nobody has met", len(all))
	}
}

// TestSolve checks that solve finds the smallest nonce on every machine.
func TestSolve(t *testing.T) {
	b := types.Block{Timestamp: time.Unix(1424139000, 0)}
	target := targetOf(50_000)
	must(t, solve(t.Context(), &b, target))
	want := b
	for want.Nonce = 0; ; want.Nonce += nonceUnit {
		if id := want.ID(); slices.Compare(id[:], target[:]) <= 0 {
			break
		}
	}
	if b.Nonce != want.Nonce {
		t.Errorf("nonce %d, the least is %d", b.Nonce, want.Nonce)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := solve(ctx, &b, types.Hash256{}); err == nil {
		t.Error("an impossible block was solved")
	}
}

// targetOf returns the target of blocks that take this number of hashes.
func targetOf(hashes float64) (t types.Hash256) {
	all := new(big.Float).SetInt(new(big.Int).Lsh(big.NewInt(1), 256))
	n, _ := new(big.Float).Quo(all, big.NewFloat(hashes)).Int(nil)
	n.FillBytes(t[:])
	return t
}
