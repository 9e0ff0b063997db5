package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// syncConfig is the config of a run of the test's trials.
func syncConfig(t *testing.T, s *syncing, more, repetitions string) Config {
	t.Helper()
	return configOf(t, mustPlan(t, fmt.Sprintf(syncExperiment, more, repetitions)), chains{}, s)
}

// A fresh node and its peers have hosts with links of their own; the fresh one is a
// process of its trial, counted whole and to its end, the peers go on from trial to
// trial; a store is on the disk or in memory, and gone when the trial is over.
func TestSync(t *testing.T) {
	slow(t)
	needLinks(t)
	peers := map[int]bool{} // process ids
	var stores []scenario.StoreDir
	onDisk, _ := testbed.Here().Filesystem(os.TempDir())
	s := newSyncing()
	s.trial = func(ctx context.Context, cell experiment.Cell, sink scenario.Sink) error {
		net := s.site.Network
		// The links are the cell's when a trial begins, and changed for it alone.
		c, err := net.Check(ctx, 1, 0)
		if err != nil || c.WantRTT != 0.004 || c.WantRate < 35e6 {
			t.Errorf("it begins with the link %+v, %v", c, err)
		}
		if err := net.Change(ctx, scenario.NetworkChange{Rates: map[int]scenario.Rates{1: {Up: 5e6}}}); err != nil {
			return err
		}
		if cell.Sync.Storage == "disk" {
			if c, err = net.Check(ctx, 1, 0); err != nil || c.WantRate > 5e6 {
				t.Errorf("a slow peer's link: %+v, %v", c, err)
			}
		}
		store, err := s.sync(ctx, cell, sink)
		if err != nil {
			return err
		}
		stores = append(stores, store)
		if on, err := testbed.Here().Filesystem(store.Path); err != nil ||
			cell.Sync.Storage == "ram" && (!on.Memory || on.Free > 24<<20) ||
			cell.Sync.Storage == "disk" && on.Memory != onDisk.Memory {
			t.Errorf("%s is in %s, on %+v (%v)", cell.Sync.Storage, store.Path, on, err)
		}
		for i := range cell.Sync.Peers {
			peers[s.node(1+i).p.ID().PID] = true
		}
		sink.Progress(100, 1000)
		return errors.Join(s.node(0).stop(ctx), store.Remove())
	}
	var got system.Deployment
	cfg := syncConfig(t, s, ", peers: [1, 2], storage: [disk, ram], speeds: {list: [5Mbit]}", "1\nwhere: "+
		"[sync.peers == 1 && sync.storage == disk || sync.peers == 2 && sync.storage == ram]")
	cfg.Systems = []system.System{chains{&got}}
	var most int64 // blocks
	cfg.Progress = func(e Event) { most = max(most, e.Ops) }
	res, err := Run(t.Context(), cfg)
	if err != nil || res.Trials != 2 || res.Failed > 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	cache, err := testbed.CacheDir("chains")
	if err != nil || !got.Follow || got.Swarm || len(got.Hosts) != 3 || got.Cache != cache ||
		filepath.Dir(cache) != os.Getenv(testbed.CacheVariable) {
		t.Errorf("deployed with %+v; chains are in %s, %v", got, cache, err)
	}
	if len(peers) != 2 {
		t.Errorf("processes of peers: %v", peers)
	}
	if most != 100 {
		t.Errorf("progress of %d blocks", most)
	}
	for _, store := range stores {
		if _, err := os.Lstat(store.Path); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", store.Path, err)
		}
	}
	for _, cell := range cfg.Plan.Cells {
		for _, u := range s.usage[cell.ID] {
			fresh := u.Nodes[0]
			if len(u.Nodes) != 3 || fresh.CPU < followerCPU || fresh.CPU > 20*followerCPU ||
				fresh.RSSPeak < followerHolds || fresh.RSSPeak > 4*followerHolds || u.SystemCPU < fresh.CPU {
				t.Errorf("%s: %+v", cell.ID, u)
			}
			switch {
			case cell.Sync.Storage == "ram" && fresh.Written >= followerWrites:
				t.Errorf("%g bytes written to a disk in memory", fresh.Written)
			case cell.Sync.Storage == "disk" && !onDisk.Memory &&
				(fresh.Written < followerWrites || fresh.Written > 2*followerWrites):
				t.Errorf("%g bytes written, %d are in the store", fresh.Written, followerWrites)
			}
			for i, peer := range u.Nodes[1:] {
				if !(peer.RSSPeak > 0) || peer.RSSPeak > followerHolds {
					if i < cell.Sync.Peers {
						t.Errorf("%s: peer %d %+v", cell.ID, i, peer)
					}
				}
			}
		}
	}
	run := readRun(t, cfg.Dir)
	if got := run.meta["chains"]; got != fmt.Sprintf("%q", cache) {
		t.Errorf("the record says that chains are in %s", got)
	}
	for _, trial := range run.trials {
		for _, why := range trial.Invalid {
			if why == record.ReasonDaemonDied || why == record.ReasonDaemonRestarted {
				t.Errorf("a fresh node that was halted on purpose makes the trial %s", why)
			}
		}
	}
	if len(run.links) == 0 {
		t.Fatal("no link was measured")
	}
	for _, l := range run.links {
		if l.To != "chains-01" || !strings.HasPrefix(l.From, "chains-0") || l.From == l.To {
			t.Errorf("measured %s → %s", l.From, l.To)
		}
	}
}

