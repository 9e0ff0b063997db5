package sync

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/internal/scenariotest"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// The chain of the tests: 1000 blocks of 10 kB, of which a peer sends 1 MB/s and a
// node validates no more than 1000 blocks a second.
const (
	fakeBlocks   = 1000
	fakeBytes    = 10_000_000
	fakeUp       = 1_000_000.0 // bytes per second of a peer
	fakeValidate = 1000.0      // blocks per second
	fakePoll     = 50 * time.Millisecond
)

// fakeChains is a cluster whose nodes follow a chain as a fluid: from its first
// block on a node gets what its honest, reachable peers send together.
type fakeChains struct {
	mu    sync.Mutex
	nodes []*fakeFollower

	opens time.Duration // Follow takes it
	waits time.Duration // from Follow's return to the first request
	lag   time.Duration // of what subscribes; negative: nothing does
	links scenario.NetworkChange
	down  float64 // bytes per second of the fresh node; 0: no limit
	// pace is what a block takes with these settings, and what subscribes, in seconds, on
	// links without limits; nil: fakeValidate.
	pace   func(system.Options) (validate, index float64)
	replay float64 // seconds; 0: a thousandth for each block

	refuse  error // of Chain
	chains  []system.ChainSpec
	replays []system.FollowTask
}

// fakeFollower is a node of it. All is under the cluster's lock.
type fakeFollower struct {
	c     *fakeChains
	place int

	serves  *system.ServeTask
	started int // times that it was
	halted  int

	runs      *system.FollowTask
	have      float64 // blocks
	since     time.Time
	requests  time.Time // when the first goes out
	validates float64   // blocks per second
	complete  time.Time
	delivered map[string]float64

	follow  func(system.FollowTask) error
	answer  func(*system.Following) error
	hang    func() bool
	asked   int
	connect string
	process testbed.Process // nil: it has none
}

func newFakeChains(nodes int) *fakeChains {
	c := &fakeChains{opens: 200 * time.Millisecond, waits: time.Second, lag: -1}
	for i := range nodes {
		c.nodes = append(c.nodes, &fakeFollower{c: c, place: i, delivered: map[string]float64{}})
	}
	return c
}

func (c *fakeChains) Nodes() (all []system.Node) {
	for _, n := range c.nodes {
		all = append(all, n)
	}
	return all
}
func (c *fakeChains) Identity() map[string]string { return nil }
func (c *fakeChains) Stop(context.Context) error  { return nil }

func (c *fakeChains) Chain(_ context.Context, spec system.ChainSpec, say func(string)) (system.Chain, error) {
	if c.refuse != nil {
		return system.Chain{}, c.refuse
	}
	c.chains = append(c.chains, spec)
	say("making it")
	return system.Chain{ID: fmt.Sprintf("%+v", spec), Tip: "tip", Height: fakeBlocks, Bytes: fakeBytes,
		Disk: 3 * fakeBytes, Built: true, Note: "made again"}, nil
}

func (c *fakeChains) Replay(ctx context.Context, task system.FollowTask) (system.Replayed, error) {
	if _, err := os.Stat(task.Dir); err != nil {
		return system.Replayed{}, err
	}
	if _, refused := task.Settings["refused"]; refused {
		return system.Replayed{}, errors.New(`fake: option "refused": it is`)
	}
	c.replays = append(c.replays, task)
	seconds := c.replay
	if seconds == 0 {
		seconds = fakeBlocks / fakeValidate
	}
	time.Sleep(time.Duration(seconds * float64(time.Second)))
	return system.Replayed{Seconds: seconds, CPU: seconds / 2, Blocks: fakeBlocks}, ctx.Err()
}

