package systemtest

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
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
	// PeerSetting is an option of peers and a value of it other than in Options;
	// the name empty: there is none.
	PeerSetting [2]string
	// Store is the file below FollowTask.Dir that is spoilt to see what a damaged
	// store does; empty: it cannot be told.
	Store string
	// NoStranger, NoSilent: the system cannot have peers of that manner.
	NoStranger, NoSilent bool
	// NoReplay: the system says system.ErrNoReplay.
	NoReplay bool
	// InProcess: the nodes are no processes.
	InProcess bool
	// Namespaces: its nodes are started in network namespaces only.
	Namespaces bool
	// Syncing is the limit for following the whole chain; 0: a minute.
	Syncing time.Duration
}

// chained is a deployment under test.
type chained struct {
	t     *testing.T
	s     Chains
	c     system.Chains
	nodes []system.Follower
	chain system.Chain
}

// RunChains runs the cases of a [system.Chains]: a fresh node and two peers.
func RunChains(t *testing.T, s Chains) {
	Need(t, cmp.Or(s.Daemon, s.System.Info().Name), s.System.Check(t.Context(), s.Options))
	w := startChains(t, s)
	sub := func(name string, f func(*chained)) {
		t.Run(name, func(t *testing.T) {
			v := *w
			v.t = t
			v.haltAll()
			f(&v)
		})
	}
	sub("can", (*chained).can)
	sub("nothing runs", (*chained).nothingRuns)
	sub("the chain is kept", (*chained).chainKept)
	sub("follow", (*chained).follow)
	sub("goes on", (*chained).goesOn)
	sub("two peers", (*chained).twoPeers)
	sub("no peer", (*chained).noPeer)
	sub("silent peers", (*chained).silentPeers)
	sub("stranger", (*chained).stranger)
	sub("served again", (*chained).servedAgain)
	sub("source dies", (*chained).sourceDies)
	sub("damaged store", (*chained).damagedStore)
	sub("replay", (*chained).replay)
	sub("cancelled", (*chained).cancelled)
	sub("stop", (*chained).stop)
}

func startChains(t *testing.T, s Chains) *chained {
	t.Helper()
	const nodes = 3
	hosts := HostsOf(t, testbed.Options{Plain: !s.Namespaces}, nodes+1)
	d := system.Deployment{
		Hosts: hosts[:nodes], Client: hosts[nodes], Dir: t.TempDir(), Options: s.Options,
		Follow: true, Cache: filepath.Join(t.TempDir(), "not", "made", "yet"),
	}
	c, err := d.Begin(Context(t), s.System, system.Start)
	if err != nil {
		t.Fatal(err)
	}
	StopAtEnd(t, c)
	chains, ok := c.(system.Chains)
	if !ok {
		t.Fatalf("a deployment with Follow is a %T, no system.Chains", c)
	}
	w := &chained{t: t, s: s, c: chains}
	for i, n := range c.Nodes() {
		f, ok := n.(system.Follower)
		if !ok {
			t.Fatalf("node %d is a %T, no system.Follower", i, n)
		}
		w.nodes = append(w.nodes, f)
	}
	if len(w.nodes) != nodes {
		t.Fatalf("%d nodes on %d hosts", len(w.nodes), nodes)
	}
	if c.Identity()["version"] == "" {
		t.Errorf("identity %v has no version", c.Identity())
	}
	said := 0
	if w.chain, err = chains.Chain(Context(t), s.Spec, func(text string) {
		if said++; text == "" {
			t.Error("progress without words")
		}
	}); err != nil {
		t.Fatalf("chain: %v", err)
	}
	if !w.chain.Built {
		t.Error("the first chain in an empty cache was not made just now")
	}
	if w.chain.ID == "" || w.chain.Tip == "" || w.chain.Height != int64(s.Spec.Blocks) || w.chain.Bytes < int64(s.Spec.Blocks) ||
		w.chain.Transactions < int64(s.Spec.Blocks*s.Spec.Transactions) {
		t.Fatalf("asked for %+v, got %+v", s.Spec, w.chain)
	}
	return w
}

func (w *chained) haltAll() {
	w.t.Helper()
	for i, n := range w.nodes {
		for range 2 { // nothing runs the second time
			if err := n.Halt(Context(w.t)); err != nil {
				w.t.Fatalf("halt node %d: %v", i, err)
			}
		}
		w.wantNoProcess(i)
	}
}

