package systemtest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// Chains is one system whose nodes follow a chain, in one configuration.
type Chains struct {
	System  system.System
	Options system.Options // settings of all nodes: waits short enough for tests
	// Daemon is the name of the program in PLIMSOLL_REQUIRE; empty: the system's.
	Daemon string
	Spec   system.ChainSpec
	// Indexed: with these options something subscribes to the chain.
	Indexed bool
	// Store is the file below FollowTask.Dir that is spoilt to see what a damaged
	// store does; empty: it is not known.
	Store string
	// NoStranger: the system cannot have peers with another chain.
	NoStranger bool
	// Syncing is the limit for following the whole chain; 0: a minute.
	Syncing time.Duration
}

// chains is a deployment under test: a fresh node and two peers.
type chains struct {
	*testing.T
	Chains
	c        system.Chains
	replayer system.Replayer // nil: it is none
	nodes    []system.ChainNode
	chain    system.Chain
}

// RunChains runs the cases of a [system.Chains].
func RunChains(t *testing.T, s Chains) {
	Need(t, cmp.Or(s.Daemon, s.System.Info().Name), system.Check(t.Context(), s.System, s.Options))
	w := s.start(t)
	for _, c := range []struct {
		name    string
		without bool // the system has no such thing
		body    func(*chains)
	}{
		{"abilities", false, (*chains).abilities},
		{"nothing runs", false, (*chains).nothingRuns},
		{"the chain is kept", false, (*chains).chainKept},
		{"follow", false, (*chains).follow},
		{"goes on", false, (*chains).goesOn},
		{"two peers", false, (*chains).twoPeers},
		{"no peer", false, func(w *chains) { w.begin(w.TempDir()); w.neverBegins() }},
		{"silent peers", false, (*chains).silentPeers},
		{"stranger", s.NoStranger, (*chains).stranger},
		{"served again", false, (*chains).servedAgain},
		{"source dies", false, (*chains).sourceDies},
		{"damaged store", s.Store == "", (*chains).damagedStore},
		{"replay", w.replayer == nil, (*chains).replay},
		{"cancelled", false, (*chains).cancelled},
		{"stop", false, (*chains).stop},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.without {
				t.Skip("the system has no such thing")
			}
			v := *w
			v.T = t
			v.haltAll()
			c.body(&v)
		})
	}
}

func (s Chains) start(t *testing.T) *chains {
	t.Helper()
	const nodes = 3
	hosts := HostsOf(t, testbed.Options{Plain: s.System.Info().Outside == ""}, nodes+1)
	d := system.Deployment{
		Hosts: hosts[:nodes], Client: hosts[nodes], Dir: t.TempDir(), Options: s.Options,
		Follow: true, Cache: filepath.Join(t.TempDir(), "not", "made", "yet"),
	}
	c, err := system.Begin(Context(t), s.System, system.Start, d)
	must(t, "start", err)
	StopAtEnd(t, c)
	w := &chains{T: t, Chains: s, c: c.(system.Chains)}
	w.replayer, _ = c.(system.Replayer)
	for _, n := range c.Nodes() {
		w.nodes = append(w.nodes, n.(system.ChainNode))
	}
	if len(w.nodes) != nodes || c.Identity()["version"] == "" {
		t.Fatalf("%d nodes on %d hosts, identity %v", len(w.nodes), nodes, c.Identity())
	}
	w.chain, err = w.c.Chain(Context(t), s.Spec, func(text string) {
		if text == "" {
			t.Error("progress without words")
		}
	})
	must(t, "chain", err)
	wantHostDirs(t, d)
	blocks := int64(s.Spec.Blocks)
	if !w.chain.Built || w.chain.ID == "" || w.chain.Tip == "" || w.chain.Height != blocks || w.chain.Bytes < blocks ||
		w.chain.Transactions < blocks*int64(s.Spec.Transactions) {
		t.Fatalf("asked for %+v, got %+v", s.Spec, w.chain)
	}
	return w
}

func (w *chains) haltAll() {
	w.Helper()
	for i := range w.nodes {
		w.halt(i)
		w.halt(i) // nothing runs the second time
	}
}

