package mem

import (
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

func TestChainsConformance(t *testing.T) {
	for name, opt := range map[string]system.Options{
		"plain":   {"timeout": "100ms"},
		"indexed": {"validate": "1ms", "index": "500us", "noise": "0.1", "timeout": "100ms", "batch": "50", "up": "10000000", "spread": "0.2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of it is waiting for what must not come
			systemtest.RunChains(t, systemtest.Chains{
				System: System{}, Options: opt, Indexed: opt["index"] != "", InProcess: true, Store: storeFile,
				Spec: system.ChainSpec{Blocks: 200, Transactions: 2, Form: "v2", Seed: 1},
			})
		})
	}
}

// chainTest is a cluster in which node 0 is fresh.
type chainTest struct {
	t     *testing.T
	c     system.Chains
	nodes []*Follower
	chain system.Chain
}

func newChainTest(t *testing.T, nodes, blocks int, opt system.Options) *chainTest {
	t.Helper()
	all := system.Options{"nodes": fmt.Sprint(nodes)}
	for k, v := range opt {
		all[k] = v
	}
	cluster, err := System{}.Start(t.Context(), system.Deployment{Options: all, Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	s := &chainTest{t: t, c: cluster.(system.Chains)}
	for _, n := range cluster.Nodes() {
		s.nodes = append(s.nodes, n.(*Follower))
	}
	if s.chain, err = s.c.Chain(t.Context(), system.ChainSpec{Blocks: blocks, Seed: 1}, func(string) {}); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *chainTest) serve(i int, manner string) string {
	s.t.Helper()
	if err := s.nodes[i].Serve(s.t.Context(), system.ServeTask{Chain: s.chain, Manner: manner}); err != nil {
		s.t.Fatal(err)
	}
	a, err := s.nodes[i].Address(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

func (s *chainTest) follow(dir string, settings system.Options, peers ...string) {
	s.t.Helper()
	if err := s.nodes[0].Follow(s.t.Context(), system.FollowTask{Chain: s.chain, Dir: dir, Peers: peers, Settings: settings}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *chainTest) look() system.Following {
	s.t.Helper()
	f, err := s.nodes[0].Following(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return f
}

// whole waits until the node has all, and gives the time that took.
func (s *chainTest) whole(limit time.Duration) (time.Duration, system.Following) {
	s.t.Helper()
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		f := s.look()
		if f.Tip == s.chain.Tip && (f.Indexed < 0 || f.Indexed == s.chain.Height) {
			return time.Since(began), f
		}
		if time.Since(began) > limit {
			s.t.Fatalf("not whole after %v: %+v", limit, f)
		}
	}
}

// TestChainTimes holds a sync to the model, in virtual time.
func TestChainTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newChainTest(t, 2, 1000, system.Options{
			"validate": "3ms", "index": "1ms", "m1": "0.5", "m2": "0.8", "m12": "0.7", "timeout": "1m0s",
		})
		peer := s.serve(1, system.Honest)
		for name, c := range map[string]struct {
			settings system.Options
			want     float64 // seconds
		}{
			"default":     {nil, 4},
			"f1":          {system.Options{"f1": "high"}, 0.5 * 4},
			"f1 and f2":   {system.Options{"f1": "high", "f2": "high"}, 0.5 * 0.8 * 0.7 * 4},
			"no index":    {system.Options{"index": "0s"}, 3},
			"behind rate": {system.Options{"up": "100000", "batch": "100"}, 4 + 10},
			"far":         {system.Options{"rtt": "100ms", "batch": "50"}, 4 + 20*0.1},
		} {
			s.follow(t.TempDir(), c.settings, peer)
			took, f := s.whole(time.Minute)
			if math.Abs(took.Seconds()-c.want) > 0.0021 {
				t.Errorf("%s: %v, want %v s", name, took, c.want)
			}
			if f.Peers[0].Blocks != 1000 || f.Peers[0].Bytes != 1_000_000 || f.Connected != 1 {
				t.Errorf("%s: %+v", name, f)
			}
			if err := s.nodes[0].Halt(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		r, err := s.c.(system.Replayer).Replay(t.Context(), system.FollowTask{Chain: s.chain, Settings: system.Options{"f1": "high"}})
		if err != nil || math.Abs(r.Seconds-2) > 1e-9 || time.Since(began) != 2*time.Second || r.Blocks != 1000 {
			t.Errorf("replay: %+v, %v after %v", r, err, time.Since(began))
		}
		// Half way: height and index follow each other.
		s.follow(t.TempDir(), nil, peer)
		time.Sleep(2000*time.Millisecond + 15*time.Millisecond)
		if f := s.look(); f.Height != 505 || f.Indexed != 500 || f.Tip == s.chain.Tip || f.Synced {
			t.Errorf("half way: %+v", f)
		}
	})
}

// TestChainRates: a link bounds the time from below, and Moved tells what crossed it.
func TestChainRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newChainTest(t, 3, 1000, system.Options{"timeout": "1m0s"})
		peers := []string{s.serve(1, system.Honest), s.serve(2, system.Honest)}
		s.nodes[0].SetLinks(Links{Up: map[int]float64{1: 10_000, 2: 100_000}, Down: map[int]float64{0: 50_000}})
		s.follow(t.TempDir(), nil, peers...)
		// In turn: half of it at 10 kB/s, half at 50 kB/s.
		if took, _ := s.whole(10 * time.Minute); math.Abs(took.Seconds()-60) > 0.01 {
			t.Errorf("%v, want 60 s", took)
		}
		received, _ := s.nodes[0].Moved()
		_, one := s.nodes[1].Moved()
		_, two := s.nodes[2].Moved()
		if received != 1_000_000 || one != 500_000 || two != 500_000 {
			t.Errorf("received %v, sent %v and %v", received, one, two)
		}
	})
}

func TestChainNoise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newChainTest(t, 2, 100, system.Options{"validate": "10ms", "noise": "0.2"})
		peer := s.serve(1, system.Honest)
		var sum, squares float64
		const times = 400
		for range times {
			s.follow(t.TempDir(), nil, peer)
			took, _ := s.whole(time.Minute)
			x := math.Log(took.Seconds())
			sum, squares = sum+x, squares+x*x
			if err := s.nodes[0].Halt(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		mean := sum / times
		if sd := math.Sqrt(squares/times - mean*mean); math.Abs(mean) > 0.04 || math.Abs(sd-0.2) > 0.03 {
			t.Errorf("ln(t): mean %.4f, standard deviation %.4f; want 0 and 0.2", mean, sd)
		}
	})
}
