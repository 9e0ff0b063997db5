package systemtest

import (
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
	Options system.Options // settings of all nodes, with waits short enough for tests
	Spec    system.ChainSpec
	// Indexed is set if something subscribes to the chain with these options.
	Indexed bool
	// Store is the file below FollowTask.Dir that the test corrupts to check the reaction to a
	// damaged store; empty: unknown.
	Store string
	// NoStranger is set if the system does not support peers with another chain.
	NoStranger bool
}

// syncing limits the time for following the whole chain.
const syncing = 2 * time.Minute

// chains is a deployment under test: a fresh node and two peers.
type chains struct {
	kit
	Chains
	c        system.Chains
	replayer system.Replayer // nil: not supported
	nodes    []system.ChainNode
	chain    system.Chain
}

// chainCases are the cases of a chain; without is set if the system does not support what it needs.
var chainCases = []struct {
	name    string
	without func(*chains) bool
	body    func(*chains)
}{
	{"abilities", nil, (*chains).abilities},
	{"nothing runs", nil, (*chains).nothingRuns},
	{"the chain is kept", nil, (*chains).chainKept},
	{"follow", nil, (*chains).follow},
	{"goes on", nil, (*chains).goesOn},
	{"two peers", nil, (*chains).twoPeers},
	{"silent peers", nil, func(w *chains) { w.uselessPeer(system.Silent) }},
	{"no peer", nil, func(w *chains) { w.neverBegins(w.TempDir()) }},
	{"served again", nil, (*chains).servedAgain},
	{"stranger", func(w *chains) bool { return w.NoStranger }, func(w *chains) { w.uselessPeer(system.Stranger) }},
	{"damaged store", func(w *chains) bool { return w.Store == "" }, (*chains).damagedStore},
	{"source dies", nil, (*chains).sourceDies},
	{"replay", func(w *chains) bool { return w.replayer == nil }, (*chains).replay},
	{"cancelled", nil, (*chains).cancelled},
	{"stop", nil, (*chains).stop},
}

// RunChains runs the cases of a [system.Chains] on two deployments side by side, because they mostly
// wait for nodes.
func RunChains(t *testing.T, s Chains) {
	Need(t, s.System, s.Options)
	cache := filepath.Join(t.TempDir(), "not", "made", "yet")
	for half := range 2 {
		w := s.start(t, cache)
		t.Run(fmt.Sprint("deployment ", half+1), func(t *testing.T) {
			t.Parallel()
			for i, c := range chainCases {
				if i%2 != half {
					continue
				}
				t.Run(c.name, func(t *testing.T) {
					if c.without != nil && c.without(w) {
						t.Skip("the system has no such thing")
					}
					v := *w
					v.T = t
					v.haltAll()
					c.body(&v)
				})
			}
		})
	}
}

func (s Chains) start(t *testing.T, cache string) *chains {
	const nodes = 3
	d := deployment(t, HostsOf(t, testbed.Options{Plain: s.System.Info().ReachesOut == ""}, nodes+1), s.Options)
	d.Follow, d.Cache = true, cache
	w := &chains{kit: kit{t}, Chains: s}
	w.c = w.bringUp(s.System, system.Start, d, 2*time.Minute).(system.Chains)
	w.replayer, _ = w.c.(system.Replayer)
	for _, n := range w.c.Nodes() {
		w.nodes = append(w.nodes, n.(system.ChainNode))
	}
	if len(w.nodes) != nodes {
		t.Fatalf("%d nodes on %d hosts", len(w.nodes), nodes)
	}
	w.chain = w.make(s.Spec)
	w.wantHostDirs(d)
	blocks := int64(s.Spec.Blocks)
	if w.chain.ID == "" || w.chain.Tip == "" || w.chain.Height != blocks || w.chain.Bytes < blocks || w.chain.Disk <= 0 ||
		w.chain.Transactions < blocks*int64(s.Spec.Transactions) {
		t.Fatalf("asked for %+v, got %+v", s.Spec, w.chain)
	}
	return w
}

// make returns a chain of that spec, building it if necessary.
func (w *chains) make(spec system.ChainSpec) system.Chain {
	c, err := w.c.Chain(w.ctx(), spec, func(text string) {
		if text == "" {
			w.Errorf("progress without words")
		}
	})
	w.must("chain", err)
	return c
}

func (w *chains) haltAll() {
	for i := range w.nodes {
		w.halt(i)
		w.halt(i) // nothing runs the second time
	}
}

func (w *chains) halt(i int) {
	w.must("halt", w.nodes[i].Halt(w.ctx()))
	w.wantEnded(w.nodes[i].Processes())
}

func (w *chains) kill(i int) {
	w.must("kill", w.nodes[i].Kill(w.ctx()))
	w.wantEnded(w.nodes[i].Processes())
}