// A peer that dies unasked makes the trial invalid, and is there again in the next; a
// fresh node that dies is what the trial is about.
func TestDeathsInASync(t *testing.T) {
	slow(t)
	needLinks(t)
	s := newSyncing()
	s.trial = func(ctx context.Context, cell experiment.Cell, sink scenario.Sink) error {
		store, err := s.sync(ctx, cell, sink)
		if err != nil {
			return err
		}
		if sink.Number < 3 {
			p := s.node(1 - sink.Number%2).p // a peer, the fresh node, a peer
			if err := p.Signal(syscall.SIGKILL); err != nil {
				return err
			}
			<-p.Done()
			if sink.Number == 0 { // somebody else has taken its place when the trial ends
				if err := s.node(1).serve(ctx); err != nil {
					return err
				}
			}
		}
		return errors.Join(s.node(0).stop(ctx), store.Remove())
	}
	cfg := syncConfig(t, s, "", "4")
	res, err := Run(t.Context(), cfg)
	if err != nil || res.Trials != 4 || res.Failed > 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	for _, trial := range readRun(t, cfg.Dir).trials {
		noted := slices.ContainsFunc(trial.Notes, func(n string) bool {
			return strings.HasPrefix(n, "1 of the processes of chains died")
		})
		if slices.Contains(trial.Invalid, record.ReasonDaemonDied) != (trial.Block == 0 || trial.Block == 2) ||
			noted != (trial.Block < 3) || slices.Contains(trial.Invalid, record.ReasonDaemonRestarted) {
			t.Errorf("block %d: %v %v", trial.Block, trial.Invalid, trial.Notes)
		}
	}
}

// A run that is killed while a fresh node follows leaves nothing behind.
func TestKilledSyncLeavesNothing(t *testing.T) {
	slow(t)
	needLinks(t)
	procs := killVictim(t, "sync-victim", "2")
	count := 0
	for _, p := range procs {
		if strings.Contains(p, "node follower") {
			count++
		}
	}
	if count != 3 {
		t.Errorf("%d nodes ran: %q", count, procs)
	}
}

// What the machine has is compared with what the plan asks for, before anything runs.
func TestPreconditionsOfChains(t *testing.T) {
	cfg := syncConfig(t, newSyncing(), ", peers: [1, 3], storage: [disk, ram]", "2")
	largest := experiment.RAMDiskBytes(experiment.StoreBytes(cfg.Plan.Cells[0].Estimate.Bytes))
	nodes := 4 * float64(chains{}.Info().NodeMemory)
	need := nodes + largest + testbed.RAMReserve
	if got := lacksMemory(cfg, need); got != nil {
		t.Errorf("enough memory: %+v", got)
	}
	if got := lacksMemory(cfg, need-1); len(got) != 1 || !got[0].Blocking ||
		!strings.Contains(got[0].What, "a RAM disk for the largest store") {
		t.Errorf("too little memory: %+v", got)
	}
	disk := slices.DeleteFunc(slices.Clone(cfg.Plan.Cells),
		func(c experiment.Cell) bool { return c.Sync.Storage == "ram" })
	all := cfg.Plan.Cells
	cfg.Plan.Cells = disk
	if got := lacksMemory(cfg, nodes); got != nil {
		t.Errorf("without a RAM disk: %+v", got)
	}
	cfg.Plan.Cells = all
	if got := Blocking(checkDisk(t.Context(), cfg, nodePlace{})); len(got) > 0 {
		t.Errorf("a small chain: %+v", got)
	}
	for i := range cfg.Plan.Cells {
		cfg.Plan.Cells[i].Estimate.Bytes = 1 << 60
	}
	if got := Blocking(checkDisk(t.Context(), cfg, nodePlace{})); len(got) != 1 ||
		!strings.Contains(got[0].Hint, "sync.blocks") {
		t.Errorf("an exbibyte: %+v", got)
	}
	elsewhere := cfg
	elsewhere.Machines = 9
	if got := Blocking(checkDisk(t.Context(), elsewhere, nodePlace{})); len(got) != 0 {
		t.Errorf("an exbibyte on other machines: %+v", got)
	}
	if got := Blocking(checkMemory(t.Context(), cfg, ourPlace(cfg))); len(got) != 1 {
		t.Errorf("an exbibyte in memory: %+v", got)
	}
}