// advance moves every node to now. The lock is the caller's.
func (c *fakeChains) advance() {
	now := time.Now()
	n := c.nodes[0]
	if n.runs == nil {
		return
	}
	from := n.since
	if from.Before(n.requests) {
		from = n.requests
	}
	n.since = now
	took := now.Sub(from).Seconds()
	if took <= 0 || n.have >= fakeBlocks {
		return
	}
	rates, all := map[string]float64{}, 0.0
	for _, p := range c.peers() {
		up := fakeUp
		if c.pace != nil {
			up = math.MaxFloat32
		}
		if r := c.links.Rates[p.place].Up; r > 0 {
			up = r / 8
		}
		rates[p.address()] = up
		all += up
	}
	if all == 0 {
		return
	}
	down := c.down
	if r := c.links.Rates[0].Down; r > 0 {
		down = r / 8
	}
	factor := 1.0
	if down > 0 && all > down {
		factor = down / all
	}
	perSecond := all * factor * fakeBlocks / fakeBytes
	if perSecond > n.validates {
		factor *= n.validates / perSecond
		perSecond = n.validates
	}
	got := perSecond * took
	if left := fakeBlocks - n.have; got >= left {
		n.complete = from.Add(time.Duration(left / perSecond * float64(time.Second)))
		got = left
	}
	n.have += got
	for address, up := range rates {
		n.delivered[address] += got * up / all
	}
}

// peers are those that the fresh node gets blocks from now.
func (c *fakeChains) peers() (all []*fakeFollower) {
	apart := func(place int) bool { return slices.Contains(c.links.Apart, place) }
	for _, p := range c.nodes[1:] {
		if p.serves != nil && p.serves.Manner == system.Honest && slices.Contains(c.nodes[0].runs.Peers, p.address()) &&
			apart(p.place) == apart(0) {
			all = append(all, p)
		}
	}
	return all
}

func (n *fakeFollower) address() string { return fmt.Sprintf("fake:%d", n.place) + n.connect }

func (n *fakeFollower) Processes() []testbed.Process {
	if n.process == nil {
		return nil
	}
	return []testbed.Process{n.process}
}

func (n *fakeFollower) Address(context.Context) (string, error) { return n.address(), nil }

func (n *fakeFollower) Serve(_ context.Context, task system.ServeTask) error {
	n.c.mu.Lock()
	defer n.c.mu.Unlock()
	n.c.advance()
	if n.serves == nil || n.serves.Chain != task.Chain || n.serves.Manner != task.Manner ||
		!maps.Equal(n.serves.Settings, task.Settings) {
		n.started++
		n.serves = &task
	}
	return nil
}

func (n *fakeFollower) Follow(ctx context.Context, task system.FollowTask) error {
	if n.follow != nil {
		if err := n.follow(task); err != nil {
			return err
		}
	}
	select {
	case <-time.After(n.c.opens):
	case <-ctx.Done():
		return ctx.Err()
	}
	path := filepath.Join(task.Dir, "blocks")
	b, _ := os.ReadFile(path)
	have := 0.0
	fmt.Sscan(string(b), &have)
	n.c.mu.Lock()
	defer n.c.mu.Unlock()
	n.started++
	n.validates = fakeValidate
	if n.c.pace != nil {
		validate, index := n.c.pace(task.Settings)
		n.validates, n.c.lag = 1/validate, time.Duration(index*fakeBlocks*float64(time.Second))
	}
	n.runs, n.have, n.since, n.requests, n.complete = &task, have, time.Now(), time.Now().Add(n.c.waits), time.Time{}
	return os.WriteFile(path, fmt.Append(nil, have), 0o600)
}