// serve makes node i a peer and returns its address.
func (w *chains) serve(i int, manner string) string {
	task := system.ServeTask{Chain: w.chain, Manner: manner}
	w.must(fmt.Sprintf("serve (%q)", manner), w.nodes[i].Serve(w.ctx(), task))
	a, err := w.nodes[i].Address(w.ctx())
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
	defer w.soon("to start a fresh node")()
	w.must("follow", w.nodes[0].Follow(w.ctx(), w.task(dir, peers...)))
}

// beginWhole starts the fresh node on dir, and waits until it has the whole chain.
func (w *chains) beginWhole(dir string, peers ...string) system.Following {
	w.begin(dir, peers...)
	return w.awaitWhole()
}

// look polls the fresh node and checks that its progress is possible.
func (w *chains) look() system.Following {
	f, err := w.nodes[0].Following(w.ctx())
	w.must("following", err)
	all := w.chain.Height
	outside := f.Height < 0 || max(f.Height, f.Indexed) > all || f.Indexed < -1
	wrongTip := (f.Tip == w.chain.Tip) != (f.Height == all)
	if outside || wrongTip || w.Indexed != (f.Indexed >= 0) {
		w.Errorf("of a chain of %d blocks that ends with %s (indexed: %v) the node has %+v", all, w.chain.Tip,
			w.Indexed, f)
	}
	return f
}

// watch polls until enough returns true or limit has passed.
func (w *chains) watch(limit time.Duration, enough func(system.Following) bool) (f system.Following, ok bool) {
	height := int64(-1)
	ok = await(limit, 20*time.Millisecond, func() bool {
		f = w.look()
		if f.Height < height {
			w.Errorf("the height was %d, and is %d", height, f.Height)
		}
		height = f.Height
		return enough(f)
	})
	return f, ok
}

// await waits until enough returns true, or fails the test.
func (w *chains) await(what string, enough func(system.Following) bool) system.Following {
	f, ok := w.watch(syncing, enough)
	if !ok {
		w.Fatalf("the node has not %s after %v: %+v", what, syncing, f)
	}
	return f
}

func (w *chains) awaitWhole() system.Following {
	return w.await(fmt.Sprintf("the whole chain of %d blocks", w.chain.Height), func(f system.Following) bool {
		return f.Tip == w.chain.Tip && (f.Indexed == -1 || f.Indexed == w.chain.Height)
	})
}

func (w *chains) awaitConnected(peers int) system.Following {
	return w.await(fmt.Sprintf("%d peers", peers), func(f system.Following) bool { return f.Connected == peers })
}

// neverBegins starts the fresh node and checks that no blocks appear.
func (w *chains) neverBegins(dir string, peers ...string) {
	w.begin(dir, peers...)
	if f, began := w.watch(watched/2, func(f system.Following) bool { return f.Height > 0 }); began {
		w.Errorf("blocks came from no peer: %+v", f)
	}
}

func (w *chains) abilities() {
	w.wantAbilities(w.System, w.c, nil)
	limits := w.System.Info().Chains
	if p := limits.Problems(w.Spec, nil); len(p) > 0 {
		w.Errorf("Info.Chains refuses %+v: %v", w.Spec, p)
	}
	if slices.Contains(limits.Without, system.Stranger) != w.NoStranger || slices.Contains(limits.Without,
		system.Silent) {
		w.Errorf("Info.Chains says that peers cannot be %v", limits.Without)
	}
}

// nothingRuns checks that a node that was not started has no process, answers nothing and can be
// killed.
func (w *chains) nothingRuns() {
	w.fails("following by a node that does not run", errorOf(w.nodes[0].Following(w.ctx())))
	w.kill(0)
}

func (w *chains) chainKept() {
	first := w.chain
	if again := w.make(w.Spec); again != first {
		w.Errorf("the same chain is %+v at first and %+v then", first, again)
	}
	other := w.Spec
	other.Seed++
	if c := w.make(other); c.Tip == w.chain.Tip || c.ID == w.chain.ID {
		w.Errorf("another seed gives the same chain: %+v", c)
	}
}