func (w *chains) halt(i int) {
	w.Helper()
	must(w.T, "halt", w.nodes[i].Halt(Context(w.T)))
	wantEnded(w.T, w.nodes[i].Processes())
}

func (w *chains) kill(i int) {
	w.Helper()
	must(w.T, "kill", w.nodes[i].Kill(Context(w.T)))
	wantEnded(w.T, w.nodes[i].Processes())
}

// serve makes node i a peer, with settings beside the usual ones, and returns where it is.
func (w *chains) serve(i int, manner string) string {
	w.Helper()
	task := system.ServeTask{Chain: w.chain, Manner: manner, Settings: w.Options}
	must(w.T, fmt.Sprintf("serve (%q)", manner), w.nodes[i].Serve(Context(w.T), task))
	a, err := w.nodes[i].Address(Context(w.T))
	if err != nil || a == "" {
		w.Fatalf("node %d: address %q, %v", i, a, err)
	}
	return a
}

func (w *chains) task(dir string, peers ...string) system.FollowTask {
	return system.FollowTask{Chain: w.chain, Dir: dir, Peers: peers, Settings: maps.Clone(w.Options)}
}

// begin starts the fresh node, node 0, on dir.
func (w *chains) begin(dir string, peers ...string) {
	w.Helper()
	within(w.T, "to start a fresh node", func() {
		must(w.T, "follow", w.nodes[0].Follow(Context(w.T), w.task(dir, peers...)))
	})
}

// look asks how far the fresh node is, and holds that to be possible.
func (w *chains) look() system.Following {
	w.Helper()
	f, err := w.nodes[0].Following(Context(w.T))
	must(w.T, "following", err)
	all := w.chain.Height
	outside := f.Height < 0 || max(f.Height, f.Indexed) > all || f.Indexed < -1
	wrongTip := (f.Tip == w.chain.Tip) != (f.Height == all)
	if outside || wrongTip || w.Indexed != (f.Indexed >= 0) {
		w.Errorf("of a chain of %d blocks that ends with %s (indexed: %v) the node has %+v", all, w.chain.Tip,
			w.Indexed, f)
	}
	return f
}

// watch looks until enough says so, or limit passes.
func (w *chains) watch(limit time.Duration, enough func(system.Following) bool) (system.Following, bool) {
	w.Helper()
	height := int64(-1)
	for end := time.Now().Add(limit); ; time.Sleep(20 * time.Millisecond) {
		f := w.look()
		if f.Height < height {
			w.Errorf("the height was %d, and is %d", height, f.Height)
		}
		height = f.Height
		if enough(f) || time.Now().After(end) {
			return f, enough(f)
		}
	}
}

func (w *chains) limit() time.Duration { return cmp.Or(w.Syncing, time.Minute) }

func (w *chains) awaitWhole() system.Following {
	w.Helper()
	f, ok := w.watch(w.limit(), func(f system.Following) bool {
		return f.Tip == w.chain.Tip && (f.Indexed == -1 || f.Indexed == w.chain.Height)
	})
	if !ok {
		w.Fatalf("the node has not the whole chain of %d blocks after %v: %+v", w.chain.Height, w.limit(), f)
	}
	return f
}

func (w *chains) awaitConnected(peers int) system.Following {
	w.Helper()
	f, ok := w.watch(w.limit(), func(f system.Following) bool { return f.Connected == peers })
	if !ok {
		w.Errorf("%d peers, and %d are connected", peers, f.Connected)
	}
	return f
}

// neverBegins holds that nothing comes from nowhere.
func (w *chains) neverBegins() system.Following {
	w.Helper()
	f, began := w.watch(watched/3, func(f system.Following) bool { return f.Height > 0 })
	if began {
		w.Errorf("blocks came from no peer: %+v", f)
	}
	return f
}