func (w *chained) wantNoProcess(i int) {
	w.t.Helper()
	for _, p := range w.nodes[i].Processes() {
		if err := syscall.Kill(-p.PID(), 0); !errors.Is(err, syscall.ESRCH) {
			w.t.Errorf("process group %d of node %d is there after its end: %v", p.PID(), i, err)
		}
	}
}

func (w *chained) settings(more ...string) system.Options {
	opt := system.Options{}
	maps.Copy(opt, w.s.Options)
	for i := 0; i+1 < len(more); i += 2 {
		opt[more[i]] = more[i+1]
	}
	return opt
}

// serve makes node i a peer and returns where it is.
func (w *chained) serve(i int, manner string) string {
	w.t.Helper()
	if err := w.nodes[i].Serve(Context(w.t), system.ServeTask{Chain: w.chain, Manner: manner, Settings: w.settings()}); err != nil {
		w.t.Fatalf("node %d: serve (%q): %v", i, manner, err)
	}
	a, err := w.nodes[i].Address(Context(w.t))
	if err != nil || a == "" {
		w.t.Fatalf("node %d: address %q, %v", i, a, err)
	}
	return a
}

// begin starts the fresh node, node 0, on dir.
func (w *chained) begin(dir string, peers ...string) {
	w.t.Helper()
	within(w.t, "to start a fresh node", func() {
		if err := w.nodes[0].Follow(Context(w.t), system.FollowTask{Chain: w.chain, Dir: dir, Peers: peers, Settings: w.settings()}); err != nil {
			w.t.Fatalf("follow: %v", err)
		}
	})
}

// look asks how far the fresh node is, and holds that to be possible.
func (w *chained) look() system.Following {
	w.t.Helper()
	f, err := w.nodes[0].Following(Context(w.t))
	if err != nil {
		w.t.Fatalf("following: %v", err)
	}
	all := w.chain.Height
	switch {
	case f.Height < 0, f.Height > all, f.Indexed > all, f.Indexed < -1, f.Target > all, f.Target < -1:
		w.t.Errorf("of a chain of %d blocks the node has %+v", all, f)
	case (f.Tip == w.chain.Tip) != (f.Height == all):
		w.t.Errorf("at height %d of %d the tip is %s; that of the chain is %s", f.Height, all, f.Tip, w.chain.Tip)
	case !w.s.Indexed && f.Indexed != -1:
		w.t.Errorf("nothing subscribes, and it followed to %d", f.Indexed)
	case w.s.Indexed && f.Indexed == -1:
		w.t.Error("what subscribes does not tell how far it is")
	}
	return f
}

// watch looks until enough says so, or limit passes.
func (w *chained) watch(limit time.Duration, enough func(system.Following) bool) (system.Following, bool) {
	w.t.Helper()
	height := int64(-1)
	for end := time.Now().Add(limit); ; time.Sleep(20 * time.Millisecond) {
		f := w.look()
		if f.Height < height {
			w.t.Errorf("the height was %d, and is %d", height, f.Height)
		}
		height = f.Height
		if enough(f) {
			return f, true
		}
		if time.Now().After(end) {
			return f, false
		}
	}
}

func (w *chained) limit() time.Duration { return cmp.Or(w.s.Syncing, time.Minute) }

func (w *chained) whole(f system.Following) bool {
	return f.Tip == w.chain.Tip && (f.Indexed == -1 || f.Indexed == w.chain.Height)
}

func (w *chained) awaitWhole() system.Following {
	w.t.Helper()
	f, ok := w.watch(w.limit(), w.whole)
	if !ok {
		w.t.Fatalf("the node has not the whole chain of %d blocks after %v: %+v", w.chain.Height, w.limit(), f)
	}
	return f
}

func (w *chained) can() {
	can := w.s.System.Info().Can
	if !slices.Contains(can, "follow") {
		w.t.Errorf("Info.Can %v has no \"follow\"", can)
	}
	for i, n := range w.nodes {
		for _, word := range system.Abilities(n) {
			if !slices.Contains(can, word) {
				w.t.Errorf("node %d can %q, which Info.Can does not have", i, word)
			}
		}
	}
	limits := w.s.System.Info().Chains
	if p := limits.Problems(w.s.Spec, nil); len(p) > 0 {
		w.t.Errorf("Info.Chains refuses %+v: %v", w.s.Spec, p)
	}
	for manner, without := range map[string]bool{system.Stranger: w.s.NoStranger, system.Silent: w.s.NoSilent} {
		if slices.Contains(limits.Without, manner) != without {
			w.t.Errorf("Info.Chains says that peers cannot be %v", limits.Without)
		}
	}
}