func (n *fakeFollower) Following(ctx context.Context) (system.Following, error) {
	n.c.mu.Lock()
	n.asked++
	hang := n.hang != nil && n.hang()
	n.c.mu.Unlock()
	if hang {
		<-ctx.Done()
		return system.Following{}, fmt.Errorf("fake: %w", ctx.Err())
	}
	n.c.mu.Lock()
	defer n.c.mu.Unlock()
	n.c.advance()
	if n.runs == nil {
		return system.Following{}, fmt.Errorf("fake: %w", syscall.ECONNREFUSED)
	}
	f := system.Following{Height: int64(n.have + 1e-9), Tip: "tip", Indexed: -1, Commits: int64(n.have)}
	if f.Height < fakeBlocks {
		f.Tip = fmt.Sprint("tip at ", f.Height)
	}
	if n.c.lag >= 0 {
		f.Indexed = min(f.Height, fakeBlocks-1)
		if !n.complete.IsZero() && time.Since(n.complete) >= n.c.lag {
			f.Indexed = fakeBlocks
		}
	}
	f.Connected = len(n.c.peers())
	for _, address := range n.runs.Peers {
		f.Peers = append(f.Peers, system.PeerShare{Address: address, Blocks: int64(n.delivered[address])})
		f.TimedOut, f.Failed = f.TimedOut+1, f.Failed+2
	}
	if n.answer != nil {
		if err := n.answer(&f); err != nil {
			return system.Following{}, err
		}
	}
	return f, nil
}

func (n *fakeFollower) Halt(ctx context.Context) error {
	n.halted++
	return n.Kill(ctx)
}

func (n *fakeFollower) Kill(context.Context) error {
	n.c.mu.Lock()
	defer n.c.mu.Unlock()
	n.c.advance()
	if n.runs != nil {
		if err := os.WriteFile(filepath.Join(n.runs.Dir, "blocks"), fmt.Append(nil, n.have), 0o600); err != nil &&
			!os.IsNotExist(err) {
			return err
		}
	}
	n.runs, n.serves = nil, nil
	return nil
}

// Change, Check, Traffic and Emulated make it its own [Network].
func (c *fakeChains) Change(_ context.Context, change scenario.NetworkChange) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advance()
	c.links = change
	return nil
}

func (c *fakeChains) Check(context.Context, int, int) (record.LinkCheck, error) {
	return record.LinkCheck{OK: true}, nil
}

func (c *fakeChains) Traffic(context.Context) []scenario.Traffic {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advance()
	all := make([]scenario.Traffic, len(c.nodes))
	got := 0.0
	for _, blocks := range c.nodes[0].delivered {
		got += blocks
	}
	all[0].Received = 1.1 * got * fakeBytes / fakeBlocks
	return all
}

func (c *fakeChains) Emulated() (bool, string) { return true, "" }

// syncTest is a runner on such a cluster, and what a trial gave.
type syncTest struct {
	t      *testing.T
	c      *fakeChains
	site   scenario.Site
	runner *runner
	cell   experiment.Cell
	number int

	mu     sync.Mutex
	ops    []record.Op
	marks  []record.Mark
	events []record.Event
	said   []string // events and words of the preparation
	load   scenario.Load
	m      map[string]float64
	took   time.Duration
	stores int // made, and not removed
}

// newSyncTest prepares a cell, which set changes, on a cluster with so many peers.
func newSyncTest(t *testing.T, peers int, set func(*fakeChains, *experiment.Cell)) *syncTest {
	t.Helper()
	w := &syncTest{t: t, c: newFakeChains(peers + 1), cell: experiment.Cell{ID: "c001", System: "fake",
		Sync: &experiment.Sync{
			Blocks: fakeBlocks, Transactions: 1, Form: "v2", Peers: peers, Storage: "disk",
			Replay: true, Poll: experiment.Duration(fakePoll),
		}}}
	dir := func(on string) (scenario.StoreDir, error) {
		d, err := os.MkdirTemp(t.TempDir(), "store")
		w.stores++
		return scenario.StoreDir{Files: testbed.LocalFiles{}, Path: d, On: on,
			Remove: func() error { w.stores--; return os.RemoveAll(d) }}, err
	}
	w.site = scenario.Site{
		Use: experiment.SystemUse{Name: "fake", Mode: "start"}, Cluster: w.c, Network: w.c, Seed: 1, Dir: t.TempDir(),
		Limits: experiment.Limits{
			Deadline: experiment.Duration(10 * time.Minute), Stall: experiment.Duration(30 * time.Second),
			Start: experiment.Duration(time.Minute),
		},
		Disk:  func(context.Context) (scenario.StoreDir, error) { return dir("disk") },
		RAM:   func(context.Context, int64) (scenario.StoreDir, error) { return dir("ram") },
		Say:   func(text string) { w.said = append(w.said, text) },
		Event: func(kind, what, detail string, _ time.Duration) { w.said = append(w.said, kind+" "+what+": "+detail) },
	}
	if set != nil {
		set(w.c, &w.cell)
	}
	return w
}