func (w *chains) abilities() {
	wantAbilities(w.T, w.System, w.c, nil)
	limits := w.System.Info().Chains
	if p := limits.Problems(w.Spec, nil); len(p) > 0 {
		w.Errorf("Info.Chains refuses %+v: %v", w.Spec, p)
	}
	if slices.Contains(limits.Without, system.Stranger) != w.NoStranger || slices.Contains(limits.Without,
		system.Silent) {
		w.Errorf("Info.Chains says that peers cannot be %v", limits.Without)
	}
}

// nothingRuns: a node that was not started has no process, answers nothing and
// can be ended.
func (w *chains) nothingRuns() {
	_, err := w.nodes[0].Following(Context(w.T))
	fails(w.T, "following by a node that does not run", err)
	w.kill(0)
}

func (w *chains) chainKept() {
	again, err := w.c.Chain(Context(w.T), w.Spec, func(string) {})
	must(w.T, "chain", err)
	first := w.chain
	first.Built = false
	if again != first {
		w.Errorf("the same chain is %+v at first and %+v then", first, again)
	}
	other := w.Spec
	other.Seed++
	c, err := w.c.Chain(Context(w.T), other, func(string) {})
	must(w.T, "chain", err)
	if c.Tip == w.chain.Tip || c.ID == w.chain.ID {
		w.Errorf("another seed gives the same chain: %+v", c)
	}
}

func (w *chains) follow() {
	dir := w.TempDir()
	w.begin(dir, w.serve(1, system.Honest))
	if len(w.nodes[0].Processes()) == 0 {
		w.Error("the fresh node has no process")
	}
	f := w.awaitWhole()
	if f.Connected != 1 || f.Trouble != "" {
		w.Errorf("whole, and %+v", f)
	}
	w.wantShares(f, 1)
	w.haltAll()
	if left, err := os.ReadDir(dir); err != nil || len(left) == 0 {
		w.Errorf("the store of a node that was halted: %d entries, %v", len(left), err)
	}
}

// wantShares holds what peers have delivered to what there was to deliver.
func (w *chains) wantShares(f system.Following, peers int) {
	w.Helper()
	var blocks int64
	known := true
	for _, p := range f.Peers {
		if p.Address == "" {
			w.Errorf("a share without a peer: %+v", p)
		}
		blocks += p.Blocks
		known = known && p.Blocks >= 0
	}
	if len(f.Peers) != peers || known && blocks < w.chain.Height {
		w.Errorf("%d blocks came from %d peers; the chain has %d", blocks, len(f.Peers), w.chain.Height)
	}
}

// goesOn: a store outlives the process, however that ended, and no peer is needed
// for what is there.
func (w *chains) goesOn() {
	dir := w.TempDir()
	peer := w.serve(1, system.Honest)
	w.begin(dir, peer)
	w.awaitWhole()
	w.kill(0)
	failsSoon(w.T, "following by a node that was killed", func() error {
		_, err := w.nodes[0].Following(Context(w.T))
		return err
	})
	w.begin(dir) // what was committed is there without a peer
	killed := w.look()
	w.halt(0)
	w.begin(dir, peer)
	if f := w.awaitWhole(); f.Height < killed.Height {
		w.Errorf("after a kill %+v, after a halt and with a peer %+v", killed, f)
	}
	w.halt(0)
	w.begin(dir)
	if f := w.awaitWhole(); f.Connected > 0 {
		w.Errorf("connected without a peer: %+v", f)
	}
}

func (w *chains) twoPeers() {
	w.begin(w.TempDir(), w.serve(1, system.Honest), w.serve(2, system.Honest))
	w.awaitWhole()
	w.wantShares(w.awaitConnected(2), 2)
}

func (w *chains) silentPeers() {
	silent := w.serve(1, system.Silent)
	w.begin(w.TempDir(), silent)
	w.neverBegins()
	w.kill(0)
	w.begin(w.TempDir(), silent, w.serve(2, system.Honest))
	for _, p := range w.awaitWhole().Peers {
		if p.Address == silent && p.Blocks > 0 {
			w.Errorf("a silent peer delivered: %+v", p)
		}
	}
}

