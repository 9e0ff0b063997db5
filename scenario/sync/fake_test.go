package sync

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/internal/synthetic"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// The chain of the tests: 1000 blocks of 10 kB. A peer sends 1 MB/s, and a node validates at most
// 1000 blocks per second.
const (
	fakeBlocks   = 1000
	fakeBytes    = 10_000_000
	fakeUp       = 1_000_000.0 // bytes per second of a peer
	fakeValidate = 1000.0      // blocks per second
	fakePoll     = 50 * time.Millisecond
)

// fakeChains is a cluster with a fluid model of following a chain: from its first block on, a node
// receives the combined rate of its honest, reachable peers.
type fakeChains struct {
	mu    sync.Mutex
	nodes []*fakeFollower

	opens time.Duration // duration of Follow
	waits time.Duration // from Follow's return to the first request
	lag   time.Duration // of a subscriber; negative: there is none
	links scenario.NetworkChange
	up    float64 // bytes per second of a peer, unless links says otherwise
	down  float64 // bytes per second of the fresh node; 0: no limit

	replay float64 // seconds; 0: one millisecond per block
	check  func(from, to int) (record.LinkCheck, error)

	refuse  error // returned by Chain
	chains  []system.ChainSpec
	replays []system.FollowTask
}

// fakeFollower is a node of fakeChains. The cluster's lock protects all fields.
type fakeFollower struct {
	c     *fakeChains
	place int

	serves  *system.ServeTask
	started int // number of starts
	halted  int

	runs      *system.FollowTask
	have      float64 // blocks
	since     time.Time
	requests  time.Time // time of the first request
	complete  time.Time
	delivered map[string]float64

	follow  func(system.FollowTask) error
	answer  func(context.Context, *system.Following) error
	asked   int
	process testbed.Process // nil: none
}

func newFakeChains(nodes int) *fakeChains {
	c := &fakeChains{opens: 200 * time.Millisecond, waits: time.Second, lag: -1, up: fakeUp}
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
		Disk: 3 * fakeBytes}, nil
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

// advance moves every node to now. The caller holds the lock.
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
		up := c.up
		if r := c.links.Rates[p.place].Up; r > 0 {
			up = r / 8
		}
		rates[p.address()] = up
		all += up
	}
	if all == 0 {
		return
	}
	perSecond := all
	if c.down > 0 {
		perSecond = min(all, c.down)
	}
	perSecond = min(perSecond*fakeBlocks/fakeBytes, fakeValidate)
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

// peers returns the peers that currently send blocks to the fresh node.
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

func (n *fakeFollower) address() string {
	return fmt.Sprintf("fake:%d", n.place)
}

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
	if n.serves == nil || *n.serves != task {
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
	n.runs, n.have, n.since, n.requests, n.complete = &task, have, time.Now(), time.Now().Add(n.c.waits), time.Time{}
	return os.WriteFile(path, fmt.Append(nil, have), 0o600)
}

func (n *fakeFollower) Following(ctx context.Context) (system.Following, error) {
	f, err := n.following()
	if err == nil && n.answer != nil {
		err = n.answer(ctx, &f)
	}
	return f, err
}

