package engine

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/bittorrent"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// victim is a run of a swarm that says when all its nodes are at work, and then
// waits to be killed.
func victim(nodes, dir string) error {
	n, err := strconv.Atoi(nodes)
	if err != nil {
		return err
	}
	plan, err := planOfSwarm(fmt.Sprintf(swarmExperiment, n, ""))
	if err != nil {
		return err
	}
	s := &swarm{}
	s.trial = func(ctx context.Context, s *swarm, cell experiment.Cell, sink scenario.Sink) error {
		var leechers []int
		for i := 1; i < n; i++ {
			leechers = append(leechers, i)
		}
		if _, _, err := s.publish(ctx, cell, sink.Number, leechers...); err != nil {
			return err
		}
		fmt.Println("spreading")
		<-ctx.Done()
		return ctx.Err()
	}
	_, err = Run(context.Background(), Config{Plan: plan, Systems: []system.System{bittorrent.System{}}, Scenario: s,
		Dir: dir})
	return err
}

// A run that is killed in the middle of a trial leaves nothing behind: no node,
// whatever it was doing, no emulator, no content.
func TestKilledSwarmLeavesNothing(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("runs for some seconds")
	}
	needLinks(t)
	const nodes = 4
	procs := killVictim(t, "victim", strconv.Itoa(nodes))
	count := 0
	for _, p := range procs {
		if strings.Contains(p, "node bittorrent") {
			count++
		}
	}
	if count != nodes {
		t.Errorf("%d nodes ran: %q", count, procs)
	}
}

// killVictim starts a run, kills it when it says that it is at work, and waits until
// nothing of it is left. It returns the processes that there were.
func killVictim(t *testing.T, what, nodes string) (procs []string) {
	t.Helper()
	tmp, dir := t.TempDir(), filepath.Join(t.TempDir(), "run")
	c := exec.Command(os.Args[0], what, nodes, dir)
	c.Env = append(os.Environ(), "TMPDIR="+tmp, testbed.CacheVariable+"="+filepath.Join(t.TempDir(), "cache"))
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.StdoutPipe()
	must(t, err)
	must(t, c.Start())
	watchdog := time.AfterFunc(2*time.Minute, func() { _ = c.Process.Kill() })
	defer watchdog.Stop()
	in := bufio.NewScanner(out)
	begun := in.Scan()
	procs = marked(tmp)
	_, store, _ := strings.Cut(in.Text(), " ") // where it says one
	if store != "" {
		if _, err := os.Stat(store); err != nil {
			t.Errorf("the store was not there: %v", err)
		}
	}
	if err := c.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = c.Wait()
	if !begun {
		t.Fatalf("it never began: %s", &said)
	}
	for limit := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		left := marked(tmp)
		for _, glob := range []string{filepath.Join(tmp, "plimsoll-run-*"), filepath.Join(tmp, "plimsoll-ram-*"),
			filepath.Join(tmp, "*", "*.run.jsonl")} {
			files, _ := filepath.Glob(glob)
			left = append(left, files...)
		}
		if mounts, err := os.ReadFile("/proc/self/mountinfo"); err != nil || bytes.Contains(mounts, []byte(tmp)) {
			left = append(left, fmt.Sprint("a mount in ", tmp, err))
		}
		if _, err := os.Stat(store); store != "" && err == nil {
			left = append(left, store)
		}
		if len(left) == 0 {
			return procs
		}
		if time.Now().After(limit) {
			t.Fatalf("left behind:\n%s", strings.Join(left, "\n"))
		}
	}
}

// marked are the command lines of the processes that have this directory for
// their temporary files, or below it.
func marked(tmp string) (lines []string) {
	procs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, p := range procs {
		env, err := os.ReadFile(p)
		if err != nil || !bytes.Contains(env, []byte("TMPDIR="+tmp)) {
			continue
		}
		cmd, _ := os.ReadFile(filepath.Join(filepath.Dir(p), "cmdline"))
		lines = append(lines, strings.TrimSpace(strings.ReplaceAll(string(cmd), "\x00", " ")))
	}
	return lines
}