func (w *chains) follow() {
	dir := w.TempDir()
	w.begin(dir, w.serve(1, system.Honest))
	if len(w.nodes[0].Processes()) == 0 {
		w.Errorf("the fresh node has no process")
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

// wantShares checks that the blocks delivered by peers add up to the chain.
func (w *chains) wantShares(f system.Following, peers int) {
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

// goesOn checks that a store outlives the process, however that ended, and that no peer is needed
// for stored blocks.
func (w *chains) goesOn() {
	dir := w.TempDir()
	peer := w.serve(1, system.Honest)
	w.beginWhole(dir, peer)
	w.kill(0)
	w.failsSoon("following by a node that was killed", func() error {
		return errorOf(w.nodes[0].Following(w.ctx()))
	})
	w.begin(dir) // committed blocks exist without a peer
	killed := w.look()
	w.halt(0)
	if f := w.beginWhole(dir, peer); f.Height < killed.Height {
		w.Errorf("after a kill %+v, after a halt and with a peer %+v", killed, f)
	}
	w.halt(0)
	if f := w.beginWhole(dir); f.Connected > 0 {
		w.Errorf("connected without a peer: %+v", f)
	}
}

func (w *chains) twoPeers() {
	w.beginWhole(w.TempDir(), w.serve(1, system.Honest), w.serve(2, system.Honest))
	w.wantShares(w.awaitConnected(2), 2)
}

// uselessPeer checks that a peer that gives no block of the chain delivers nothing, and does not
// prevent other peers from delivering.
func (w *chains) uselessPeer(manner string) {
	useless := w.serve(1, manner)
	w.neverBegins(w.TempDir(), useless)
	w.kill(0)
	for _, p := range w.beginWhole(w.TempDir(), useless, w.serve(2, system.Honest)).Peers {
		if p.Address == useless && p.Blocks > 0 {
			w.Errorf("a useless peer (%q) delivered: %+v", manner, p)
		}
	}
}

// servedAgain checks that a peer that serves the same chain keeps running, and otherwise is a new
// process.
func (w *chains) servedAgain() {
	pid := func(manner string) int {
		w.serve(1, manner)
		p := w.nodes[1].Processes()
		return p[len(p)-1].ID().PID
	}
	before := pid(system.Honest)
	if pid(system.Honest) != before {
		w.Errorf("a peer that serves the same was started anew")
	}
	w.kit.kill(w.nodes[1])
	after := pid(system.Honest)
	if after == before {
		w.Errorf("a peer that has died was not started anew")
	}
	if pid(system.Silent) == after {
		w.Errorf("an honest peer that is to be silent was not started anew")
	}
	w.kill(1)
	w.serve(1, system.Honest)
}

// sourceDies checks that a node whose only peer dies reports that and keeps answering.
func (w *chains) sourceDies() {
	w.begin(w.TempDir(), w.serve(1, system.Honest))
	w.awaitConnected(1)
	w.kill(1)
	w.awaitConnected(0)
}

func (w *chains) damagedStore() {
	dir := w.TempDir()
	w.beginWhole(dir, w.serve(1, system.Honest))
	w.halt(0)
	path := filepath.Join(dir, w.Store)
	b, err := os.ReadFile(path)
	w.must("store", err)
	for i := range min(len(b), 64<<10) {
		b[i] ^= 0x55
	}
	w.must("spoil", os.WriteFile(path, b, 0o600))
	w.failsSoon("follow on a damaged store", func() error {
		err := w.nodes[0].Follow(w.ctx(), w.task(dir))
		if err != nil && (!strings.Contains(err.Error(), path) || !strings.HasPrefix(err.Error(),
			w.System.Info().Name+": ")) {
			w.Errorf("a damaged store: %v; want an error that names %s", err, path)
		}
		return err
	})
	if now, err := os.ReadFile(path); err != nil || string(now) != string(b) {
		w.Errorf("the damaged file is not what it was (%v)", err)
	}
	w.wantEnded(w.nodes[0].Processes())
	w.beginWhole(w.TempDir(), w.serve(1, system.Honest)) // the node itself is not affected
}

func (w *chains) replay() {
	r, err := w.replayer.Replay(w.ctx(), w.task(w.TempDir()))
	w.must("replay", err)
	if r.Blocks != w.chain.Height || r.Seconds <= 0 || r.CPU < 0 {
		w.Errorf("replay of %d blocks: %+v", w.chain.Height, r)
	}
	w.wantEnded(processes(w.c.Nodes()...))
}

// cancelled checks that long operations end with their context and leave nothing behind.
func (w *chains) cancelled() {
	spec := w.Spec
	spec.Seed += 1000
	all := map[string]func() error{
		"chain": func() error { return errorOf(w.c.Chain(ended(), spec, func(string) {})) },
		"serve": func() error {
			return w.nodes[1].Serve(ended(), system.ServeTask{Chain: w.chain})
		},
	}
	if w.replayer != nil {
		all["replay"] = func() error { return errorOf(w.replayer.Replay(ended(), w.task(w.TempDir()))) }
	}
	for what, do := range all {
		w.failsSoon(what, do, context.Canceled)
	}
	w.wantEnded(processes(w.c.Nodes()...))
	if c := w.make(spec); c.Height != int64(spec.Blocks) {
		w.Errorf("a chain whose making was cancelled before: %+v", c)
	}
}

func (w *chains) stop() {
	w.begin(w.TempDir(), w.serve(1, system.Honest))
	w.stopTwice(w.c)
}