// nothingRuns: a node that nobody started has no process, tells nothing and can
// be ended.
func (w *chained) nothingRuns() {
	if _, err := w.nodes[0].Following(Context(w.t)); err == nil {
		w.t.Error("a node that does not run says how far it is")
	}
	if err := w.nodes[0].Kill(Context(w.t)); err != nil {
		w.t.Errorf("kill of a node that does not run: %v", err)
	}
}

func (w *chained) chainKept() {
	again, err := w.c.Chain(Context(w.t), w.s.Spec, func(string) {})
	if err != nil {
		w.t.Fatal(err)
	}
	if again.Built || again.Note != "" {
		w.t.Errorf("the same chain was made again: %+v", again)
	}
	first := w.chain
	first.Built, again.Built = false, false
	if again != first {
		w.t.Errorf("the same chain is %+v at first and %+v then", first, again)
	}
	other := w.s.Spec
	other.Seed++
	c, err := w.c.Chain(Context(w.t), other, func(string) {})
	if err != nil {
		w.t.Fatal(err)
	}
	if c.Tip == w.chain.Tip || c.ID == w.chain.ID {
		w.t.Errorf("another seed gives the same chain: %+v", c)
	}
}

func (w *chained) follow() {
	dir := w.t.TempDir()
	w.begin(dir, w.serve(1, system.Honest))
	if got := len(processes([]system.Node{w.nodes[0]})) > 0; got == w.s.InProcess {
		w.t.Errorf("the fresh node has processes: %v", got)
	}
	f := w.awaitWhole()
	if f.Connected != 1 || f.Trouble != "" {
		w.t.Errorf("whole, and %+v", f)
	}
	w.wantShares(f, 1)
	w.haltAll()
	if left, err := os.ReadDir(dir); err != nil || len(left) == 0 && !w.s.InProcess {
		w.t.Errorf("the store of a node that was halted: %d entries, %v", len(left), err)
	}
}

// wantShares holds what peers have delivered to what there was to deliver.
func (w *chained) wantShares(f system.Following, peers int) {
	w.t.Helper()
	if len(f.Peers) != peers {
		w.t.Errorf("%d peers were named, %d have shares: %+v", peers, len(f.Peers), f.Peers)
	}
	var blocks, bytes int64
	told := true
	for _, p := range f.Peers {
		if p.Address == "" {
			w.t.Errorf("a share of nobody: %+v", p)
		}
		blocks += p.Blocks
		bytes += p.Bytes
		told = told && p.Blocks >= 0 && p.Bytes >= 0
	}
	if told && (blocks < w.chain.Height || bytes < w.chain.Bytes) {
		w.t.Errorf("%d blocks, %d bytes came from peers, the chain has %d, %d", blocks, bytes, w.chain.Height, w.chain.Bytes)
	}
}

// goesOn: a store outlives the process, however that ended, and no peer is needed
// for what is there.
func (w *chained) goesOn() {
	dir := w.t.TempDir()
	peer := w.serve(1, system.Honest)
	w.begin(dir, peer)
	w.awaitWhole()
	if err := w.nodes[0].Kill(Context(w.t)); err != nil {
		w.t.Fatal(err)
	}
	w.wantNoProcess(0)
	within(w.t, "a node that was killed", func() {
		if _, err := w.nodes[0].Following(Context(w.t)); err == nil && !w.s.InProcess {
			w.t.Error("a node that was killed says how far it is")
		}
	})
	w.begin(dir) // what was committed is there without a peer
	killed := w.look()
	if err := w.nodes[0].Halt(Context(w.t)); err != nil {
		w.t.Fatal(err)
	}
	w.begin(dir, peer)
	f, _ := w.watch(w.limit(), w.whole)
	if !w.whole(f) || f.Height < killed.Height {
		w.t.Errorf("after a kill %+v, after a halt and with a peer %+v", killed, f)
	}
	if err := w.nodes[0].Halt(Context(w.t)); err != nil {
		w.t.Fatal(err)
	}
	w.begin(dir)
	if f := w.awaitWhole(); f.Connected > 0 {
		w.t.Errorf("connected without a peer: %+v", f)
	}
}

