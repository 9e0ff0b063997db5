package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/nginx"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

const crashExperiment = `
scenario: retrieve
systems: [static, {use: nginx, with: {image: "IMAGE"}}]
data: {objects: 1, size: 1MiB}
link: {delay: 1ms, rate: 1Gbit}
retrieve: {range: 64KiB, concurrency: 4, duration: 150ms}
repetitions: 4
warmup: 1
limits: {others: none, machine: none}
skip: [machine]
`

// TestKilledAtAnyMoment kills a run with SIGKILL at random moments, checks that
// nothing of it is left (processes, also those from a container image, scratch
// directories), resumes it, and in the end finds every trial of the plan done exactly once.
func TestKilledAtAnyMoment(t *testing.T) {
	if testing.Short() {
		t.Skip("runs for some seconds")
	}
	systemtest.Need(t, "nginx", system.Check(t.Context(), nginx.System{}, nil))
	t.Parallel()
	ref, store := systemtest.PulledApart(t, nginxImage(t))
	tmp, dir := t.TempDir(), filepath.Join(t.TempDir(), "run")
	file := filepath.Join(t.TempDir(), "crash.yaml")
	must(t, os.WriteFile(file, []byte(strings.Replace(crashExperiment, "IMAGE", ref, 1)), 0o644))
	start := func(args ...string) (*exec.Cmd, *bytes.Buffer) {
		var out bytes.Buffer
		c := exec.Command(os.Args[0], args...)
		c.Env = append(append(os.Environ(), "PLIMSOLL_TEST_MAIN=1", "TMPDIR="+tmp), store...)
		c.Stdout, c.Stderr = &out, &out
		must(t, c.Start())
		return c, &out
	}
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	args := []string{"run", file, "--out", dir, "--keep-going"}
	finished := false
	for kill := 0; kill < 3 && !finished; kill++ {
		c, out := start(args...)
		pause := time.Duration(rng.Int64N(int64(3500*time.Millisecond))) + 50*time.Millisecond
		done := make(chan error, 1)
		go func() { done <- c.Wait() }()
		select {
		case err := <-done:
			finished = true
			if err != nil {
				t.Fatalf("session %d ended with %v:\n%s", kill, err, out)
			}
		case <-time.After(pause):
			c.Process.Kill()
			<-done
		}
		nothingLeft(t, tmp, dir)
		if _, err := os.Stat(filepath.Join(dir, "plan.json")); err == nil {
			args = []string{"resume", dir, "--keep-going"}
		} else {
			os.RemoveAll(dir) // killed before the run directory was one
		}
	}
	if !finished {
		c, out := start(args...)
		watchdog := time.AfterFunc(2*time.Minute, func() { c.Process.Signal(syscall.SIGQUIT) })
		defer watchdog.Stop()
		if err := c.Wait(); err != nil && !strings.Contains(out.String(), "no trial is valid") {
			t.Fatalf("the last session ended with %v:\n%s", err, out)
		}
		nothingLeft(t, tmp, dir)
	}
	r, err := record.Open(dir)
	must(t, err)
	defer r.Close()
	plan, err := experiment.LoadPlan(r.Plan())
	must(t, err)
	trials, err := r.Trials()
	must(t, err)
	seen := map[string]int{}
	for _, tr := range trials {
		if tr.State != record.Done {
			continue
		}
		key := tr.Cell + "/" + string(rune('0'+tr.Block+1))
		seen[key]++
		// On a starved machine a short trial may end before its first answers.
		if tr.Outcomes["ok"]+tr.Outcomes["in-flight"] == 0 || tr.Outcomes["wrong-bytes"] > 0 {
			t.Errorf("trial %s: outcomes %v", key, tr.Outcomes)
		}
	}
	if want := len(plan.Cells) * (plan.Warmup + plan.Blocks); len(seen) != want {
		t.Errorf("%d distinct trials are done, the plan has %d", len(seen), want)
	}
	for key, n := range seen {
		if n != 1 {
			t.Errorf("trial %s was done %d times", key, n)
		}
	}
}

// nothingLeft waits for the watchdog's work: no process of a run, no scratch
// directory. Six seconds are generous for both.
func nothingLeft(t *testing.T, tmp, dir string) {
	t.Helper()
	var left []string
	for range 60 {
		left = nil
		procs, _ := filepath.Glob("/proc/[0-9]*/environ")
		for _, p := range procs {
			env, err := os.ReadFile(p)
			if err == nil && (bytes.Contains(env, []byte("TMPDIR="+tmp)) || bytes.Contains(env, []byte(dir))) {
				cmd, _ := os.ReadFile(filepath.Dir(p) + "/cmdline")
				left = append(left, "process "+strings.ReplaceAll(string(cmd), "\x00", " "))
			}
		}
		scratch, _ := filepath.Glob(filepath.Join(tmp, "plimsoll-*"))
		for _, s := range scratch {
			left = append(left, "directory "+s)
		}
		if len(left) == 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("left behind:\n%s", strings.Join(left, "\n"))
}
