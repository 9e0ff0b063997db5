package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/scenario"
	syncs "github.com/plimsoll-project/plimsoll/scenario/sync"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// What the process of a fresh node does in these tests before it says that it is done.
const (
	followerCPU    = 0.15     // seconds, at least
	followerWrites = 6 << 20  // bytes into its store, brought to the disk
	followerHolds  = 96 << 20 // bytes, for a moment that no look once a second sees
	followerDone   = "done"   // file in its store
)

// follower is the process of a node: a fresh one with the directory of its store, or
// a peer without.
func follower(args []string) error {
	if len(args) > 0 {
		if err := follow(args[0]); err != nil {
			return err
		}
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

func follow(dir string) error {
	f, err := os.Create(filepath.Join(dir, "store"))
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, followerWrites))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	b, err := unix.Mmap(-1, 0, followerHolds, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return err
	}
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	if err := unix.Munmap(b); err != nil {
		return err
	}
	for used := 0.0; used < followerCPU; {
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
			return err
		}
		used = float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
	}
	return os.WriteFile(filepath.Join(dir, followerDone), nil, 0o600)
}

// chains is a system whose nodes are such processes.
type chains struct {
	got *system.Deployment
}

func (chains) Info() system.Info {
	return system.Info{
		Name: "chains", Summary: "a system of tests", Modes: []system.Mode{system.Start}, Can: []string{"follow"},
		NodeMemory: 200 << 20,
		Options:    []system.Option{{Name: "interval", Type: "duration", Default: "1s", Help: "of tests"}},
	}
}

func (chains) Check(context.Context, system.Options) []system.Problem { return nil }

func (c chains) Start(_ context.Context, d system.Deployment) (system.Cluster, error) {
	if c.got != nil {
		*c.got = d
	}
	var cluster chainCluster
	for _, h := range d.Hosts {
		cluster = append(cluster, &chainNode{d: d, host: h})
	}
	return cluster, nil
}

type chainCluster []system.Node

func (c chainCluster) Nodes() []system.Node        { return c }
func (c chainCluster) Identity() map[string]string { return map[string]string{"version": "1"} }

func (c chainCluster) Stop(ctx context.Context) (err error) {
	for _, n := range c {
		err = errors.Join(err, n.(*chainNode).stop(ctx))
	}
	return err
}

type chainNode struct {
	d    system.Deployment
	host testbed.Host
	p    testbed.Process
}

func (n *chainNode) Processes() []testbed.Process {
	if n.p == nil {
		return nil
	}
	return []testbed.Process{n.p}
}

func (n *chainNode) start(ctx context.Context, args ...string) (err error) {
	if err := n.stop(ctx); err != nil {
		return err
	}
	command, err := n.d.Node("follower", args...)
	if err != nil {
		return err
	}
	n.p, err = n.host.Start(ctx, testbed.Command{Name: "follower", Role: "system", Args: command, Dir: n.d.Dir})
	return err
}

func (n *chainNode) stop(ctx context.Context) error {
	if n.p == nil {
		return nil
	}
	defer func() { n.p = nil }()
	return n.p.Stop(ctx)
}

// serve makes it a peer: one that is there goes on.
func (n *chainNode) serve(ctx context.Context) error {
	if n.p != nil && !testbed.Ended(n.p) {
		return nil
	}
	return n.start(ctx)
}

const syncExperiment = `
scenario: sync
systems: [{use: chains}]
link: {rate: 40Mbit, delay: 2ms, tolerance: 30%%, emulator: user}
sync: {blocks: 100, transactions: 1%s}
repetitions: %s
limits: {deadline: 1m, start: 30s}
`

// syncing is a scenario whose trials are the test's, on nodes that follow a chain.
type syncing struct{ played }

func newSyncing() *syncing { return &syncing{played{Scenario: syncs.Scenario{}}} }

func (s *syncing) node(i int) *chainNode { return s.site.Cluster.Nodes()[i].(*chainNode) }

// sync is one whole trial: peers, a store, a fresh node until it is done.
func (s *syncing) sync(ctx context.Context, cell experiment.Cell, sink scenario.Sink) (store scenario.StoreDir,
	err error) {
	for i := range cell.Sync.Peers {
		if err := s.node(1 + i).serve(ctx); err != nil {
			return store, err
		}
	}
	memory := int64(0)
	if cell.Sync.Storage == "ram" {
		memory = 4 * followerWrites
	}
	if store, err = s.site.Store(ctx, memory); err != nil {
		return store, err
	}
	sink.Begin()
	if err := s.node(0).start(ctx, store.Path); err != nil {
		return store, err
	}
	for {
		if _, err := os.Stat(filepath.Join(store.Path, followerDone)); err == nil {
			sink.End()
			return store, nil
		}
		select {
		case <-ctx.Done():
			return store, ctx.Err()
		case <-s.node(0).p.Done():
			return store, errors.New("the fresh node has ended")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// syncVictim is a run that says when a fresh node follows, on a RAM disk, and then
// waits to be killed.
func syncVictim(peers, dir string) error {
	plan, err := planOf(fmt.Sprintf(syncExperiment, ", storage: ram, peers: "+peers, "2"))
	if err != nil {
		return err
	}
	s := newSyncing()
	s.trial = func(ctx context.Context, cell experiment.Cell, sink scenario.Sink) error {
		store, err := s.sync(ctx, cell, sink)
		if err != nil {
			return err
		}
		fmt.Println("following", store.Path)
		<-ctx.Done()
		return ctx.Err()
	}
	_, err = Run(context.Background(), Config{Plan: plan, Systems: []system.System{chains{}}, Scenario: s,
		Progress: silent, Dir: dir})
	return err
}
