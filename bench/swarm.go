package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system/deluge"
)

// swarmCase is a swarm with what it should keep to.
type swarmCase struct {
	system string
	nodes  int
	ready  time.Duration // from the start of the first node until all are ready
}

const (
	swarmHarness = 0.05 // of the box's CPU, at most
	swarmTrials  = 2

	swarmFile = `
scenario: disseminate
systems: [%s]
data: {size: 8MiB}
link: {rate: 100Mbit, delay: 1ms, queue: 1MiB}
disseminate: {nodes: %d}
repetitions: %d
warmup: 0
limits: {others: none, machine: none, stall: 1m, deadline: 5m, start: 2m}
skip: [machine]
`
)

// benchSwarm runs large swarms on this machine, one after the other. It fails
// where a leecher has not got the content; the figures are for people to judge.
func benchSwarm(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "plimsoll-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bin := filepath.Join(dir, "plimsoll")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", bin, "./cmd/plimsoll").CombinedOutput(); err != nil {
		return fmt.Errorf("build plimsoll: %w: %s", err, out)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "system\tnodes\tready s\t(at most)\ttrial\tok\tlast s\tline s\tharness CPU\t(at most)\temulator CPU\tbox CPU\tothers\tlargest node")
	var errs []error
	for _, c := range []swarmCase{{"bittorrent", 32, 15 * time.Second}, {"fanout", 32, 15 * time.Second}, {"deluge", 16, 30 * time.Second}} {
		if c.system == "deluge" {
			if problems := (deluge.System{}).Check(ctx, nil); len(problems) > 0 {
				fmt.Printf("deluge is left out: %s (%s)\n", problems[0].What, problems[0].Hint)
				continue
			}
		}
		if err := c.run(ctx, dir, bin, w); err != nil {
			errs = append(errs, fmt.Errorf("%d nodes of %s: %w", c.nodes, c.system, err))
		}
	}
	return errors.Join(append(errs, w.Flush())...)
}

// run executes one swarm and adds its lines to the table.
func (c swarmCase) run(ctx context.Context, dir, bin string, w *tabwriter.Writer) error {
	file, out := filepath.Join(dir, c.system+".yaml"), filepath.Join(dir, c.system)
	if err := os.WriteFile(file, fmt.Appendf(nil, swarmFile, c.system, c.nodes, swarmTrials), 0o644); err != nil {
		return err
	}
	said, failed := exec.CommandContext(ctx, bin, "run", file, "--out", out).CombinedOutput()
	rec, err := record.Open(out)
	if err != nil {
		return fmt.Errorf("%w: %v: %s", err, failed, said)
	}
	defer rec.Close()
	events, err := rec.Events()
	if err != nil {
		return err
	}
	ready := time.Duration(0)
	for _, e := range events {
		if e.Kind == "phase" && e.What == "system ready" {
			ready = e.Took
		}
	}
	trials, err := rec.Trials()
	if err != nil {
		return err
	}
	var errs []error
	done := 0
	for _, t := range trials {
		if t.State != record.Done {
			continue
		}
		done++
		ok := 0
		for op, err := range rec.Ops(t.ID) {
			if err != nil {
				return err
			}
			if op.Kind == record.OpFetch && op.Outcome == record.OK {
				ok++
			}
		}
		if ok != c.nodes-1 {
			errs = append(errs, fmt.Errorf("trial %d: %d of %d leechers have the content: %v", t.Block, ok, c.nodes-1, t.Classes))
		}
		m := t.Metrics
		fmt.Fprintf(w, "%s\t%d\t%.1f\t%.0f\t%d\t%d\t%.2f\t%.2f\t%.1f %%\t%.0f %%\t%.1f %%\t%.0f %%\t%.0f %%\t%.0f MB\n", c.system, c.nodes, ready.Seconds(), c.ready.Seconds(),
			t.Block, ok, m["time_last"], m["line"], 100*m["harness_cpu"], 100*swarmHarness, 100*m["emulator_cpu"], 100*m["box_cpu"], 100*m["others_busy"], m["node_rss_peak"]/1e6)
	}
	if done != swarmTrials {
		lines := strings.Split(strings.TrimSpace(string(said)), "\n")
		errs = append(errs, fmt.Errorf("%d of %d trials were executed (%v): %s", done, swarmTrials, failed, strings.Join(lines[max(0, len(lines)-5):], "\n")))
	}
	return errors.Join(errs...)
}
