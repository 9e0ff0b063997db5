package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/disseminate"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
)

const swarmExperiment = `
scenario: disseminate
systems: [{use: bittorrent, with: {piece: 16KiB}}]
data: {size: 512KiB}
link: {rate: 40Mbit, delay: 5ms, tolerance: 30%%, emulator: user}
disseminate: {nodes: %d%s}
repetitions: 2
limits: {deadline: 1m, start: 30s}
`

// swarm is a scenario whose trials are the test's, on nodes that fetch from each other.
type swarm struct{ played }

func (s *swarm) node(i int) system.Member { return s.site.Cluster.Nodes()[i].(system.Member) }

// publish puts content of its own on node 0 and tells the others to fetch it.
func (s *swarm) publish(ctx context.Context, cell experiment.Cell, block int, leechers ...int) (ref system.Ref,
	content []byte, err error) {
	content = make([]byte, cell.Data.Size)
	rng := rand.NewChaCha8([32]byte{byte(block)})
	_, _ = rng.Read(content)
	if ref, err = s.node(0).Publish(ctx, fmt.Sprint("content ", block), int64(len(content)),
		bytes.NewReader(content)); err != nil {
		return ref, content, err
	}
	return ref, content, s.fetch(ctx, ref, leechers...)
}

func (s *swarm) fetch(ctx context.Context, ref system.Ref, leechers ...int) error {
	address, err := s.node(0).Address(ctx)
	for _, i := range leechers {
		err = errors.Join(err, s.node(i).Fetch(ctx, ref, []string{address}))
	}
	return err
}