func (w *chained) twoPeers() {
	w.begin(w.t.TempDir(), w.serve(1, system.Honest), w.serve(2, system.Honest))
	w.awaitWhole()
	f, ok := w.watch(w.limit(), func(f system.Following) bool { return f.Connected == 2 })
	if !ok {
		w.t.Errorf("two peers, and %d connected", f.Connected)
	}
	w.wantShares(f, 2)
}

func (w *chained) noPeer() {
	w.begin(w.t.TempDir())
	w.neverBegins()
}

// neverBegins holds that nothing comes from nowhere.
func (w *chained) neverBegins() system.Following {
	w.t.Helper()
	f, began := w.watch(watched/3, func(f system.Following) bool { return f.Height > 0 })
	if began {
		w.t.Errorf("blocks came from nobody: %+v", f)
	}
	return f
}

func (w *chained) silentPeers() {
	if w.s.NoSilent {
		w.t.Skip("no peers that are silent")
	}
	silent := w.serve(1, system.Silent)
	w.begin(w.t.TempDir(), silent)
	w.neverBegins()
	if err := w.nodes[0].Kill(Context(w.t)); err != nil {
		w.t.Fatal(err)
	}
	w.begin(w.t.TempDir(), silent, w.serve(2, system.Honest))
	f := w.awaitWhole()
	for _, p := range f.Peers {
		if p.Address == silent && p.Blocks > 0 {
			w.t.Errorf("a silent peer delivered: %+v", p)
		}
	}
}

func (w *chained) stranger() {
	if w.s.NoStranger {
		w.t.Skip("no peers with another chain")
	}
	stranger := w.serve(1, system.Stranger)
	w.begin(w.t.TempDir(), stranger)
	f := w.neverBegins()
	if len(f.Peers) != 1 || f.Peers[0].Trouble == "" {
		w.t.Errorf("the only peer has another chain, and the node says %+v", f)
	}
	if err := w.nodes[0].Kill(Context(w.t)); err != nil {
		w.t.Fatal(err)
	}
	w.begin(w.t.TempDir(), stranger, w.serve(2, system.Honest))
	w.awaitWhole()
}

// servedAgain: a peer that serves the same goes on, else it is another process.
func (w *chained) servedAgain() {
	if w.s.InProcess {
		w.t.Skip("no processes")
	}
	pid := func() int {
		p := w.nodes[1].Processes()
		if len(p) == 0 {
			w.t.Fatal("a peer without a process")
		}
		return p[len(p)-1].PID()
	}
	w.serve(1, system.Honest)
	before := pid()
	w.serve(1, system.Honest)
	if pid() != before {
		w.t.Error("a peer that serves the same was started anew")
	}
	kill(w.t, []system.Node{w.nodes[1]})
	w.serve(1, system.Honest)
	if pid() == before {
		w.t.Error("a peer that has died was not started anew")
	}
	before = pid()
	if !w.s.NoSilent {
		w.serve(1, system.Silent)
		if pid() == before {
			w.t.Error("an honest peer that is to be silent was not started anew")
		}
		w.serve(1, system.Honest)
		before = pid()
	}
	if w.s.PeerSetting[0] == "" {
		return
	}
	task := system.ServeTask{Chain: w.chain, Settings: w.settings(w.s.PeerSetting[0], w.s.PeerSetting[1])}
	if err := w.nodes[1].Serve(Context(w.t), task); err != nil {
		w.t.Fatal(err)
	}
	if pid() == before {
		w.t.Errorf("with %s = %s a peer was not started anew", w.s.PeerSetting[0], w.s.PeerSetting[1])
	}
	if err := w.nodes[1].Kill(Context(w.t)); err != nil {
		w.t.Fatal(err)
	}
	w.serve(1, system.Honest)
}

