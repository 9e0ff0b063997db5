package mem

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

func TestChainsConformance(t *testing.T) {
	for name, opt := range map[string]system.Options{
		"plain":   {"timeout": "100ms"},
		"indexed": {"begin": "5ms", "validate": "1ms", "index": "500us", "noise": "0.1", "timeout": "100ms", "batch": "50", "up": "10000000", "spread": "0.2"},
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
			"begin": "2s", "validate": "3ms", "index": "1ms", "m1": "0.5", "m2": "0.8", "m12": "0.7", "m3": "2", "timeout": "1m0s",
		})
		peer := s.serve(1, system.Honest)
		for name, c := range map[string]struct {
			settings system.Options
			want     float64 // seconds
		}{
			"default":     {nil, 2 + 4},
			"f1":          {system.Options{"f1": "high"}, 0.5 * 6},
			"f1 and f2":   {system.Options{"f1": "high", "f2": "high"}, 0.5 * 0.8 * 0.7 * 6},
			"f2 and f3":   {system.Options{"f2": "high", "f3": "high"}, 0.8 * 2 * 6},
			"no index":    {system.Options{"index": "0s"}, 2 + 3},
			"behind rate": {system.Options{"up": "100000", "batch": "100"}, 6 + 10},
			"far":         {system.Options{"rtt": "100ms", "batch": "50"}, 6 + 20*0.1},
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
		r, err := s.c.Replay(t.Context(), system.FollowTask{Chain: s.chain, Settings: system.Options{"f1": "high"}})
		if err != nil || math.Abs(r.Seconds-2) > 1e-9 || time.Since(began) != 2*time.Second || r.Blocks != 1000 {
			t.Errorf("replay: %+v, %v after %v", r, err, time.Since(began))
		}
		// Half way: height and index follow each other.
		s.follow(t.TempDir(), nil, peer)
		time.Sleep(2*time.Second + 2000*time.Millisecond + 15*time.Millisecond)
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

// TestChainTimeoutIsAU: too short, what slow answers bring is lost; too long, the
// silent peer is waited for.
func TestChainTimeoutIsAU(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newChainTest(t, 3, 600, system.Options{"rtt": "100ms", "spread": "0.5"})
		peers := []string{s.serve(1, system.Honest), s.serve(2, system.Silent)}
		var took []time.Duration
		for _, timeout := range []string{"40ms", "150ms", "5s"} {
			s.follow(t.TempDir(), system.Options{"timeout": timeout}, peers...)
			d, f := s.whole(time.Hour)
			took = append(took, d)
			if p := f.Peers[1]; f.TimedOut != f.Peers[0].TimedOut+p.TimedOut || f.Failed != f.Peers[0].Failed+p.Failed || p.Blocks != 0 || p.TimedOut < 55 || p.Bytes != 0 {
				t.Errorf("timeout %s: the silent peer has %+v", timeout, p)
			}
			if err := s.nodes[0].Halt(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if took[0] < 2*took[1] || took[2] < 5*took[1] {
			t.Errorf("not a U: %v", took)
		}
	})
}

// TestChainFaults: what a node has got outlives it, and a peer that is dead, away or
// of another chain gives nothing.
func TestChainFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newChainTest(t, 3, 1000, system.Options{"validate": "10ms", "index": "10ms"})
		dir := t.TempDir()
		peer := s.serve(1, system.Honest)
		s.follow(dir, nil, peer)
		time.Sleep(10 * time.Second)
		if err := s.nodes[0].Kill(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := s.nodes[0].Following(t.Context()); !errors.Is(err, errNotRunning) {
			t.Errorf("dead: %v", err)
		}
		s.follow(dir, nil, peer)
		if f := s.look(); f.Height < 490 || f.Height > 510 {
			t.Errorf("after a restart: %+v", f)
		}
		s.nodes[0].SetLinks(Links{Apart: []int{0}})
		time.Sleep(time.Minute)
		if f := s.look(); f.Height > 520 || f.Connected != 0 || f.Indexed != f.Height {
			t.Errorf("cut off: %+v", f)
		}
		s.nodes[0].SetLinks(Links{})
		s.nodes[0].SetTrouble(Trouble{Stop: 0.6})
		time.Sleep(time.Minute)
		if f := s.look(); f.Height != 600 {
			t.Errorf("stopped: %+v", f)
		}
		s.nodes[0].SetTrouble(Trouble{Wrong: true, Says: "word"})
		time.Sleep(time.Minute)
		if f := s.look(); f.Height != 1000 || f.Tip == s.chain.Tip || f.Trouble != "word" {
			t.Errorf("wrong: %+v", f)
		}
		s.nodes[0].SetTrouble(Trouble{Mute: true})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.nodes[0].Following(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("mute: %v", err)
		}
		s.nodes[0].SetTrouble(Trouble{})
		if err := s.nodes[0].Halt(t.Context()); err != nil {
			t.Fatal(err)
		}
		// Without its data it begins anew.
		if err := os.Remove(filepath.Join(dir, storeFile)); err != nil {
			t.Fatal(err)
		}
		s.follow(dir, nil, s.serve(2, system.Stranger))
		time.Sleep(time.Minute)
		if f := s.look(); f.Height != 0 || f.Peers[0].Trouble == "" || f.Connected != 0 {
			t.Errorf("a stranger: %+v", f)
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

func TestBadChainOptions(t *testing.T) {
	for want, opt := range map[string]system.Options{
		`option "m1"`: {"m1": "fast"}, `option "f1"`: {"f1": "middle"}, `option "timeout"`: {"timeout": "0s"}, `option "batch"`: {"batch": "0"},
	} {
		if _, err := (System{}).Start(t.Context(), system.Deployment{Options: opt, Follow: true}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("options %v: %v, want %q", opt, err, want)
		}
	}
}