// has waits until a node has so many bytes.
func (s *swarm) has(ctx context.Context, i int, ref system.Ref, n int64) error {
	for {
		f, err := s.node(i).Progress(ctx, ref)
		if err != nil || f.Verified >= n {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("node %d has %d of %d bytes: %w", i, f.Verified, n, context.Cause(ctx))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// needLinks skips where links cannot be emulated one by one.
func needLinks(t *testing.T) {
	t.Helper()
	bed, err := testbed.New(t.Context(), testbed.Options{Dir: t.TempDir(), Emulate: "user"})
	if err != nil {
		t.Skip(err)
	}
	must(t, bed.Close(t.Context()))
}

// What a trial does to the links of a swarm and to its nodes is over when the next
// one begins: rates and partitions, processes that were killed and started again,
// and processes that died by themselves, which is no reason to call it invalid.
func TestSwarm(t *testing.T) {
	slow(t)
	needLinks(t)
	s := &swarm{played{Scenario: disseminate.Scenario{}}}
	s.trial = func(ctx context.Context, cell experiment.Cell, sink scenario.Sink) error {
		net := s.site.Network
		size := int64(cell.Data.Size)
		// From trial to trial everything is as the cell says.
		c, err := net.Check(ctx, 0, 2)
		if err != nil || c.WantRTT != 0.01 || c.RTT < 0.01 || c.WantRate < 35e6 {
			t.Errorf("trial %d begins with the link %+v, %v", sink.Number, c, err)
		}
		sink.Begin()
		before := net.Traffic(ctx)[2].Received
		// Node 2 is alone: nothing reaches it.
		if err := net.Change(ctx,
			scenario.NetworkChange{Apart: []int{2}, Rates: map[int]scenario.Rates{0: {Up: 10e6}}}); err != nil {
			return err
		}
		ref, content, err := s.publish(ctx, cell, sink.Number, 1, 2)
		if err != nil {
			return err
		}
		if err := s.has(ctx, 1, ref, size); err != nil {
			return err
		}
		if f, err := s.node(2).Progress(ctx, ref); err != nil || f.Verified > 0 {
			t.Errorf("node 2 was cut off, and has %d bytes (%v)", f.Verified, err)
		}
		// A change replaces the one before: the rate of node 0 is the cell's again.
		if err := net.Change(ctx, scenario.NetworkChange{Rates: map[int]scenario.Rates{1: {Up: 8e6,
			Down: 10e6}}}); err != nil {
			return err
		}
		for _, c := range []struct {
			from, to int
			rate     float64
		}{{0, 1, 10e6}, {1, 0, 8e6}} {
			got, err := net.Check(ctx, c.from, c.to)
			// a short stream on a busy machine; the cell has 40 Mbit/s
			if err != nil || got.WantRate > c.rate || got.WantRate < 0.9*c.rate || got.Rate > 1.2*c.rate {
				t.Errorf("link %d → %d with a rate of %g bit/s: %+v, %v", c.from, c.to, c.rate, got, err)
			}
		}
		if err := s.fetch(ctx, ref, 2); err != nil { // it may have given up its only peer
			return err
		}
		if err := s.has(ctx, 2, ref, size); err != nil {
			return err
		}
		if after := net.Traffic(ctx)[2].Received; after-before < float64(size) {
			t.Errorf("%g bytes crossed the link of node 2, which fetched %d", after-before, size)
		}
		again := s.node(2).(system.Restarter)
		if err := errors.Join(again.Kill(ctx), again.Restart(ctx, true)); err != nil {
			return err
		}
		var back bytes.Buffer
		if err := s.node(2).ReadBack(ctx, ref, &back); err != nil || !bytes.Equal(back.Bytes(), content) {
			t.Errorf("read back %d bytes: %v", back.Len(), err)
		}
		sink.End()
		if err := sink.Event(record.Event{At: time.Now(), Kind: "fault", What: "seen"}); err != nil {
			return err
		}
		if err := sink.Marks([]record.Mark{{Node: 2, Start: 1, End: 2, Verified: 3}}); err != nil {
			return err
		}
		// It dies by itself, and nobody starts it again.
		victim := s.node(1).Processes()[0]
		if err := victim.Signal(syscall.SIGKILL); err != nil {
			return err
		}
		<-victim.Done()
		return nil
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cfg := swarmConfig(t, 3, "")
	cfg.Scenario = s
	res, err := Run(ctx, cfg)
	must(t, err)
	if res.Trials != 2 || res.Failed > 0 {
		t.Errorf("got %+v", res)
	}
	run := readRun(t, cfg.Dir)
	hosts := []string{"bittorrent-01", "bittorrent-02", "bittorrent-03"}
	for _, trial := range run.trials {
		for _, why := range trial.Invalid {
			if why == record.ReasonDaemonDied || why == record.ReasonDaemonRestarted {
				t.Errorf("block %d is %s: %v", trial.Block, why, trial.Notes)
			}
		}
		if !slices.ContainsFunc(trial.Notes, func(n string) bool {
			return strings.HasPrefix(n, "1 of the processes of bittorrent died")
		}) {
			t.Errorf("no note of the process that died: %q", trial.Notes)
		}
		var named []string
		for _, d := range trial.Details {
			if d.Kind == record.DetailNodeRSS && d.Value > 0 {
				named = append(named, d.Name)
			}
		}
		if !slices.Equal(named, hosts) {
			t.Errorf("memory of the nodes %q", named)
		}
	}
	count := map[string]int{}
	for _, e := range run.events {
		if e.Trial != 0 || e.Kind == "health" {
			count[e.What]++
		}
	}
	// Node 1 dies in both trials, and is started again before the second. That it
	// died, and when, the scenario tells; this one does not.
	if count["seen"] != 2 || count["process died"] != 0 || count["node restarted"] != 1 || count["restart"] != 0 {
		t.Errorf("events %v", count)
	}
	for _, u := range s.usage[cfg.Plan.Cells[0].ID] {
		if len(u.Nodes) != 3 || !(u.HarnessCPU > 0 && u.HarnessCPU < 1) || !(u.EmulatorCPU > 0) ||
			!(u.BoxCPU > u.HarnessCPU) || u.Nodes[2].CPU <= 0 {
			t.Errorf("usage %+v", u)
		}
	}
}
