package all

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
	"github.com/plimsoll-project/plimsoll/testbed"
)

func TestMain(m *testing.M) { systemtest.Main(m, All()...) }

// TestInNamespaces starts every system in namespaces, as a run does, where only the host's
// functions reach it, and over IPv6.
func TestInNamespaces(t *testing.T) {
	for _, s := range All() {
		i := s.Info()
		if !i.Has(system.Start) {
			continue
		}
		for _, tls := range []string{"false", "true"} {
			opt := system.Options{}
			if tls == "true" {
				opt["tls"] = tls
			}
			if i.Name == "tahoe" { // its other protocol does not support IPv6
				opt["protocol"] = "foolscap"
			}
			if _, err := i.Fill(opt); err != nil {
				continue // it has no such option
			}
			t.Run(i.Name+" tls="+tls, func(t *testing.T) {
				systemtest.Need(t, s, opt)
				hosts := systemtest.HostsOf(t, testbed.Options{IPv6: true}, 3)
				follows := slices.Equal(i.Can, []string{"follow"})
				d := system.Deployment{Hosts: hosts[:2], Client: hosts[2], Dir: t.TempDir(), Options: opt,
					Follow: follows, Cache: t.TempDir()}
				c, err := system.Begin(systemtest.Context(t), s, system.Start, d)
				must(t, err)
				defer c.Stop(t.Context())
				want := 2
				switch i.Name {
				case "tahoe", "kubo", "codex": // all storage is on the first host; the nodes are clients
					want = 1
				}
				if len(c.Nodes()) != want {
					t.Errorf("%d nodes on 2 hosts, want %d", len(c.Nodes()), want)
				}
				if follows {
					followsIn(t, c.(system.Chains))
					return
				}
				if !i.Able("put") { // a swarm
					spreads(t, c)
					return
				}
				for k, n := range c.Nodes() {
					name := i.Name + string(rune('a'+k))
					data := systemtest.Bytes(name, 400_000)
					put, err := n.(system.Store).Put(systemtest.Context(t), "put", 400_000, bytes.NewReader(data))
					must(t, err)
					seeded, err := system.Seed(systemtest.Context(t), n.(system.Store), "seed", 400_000,
						bytes.NewReader(data))
					must(t, err)
					for _, ref := range []system.Ref{put, seeded} {
						var got bytes.Buffer
						if err := n.(system.Store).Get(systemtest.Context(t), ref, &got); err != nil ||
							!bytes.Equal(got.Bytes(), data) {
							t.Errorf("get: %d bytes, %v", got.Len(), err)
						}
					}
					must(t, n.(system.Healther).Health(systemtest.Context(t)))
				}
			})
		}
	}
}

// spreads transfers an object from the first node of a swarm to the second.
func spreads(t *testing.T, c system.Cluster) {
	t.Helper()
	from, to := c.Nodes()[0].(system.Member), c.Nodes()[1].(system.Member)
	data := systemtest.Bytes("spread", 400_000)
	ref, err := from.Publish(systemtest.Context(t), "spread", 400_000, bytes.NewReader(data))
	must(t, err)
	address, err := from.Address(systemtest.Context(t))
	must(t, err)
	must(t, to.Fetch(systemtest.Context(t), ref, []string{address}))
	for ctx := systemtest.Context(t); ; time.Sleep(100 * time.Millisecond) {
		f, err := to.Progress(ctx, ref)
		must(t, err)
		if f.Complete {
			break
		}
	}
	var got bytes.Buffer
	if err := to.ReadBack(systemtest.Context(t), ref, &got); err != nil || !bytes.Equal(got.Bytes(), data) {
		t.Errorf("read back: %d bytes, %v", got.Len(), err)
	}
}

// followsIn transfers a chain from the second node to the first.
func followsIn(t *testing.T, c system.Chains) {
	t.Helper()
	ctx := systemtest.Context(t)
	chain, err := c.Chain(ctx, system.ChainSpec{Blocks: 120, Transactions: 1, Form: "v2", Seed: 1}, func(string) {})
	must(t, err)
	fresh, peer := c.Nodes()[0].(system.ChainNode), c.Nodes()[1].(system.ChainNode)
	must(t, peer.Serve(ctx, system.ServeTask{Chain: chain}))
	address, err := peer.Address(ctx)
	must(t, err)
	must(t, fresh.Follow(ctx, system.FollowTask{Chain: chain, Dir: t.TempDir(), Peers: []string{address}}))
	for ; ; time.Sleep(100 * time.Millisecond) {
		f, err := fresh.Following(ctx)
		must(t, err)
		if f.Tip == chain.Tip {
			return
		}
	}
}
