package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
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
	"github.com/plimsoll-project/plimsoll/system/bittorrent"
	"github.com/plimsoll-project/plimsoll/testbed"
)

const swarmExperiment = `
scenario: disseminate
systems: [{use: bittorrent, with: {piece: 16KiB}}]
data: {size: 512KiB}
link: {rate: 40Mbit, delay: 5ms, tolerance: 30%%, emulator: user}
disseminate: {nodes: %d%s}
repetitions: 2
warmup: 0
limits: {others: none, machine: none, deadline: 1m, start: 30s}
skip: [machine]
`

func swarmPlan(t *testing.T, src string) *experiment.Plan {
	t.Helper()
	plan, err := planOfSwarm(src)
	must(t, err)
	return plan
}

func planOfSwarm(src string) (*experiment.Plan, error) {
	info := (bittorrent.System{}).Info()
	spec := experiment.SystemSpec{Name: info.Name, Modes: []string{"start"}, Can: info.Can,
		Options: info.Options}
	e, err := experiment.Parse("test.yaml", []byte(src), nil, experiment.Catalog{spec})
	if err != nil {
		return nil, err
	}
	return e.Plan()
}

// swarm is a scenario whose trials are the test's.
type swarm struct {
	disseminate.Scenario
	site  scenario.Site
	trial func(ctx context.Context, s *swarm, cell experiment.Cell, sink scenario.Sink) error
	usage []scenario.Usage
}

func (s *swarm) Prepare(_ context.Context, site scenario.Site, _ []experiment.Cell) (scenario.Runner, error) {
	s.site = site
	return s, nil
}

func (s *swarm) Problems(experiment.SystemUse, system.Info, []experiment.Cell) []system.Problem {
	return nil
}

func (s *swarm) Measure(m scenario.Measured) map[string]float64 {
	s.usage = append(s.usage, m.Usage)
	return nil
}

func (s *swarm) Close(context.Context) error { return nil }

func (s *swarm) Trial(ctx context.Context, cell experiment.Cell, _ uint64, sink scenario.Sink) (scenario.Load, error) {
	err := s.trial(ctx, s, cell, sink)
	op := record.Op{Kind: record.OpFetch, LastByte: int64(time.Since(sink.Epoch))}
	return scenario.Load{Seconds: 1}, errors.Join(err, sink.Block(record.AppendBlock(nil, []record.Op{op})))
}

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

func (s *swarm) run(t *testing.T, src string) (Result, string) {
	t.Helper()
	needLinks(t)
	dir := filepath.Join(t.TempDir(), "run")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	res, err := runPlan(ctx, Config{Plan: swarmPlan(t, src), Systems: []system.System{bittorrent.System{}}, Scenario: s,
		Dir: dir})
	must(t, err)
	return res, dir
}

// What a trial does to the links of a swarm and to its nodes is over when the next
// one begins: rates and partitions, processes that were killed and started again,
// and processes that died by themselves, which is no reason to call it invalid.
func TestSwarm(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("runs for some seconds")
	}
	s := &swarm{}
	s.trial = func(ctx context.Context, s *swarm, cell experiment.Cell, sink scenario.Sink) error {
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
	res, dir := s.run(t, fmt.Sprintf(swarmExperiment, 3, ""))
	if res.Trials != 2 || res.Failed > 0 {
		t.Errorf("got %+v", res)
	}
	rec, err := record.Open(dir)
	must(t, err)
	defer rec.Close()
	trials, err := rec.Trials()
	must(t, err)
	hosts := []string{"bittorrent-01", "bittorrent-02", "bittorrent-03"}
	for _, trial := range trials {
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
	events, err := rec.Events()
	must(t, err)
	count := map[string]int{}
	for _, e := range events {
		if e.Trial != 0 || e.Kind == "health" {
			count[e.What]++
		}
	}
	// Node 1 dies in both trials, and is started again before the second. That it
	// died, and when, the scenario tells; this one does not.
	if count["seen"] != 2 || count["process died"] != 0 || count["node restarted"] != 1 || count["restart"] != 0 {
		t.Errorf("events %v", count)
	}
	for _, u := range s.usage {
		if len(u.Nodes) != 3 || !(u.HarnessCPU > 0 && u.HarnessCPU < 1) || !(u.EmulatorCPU > 0) ||
			!(u.BoxCPU > u.HarnessCPU) || u.Nodes[2].CPU <= 0 {
			t.Errorf("usage %+v", u)
		}
	}
}