// sourceDies: a node whose only peer dies tells so and goes on telling.
func (w *chained) sourceDies() {
	peer := w.serve(1, system.Honest)
	w.begin(w.t.TempDir(), peer)
	if f, ok := w.watch(w.limit(), func(f system.Following) bool { return f.Connected == 1 }); !ok {
		w.t.Fatalf("not connected: %+v", f)
	}
	if err := w.nodes[1].Kill(Context(w.t)); err != nil {
		w.t.Fatal(err)
	}
	if f, ok := w.watch(w.limit(), func(f system.Following) bool { return f.Connected == 0 }); !ok {
		w.t.Errorf("the only peer is dead, and %d are connected", f.Connected)
	}
}

func (w *chained) damagedStore() {
	if w.s.Store == "" {
		w.t.Skip("it cannot be told what a store consists of")
	}
	dir := w.t.TempDir()
	w.begin(dir, w.serve(1, system.Honest))
	w.awaitWhole()
	if err := w.nodes[0].Halt(Context(w.t)); err != nil {
		w.t.Fatal(err)
	}
	path := filepath.Join(dir, w.s.Store)
	b, err := os.ReadFile(path)
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range min(len(b), 64<<10) {
		b[i] ^= 0x55
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		w.t.Fatal(err)
	}
	within(w.t, "a damaged store", func() {
		err = w.nodes[0].Follow(Context(w.t), system.FollowTask{Chain: w.chain, Dir: dir, Settings: w.settings()})
	})
	if err == nil || !strings.Contains(err.Error(), path) || !strings.HasPrefix(err.Error(), w.s.System.Info().Name+": ") {
		w.t.Errorf("a damaged store: %v; want an error that names %s", err, path)
	}
	if now, err := os.ReadFile(path); err != nil || string(now) != string(b) {
		w.t.Errorf("the damaged file is not what it was (%v)", err)
	}
	w.wantNoProcess(0)
	w.begin(w.t.TempDir(), w.serve(1, system.Honest)) // the node is none the worse for it
	w.awaitWhole()
}

func (w *chained) replay() {
	r, err := w.c.Replay(Context(w.t), system.FollowTask{Chain: w.chain, Dir: w.t.TempDir(), Settings: w.settings()})
	if w.s.NoReplay {
		if !errors.Is(err, system.ErrNoReplay) {
			w.t.Errorf("replay: %v, want system.ErrNoReplay", err)
		}
		return
	}
	if err != nil {
		w.t.Fatal(err)
	}
	if r.Blocks != w.chain.Height || r.Seconds <= 0 || r.CPU < 0 {
		w.t.Errorf("replay of %d blocks: %+v", w.chain.Height, r)
	}
	for i := range w.nodes {
		w.wantNoProcess(i)
	}
}

// cancelled: what takes long ends with its context, and leaves nothing behind.
func (w *chained) cancelled() {
	ctx, cancel := context.WithCancel(Context(w.t))
	cancel()
	spec := w.s.Spec
	spec.Seed += 1000
	within(w.t, "calls that are cancelled", func() {
		if _, err := w.c.Chain(ctx, spec, func(string) {}); !errors.Is(err, context.Canceled) {
			w.t.Errorf("chain: %v", err)
		}
		if _, err := w.c.Replay(ctx, system.FollowTask{Chain: w.chain, Dir: w.t.TempDir(), Settings: w.settings()}); !errors.Is(err, context.Canceled) {
			w.t.Errorf("replay: %v", err)
		}
		if err := w.nodes[1].Serve(ctx, system.ServeTask{Chain: w.chain, Settings: w.settings()}); !errors.Is(err, context.Canceled) {
			w.t.Errorf("serve: %v", err)
		}
	})
	for i := range w.nodes {
		w.wantNoProcess(i)
	}
	c, err := w.c.Chain(Context(w.t), spec, func(string) {})
	if err != nil || c.Height != int64(spec.Blocks) {
		w.t.Errorf("a chain whose making was cancelled before: %+v, %v", c, err)
	}
}

func (w *chained) stop() {
	w.begin(w.t.TempDir(), w.serve(1, system.Honest))
	var all []*testbed.Process
	for _, n := range w.nodes {
		all = append(all, n.Processes()...)
	}
	for range 2 {
		if err := w.c.Stop(Context(w.t)); err != nil {
			w.t.Errorf("stop: %v", err)
		}
	}
	for _, p := range all {
		if err := syscall.Kill(-p.PID(), 0); !errors.Is(err, syscall.ESRCH) {
			w.t.Errorf("process group %d is there after stop: %v", p.PID(), err)
		}
	}
}