func (w *syncTest) prepare(cells ...experiment.Cell) error {
	w.t.Helper()
	if len(cells) == 0 {
		cells = []experiment.Cell{w.cell}
	}
	r, err := Scenario{}.Prepare(w.t.Context(), w.site, cells)
	if err == nil {
		w.runner = r.(*runner)
	}
	return err
}

// trial executes one; the cell is prepared for it where that was not done.
func (w *syncTest) trial(ctx context.Context) error {
	w.t.Helper()
	if w.runner == nil {
		if err := w.prepare(); err != nil {
			w.t.Fatal(err)
		}
	}
	w.ops, w.marks, w.events = nil, nil, nil
	w.c.nodes[0].delivered = map[string]float64{}
	sum := record.NewSummary()
	if err := w.runner.Ready(ctx, w.cell); err != nil {
		return err
	}
	begun := time.Now()
	load, err := w.runner.Trial(ctx, w.cell, 5, scenariotest.Sink(scenario.Sink{
		Epoch: begun, Number: w.number,
		Block: func(b []byte) error {
			ops, err := record.DecodeBlock(b, nil)
			w.ops = append(w.ops, ops...)
			return errors.Join(err, record.Check(ops), sum.Ops(ops))
		},
		Marks: func(m []record.Mark) error { w.marks = append(w.marks, m...); return nil },
		Event: func(e record.Event) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.events = append(w.events, e)
			return nil
		},
	}))
	w.load, w.took = load, time.Since(begun)
	w.m = Scenario{}.Measure(scenario.Measured{Cell: w.cell, Summary: sum, Load: load, Ops: slices.Values(w.ops),
		Usage: scenario.Usage{SystemCPU: math.NaN(), SystemRSSPeak: math.NaN(),
			Nodes: []scenario.NodeUsage{{CPU: 3, RSSPeak: 4, Written: 2 * fakeBytes}}}})
	if w.stores != 0 {
		w.t.Errorf("%d stores are left", w.stores)
	}
	if w.c.nodes[0].runs != nil {
		w.t.Error("the fresh node runs on")
	}
	return err
}

func (w *syncTest) run() {
	w.t.Helper()
	if err := w.trial(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// outcomes are those of the two operations, with their classes.
func (w *syncTest) outcomes() string {
	var text string
	for _, op := range w.ops {
		text += fmt.Sprintf("%s %s %s;", op.Kind, op.Outcome, op.Class)
	}
	return text
}

func (w *syncTest) want(outcomes string) {
	w.t.Helper()
	if got := w.outcomes(); got != outcomes {
		w.t.Errorf("outcomes %s, want %s; events %+v, notes %q", got, outcomes, w.events, w.load.Notes)
	}
}

// about holds a moment that polls told to what it was: never too early, and too
// late by a poll at most.
func (w *syncTest) about(key string, want float64) {
	w.t.Helper()
	got, has := w.m[key]
	if !has || got < want-1e-6 || got > want+1.01*fakePoll.Seconds() {
		w.t.Errorf("%s: %.4f (%v), want %.4f, and %v more at most", key, got, has, want, fakePoll)
	}
}

func (w *syncTest) happened(what string) (all []record.Event) {
	for _, e := range w.events {
		if e.What == what {
			all = append(all, e)
		}
	}
	return all
}

const allOK = "sync ok ;serve ok ;"