// filesystem is a machine with this file system.
type filesystem struct {
	testbed.Machine
	is testbed.Filesystem
}

func (f filesystem) Filesystem(string) (testbed.Filesystem, error) { return f.is, nil }

// A disk that is in memory is worth a word; when it is what a RAM disk is compared
// with, nothing runs.
func TestDiskInMemory(t *testing.T) {
	for storage, compared := range map[string]bool{"disk": false, "[disk, ram]": true} {
		cfg := syncConfig(t, newSyncing(), ", storage: "+storage, "2")
		for _, memory := range []bool{false, true} {
			at := nodePlace{Machine: filesystem{is: testbed.Filesystem{Memory: memory}}, first: true}
			got := checkStorage(t.Context(), cfg, at)
			if !memory && got != nil || memory && (len(got) != 1 || got[0].Blocking != compared ||
				!strings.Contains(got[0].What, ", a file system in memory") || !strings.Contains(got[0].Hint, "TMPDIR")) {
				t.Errorf("storage %s, memory %v: %+v", storage, memory, got)
			}
		}
	}
	if on, err := testbed.Here().Filesystem("/dev/shm"); err == nil && on.Memory {
		t.Setenv("TMPDIR", "/dev/shm")
		cfg := syncConfig(t, newSyncing(), ", storage: [disk, ram]", "2")
		if got := Blocking(checkStorage(t.Context(), cfg, ourPlace(cfg))); len(got) != 1 {
			t.Errorf("stores in /dev/shm: %+v", got)
		}
		cfg.Machines = 4
		if got := checkStorage(t.Context(), cfg, ourPlace(cfg)); len(got) != 0 {
			t.Errorf("stores on other machines: %+v", got)
		}
	}
}

// What changes links needs an emulator, and there is time for all that a trial does.
func TestLinksAndTimeOfChains(t *testing.T) {
	for more, want := range map[string][2]bool{
		"": {false, false},
		", speeds: {lognormal: 8Mbit, spread: 3}":         {true, false},
		", peers: 2, trouble: [{silent: 1}]":              {false, false},
		", peers: 2, trouble: [{slow: 1, rate: 500kbit}]": {true, false},
		", faults: [{cut: node, at: 50%, for: 2s}]":       {true, true},
		", faults: [{rate: 1Mbit, of: peers, at: 50%}]":   {true, false},
		", faults: [{crash: node, at: 50%, for: 2s}]":     {false, false},
	} {
		cfg := syncConfig(t, newSyncing(), more, "2")
		if changes, cuts := plansChanges(cfg.Plan); changes != want[0] || cuts != want[1] {
			t.Errorf("%q: changes %v, cuts %v", more, changes, cuts)
		}
	}
	limits := experiment.Limits{Start: experiment.Duration(10 * time.Second)}
	of := func(more string) time.Duration {
		return nodesTime(syncConfig(t, newSyncing(), more, "2").Plan.Cells[0], limits)
	}
	if one, three := of(""), of(", peers: 3"); one < 20*time.Second || three-one != 40*time.Second {
		t.Errorf("%s with one peer, %s with three", one, three)
	}
	if names := hostNames("a", syncConfig(t, newSyncing(), ", peers: [1, 3]", "2").Plan.Cells); !slices.Equal(names,
		[]string{"a-01", "a-02", "a-03", "a-04"}) {
		t.Errorf("hosts %q", names)
	}
	if math.IsNaN(storeBytes(experiment.Cell{})) {
		t.Error("a store of nothing")
	}
}
