package engine

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"github.com/plimsoll-project/plimsoll/testbed"
)

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
	must(t, c.Process.Kill())
	_ = c.Wait()
	if !begun {
		t.Fatalf("it never began: %s", &said)
	}
	for limit := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		left := marked(tmp)
		files, _ := filepath.Glob(filepath.Join(tmp, "plimsoll-testbed-*"))
		left = append(left, files...)
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
	all, _ := procfs.AllProcs()
	for _, p := range all {
		env, _ := p.Environ()
		args, _ := p.CmdLine()
		if strings.Contains(strings.Join(env, " "), "TMPDIR="+tmp) {
			lines = append(lines, strings.Join(args, " "))
		}
	}
	return lines
}