func (n *fakeFollower) following() (f system.Following, err error) {
	n.c.mu.Lock()
	defer n.c.mu.Unlock()
	n.asked++
	n.c.advance()
	if n.runs == nil {
		return f, fmt.Errorf("fake: %w", syscall.ECONNREFUSED)
	}
	f = system.Following{Height: int64(n.have + 1e-9), Tip: "tip", Indexed: -1, Commits: int64(n.have),
		Connected: len(n.c.peers())}
	if f.Height < fakeBlocks {
		f.Tip = fmt.Sprint("tip at ", f.Height)
	}
	if n.c.lag >= 0 {
		f.Indexed = min(f.Height, fakeBlocks-1)
		if !n.complete.IsZero() && time.Since(n.complete) >= n.c.lag {
			f.Indexed = fakeBlocks
		}
	}
	for _, address := range n.runs.Peers {
		f.Peers = append(f.Peers, system.PeerShare{Address: address, Blocks: int64(n.delivered[address])})
		f.TimedOut, f.Failed = f.TimedOut+1, f.Failed+2
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

// Change, Check, Traffic and Emulated implement [Network].
func (c *fakeChains) Change(_ context.Context, change scenario.NetworkChange) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advance()
	c.links = change
	return nil
}

func (c *fakeChains) Check(_ context.Context, from, to int) (record.LinkCheck, error) {
	if c.check == nil {
		return record.LinkCheck{OK: true}, nil
	}
	return c.check(from, to)
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

// syncTest is a runner on a fake cluster, with the results of a trial.
type syncTest struct {
	synthetic.Recorded
	t      *testing.T
	c      *fakeChains
	site   scenario.Site
	runner *runner
	cell   experiment.Cell
	number int

	said   []string // events and messages of the preparation
	stores int      // number of stores not removed
}

// cellOf returns a cell with a section. The defaults are one peer, a disk and a replay.
func cellOf(t *testing.T, section string) experiment.Cell {
	cell := experiment.Cell{ID: "c001", System: "fake", Sync: &experiment.Sync{Blocks: fakeBlocks, Transactions: 1,
		Form: "v2", Peers: 1, Storage: "disk", Replay: true, Poll: experiment.Duration(fakePoll)}}
	synthetic.Decode(t, "{"+section+"}", cell.Sync)
	return cell
}

// follow creates a cluster for the cell of a section.
func follow(t *testing.T, section string) *syncTest {
	t.Helper()
	w := &syncTest{t: t, cell: cellOf(t, section)}
	w.c = newFakeChains(w.cell.Sync.Peers + 1)
	dir := func(context.Context, int64) (scenario.StoreDir, error) {
		d, err := os.MkdirTemp(t.TempDir(), "store")
		w.stores++
		return scenario.StoreDir{Files: testbed.LocalFiles{}, Path: d,
			Remove: func() error { w.stores--; return os.RemoveAll(d) }}, err
	}
	limits := synthetic.Limits()
	limits.Start = experiment.Duration(time.Minute)
	w.site = scenario.Site{
		Use: experiment.SystemUse{Name: "fake", Mode: "start"}, Cluster: w.c, Network: w.c, Seed: 1, Dir: t.TempDir(),
		Limits: limits, Store: dir,
		Say:   func(text string) { w.said = append(w.said, text) },
		Event: func(kind, what, detail string, _ time.Duration) { w.said = append(w.said, kind+" "+what+": "+detail) },
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

// trial executes a trial, and prepares its cell first if needed.
func (w *syncTest) trial(ctx context.Context) error {
	w.t.Helper()
	if w.runner == nil {
		must(w.t, w.prepare())
	}
	w.c.nodes[0].delivered = map[string]float64{}
	if err := w.runner.Ready(ctx, w.cell); err != nil {
		return err
	}
	err := w.Run(ctx, Scenario{}, w.runner, w.cell, 5, scenario.Sink{Number: w.number},
		scenario.Usage{Nodes: []scenario.NodeUsage{{CPU: 3, RSSPeak: 4, Written: 2 * fakeBytes}}})
	must(w.t, w.c.Change(ctx, scenario.NetworkChange{})) // as the engine does
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	if w.stores != 0 || w.c.nodes[0].runs != nil {
		w.t.Errorf("left: %d stores, a node that runs (%v)", w.stores, w.c.nodes[0].runs)
	}
	return err
}

// run executes a trial that must not fail, and whose only operation must have an outcome.
func (w *syncTest) run(outcome string) {
	w.t.Helper()
	must(w.t, w.trial(w.t.Context()))
	if got := w.outcomes(); got != outcome {
		w.t.Errorf("outcome %s, want %s; events %+v, notes %q", got, outcome, w.Events, w.Load.Notes)
	}
}

func (w *syncTest) outcomes() string {
	var all []string
	for _, op := range w.Ops {
		all = append(all, strings.TrimSpace(op.Outcome.String()+" "+op.Class))
	}
	return strings.Join(all, ", ")
}

// exact checks metrics; −1: absent.
func (w *syncTest) exact(want map[string]float64) {
	w.t.Helper()
	w.Holds(w.t, nil, want, 0)
}