func (w *chains) stranger() {
	stranger := w.serve(1, system.Stranger)
	w.begin(w.TempDir(), stranger)
	w.neverBegins()
	w.kill(0)
	w.begin(w.TempDir(), stranger, w.serve(2, system.Honest))
	w.awaitWhole()
}

// servedAgain: a peer that serves the same goes on, else it is another process.
func (w *chains) servedAgain() {
	pid := func(manner string) int {
		w.serve(1, manner)
		p := w.nodes[1].Processes()
		return p[len(p)-1].ID().PID
	}
	before := pid(system.Honest)
	if pid(system.Honest) != before {
		w.Error("a peer that serves the same was started anew")
	}
	kill(w.T, w.nodes[1])
	after := pid(system.Honest)
	if after == before {
		w.Error("a peer that has died was not started anew")
	}
	if pid(system.Silent) == after {
		w.Error("an honest peer that is to be silent was not started anew")
	}
	w.kill(1)
	w.serve(1, system.Honest)
}

// sourceDies: a node whose only peer dies says so and goes on answering.
func (w *chains) sourceDies() {
	w.begin(w.TempDir(), w.serve(1, system.Honest))
	w.awaitConnected(1)
	w.kill(1)
	w.awaitConnected(0)
}

func (w *chains) damagedStore() {
	dir := w.TempDir()
	w.begin(dir, w.serve(1, system.Honest))
	w.awaitWhole()
	w.halt(0)
	path := filepath.Join(dir, w.Store)
	b, err := os.ReadFile(path)
	must(w.T, "store", err)
	for i := range min(len(b), 64<<10) {
		b[i] ^= 0x55
	}
	must(w.T, "spoil", os.WriteFile(path, b, 0o600))
	failsSoon(w.T, "follow on a damaged store", func() error {
		err := w.nodes[0].Follow(Context(w.T), w.task(dir))
		if err != nil && (!strings.Contains(err.Error(), path) || !strings.HasPrefix(err.Error(),
			w.System.Info().Name+": ")) {
			w.Errorf("a damaged store: %v; want an error that names %s", err, path)
		}
		return err
	})
	if now, err := os.ReadFile(path); err != nil || string(now) != string(b) {
		w.Errorf("the damaged file is not what it was (%v)", err)
	}
	wantEnded(w.T, w.nodes[0].Processes())
	w.begin(w.TempDir(), w.serve(1, system.Honest)) // the node is none the worse for it
	w.awaitWhole()
}

func (w *chains) replay() {
	r, err := w.replayer.Replay(Context(w.T), w.task(w.TempDir()))
	must(w.T, "replay", err)
	if r.Blocks != w.chain.Height || r.Seconds <= 0 || r.CPU < 0 {
		w.Errorf("replay of %d blocks: %+v", w.chain.Height, r)
	}
	wantEnded(w.T, processes(w.c.Nodes()...))
}

// cancelled: what takes long ends with its context, and leaves nothing behind.
func (w *chains) cancelled() {
	spec := w.Spec
	spec.Seed += 1000
	all := map[string]func() error{
		"chain": func() error { _, err := w.c.Chain(ended(), spec, func(string) {}); return err },
		"serve": func() error {
			return w.nodes[1].Serve(ended(), system.ServeTask{Chain: w.chain, Settings: maps.Clone(w.Options)})
		},
	}
	if w.replayer != nil {
		all["replay"] = func() error { _, err := w.replayer.Replay(ended(), w.task(w.TempDir())); return err }
	}
	for what, do := range all {
		failsSoon(w.T, what, do, context.Canceled)
	}
	wantEnded(w.T, processes(w.c.Nodes()...))
	c, err := w.c.Chain(Context(w.T), spec, func(string) {})
	if err != nil || c.Height != int64(spec.Blocks) {
		w.Errorf("a chain whose making was cancelled before: %+v, %v", c, err)
	}
}

func (w *chains) stop() {
	w.begin(w.TempDir(), w.serve(1, system.Honest))
	all := processes(w.c.Nodes()...)
	for range 2 {
		must(w.T, "stop", w.c.Stop(Context(w.T)))
	}
	wantEnded(w.T, all)
}
