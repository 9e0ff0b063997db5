package testbed

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// parent is a plimsoll at work that the tests kill. It says what it has made,
// a line each, and goes on until then.
func parent(dir string) {
	ctx := context.Background()
	tb, err := New(ctx, Options{Dir: dir})
	need(err)
	fmt.Println("directory", tb.runDir.dir)
	fmt.Println("watchdog", tb.runDir.watchdog.cmd.Process.Pid)
	scratch, err := tb.Scratch("data")
	need(err)
	need(os.WriteFile(scratch+"/file", make([]byte, 1<<20), 0o600))
	fmt.Println("scratch", scratch)
	_, err = (here{tb}).RAMDisk("store", 1<<20)
	need(err)
	var hosts []Host
	for _, name := range []string{"a", "b"} {
		h, err := tb.AddHost(ctx, name)
		need(err)
		hosts = append(hosts, h)
		if ns := h.(*host).ns; ns != nil {
			link, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(int(ns.Fd())))
			need(err)
			fmt.Println("namespace", link)
		}
	}
	stubborn := []string{os.Args[0], "fake", "stubborn"}
	_, err = hosts[0].Start(ctx, Command{Name: "stubborn", Args: stubborn})
	need(err)
	if tb.Mode().Emulator != "none" {
		need(tb.Shape(ctx, upOf(hosts[0], access(0, time.Millisecond))))
	}
	fmt.Println("all", 1)
	for i := 0; ; i++ {
		p, err := hosts[i%2].Start(ctx, Command{Name: "short", Args: stubborn, StopTime: 1})
		need(err)
		need(p.Stop(ctx))
	}
}

// victim is a parent under test, in a directory of its own for everything.
type victim struct {
	cmd  *exec.Cmd
	dir  string
	said chan [2]string
}

func startVictim(t *testing.T) *victim {
	t.Helper()
	v := &victim{dir: t.TempDir(), said: make(chan [2]string, 64)}
	v.cmd = exec.Command(self(t), "fake", "parent", v.dir)
	v.cmd.Env = []string{"TMPDIR=" + v.dir, "PATH=" + os.Getenv("PATH")}
	v.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	v.cmd.Stderr = os.Stderr
	out, err := v.cmd.StdoutPipe()
	must(t, err)
	must(t, v.cmd.Start())
	go func() {
		defer close(v.said)
		for sc := bufio.NewScanner(out); sc.Scan(); {
			k, what, _ := strings.Cut(sc.Text(), " ")
			v.said <- [2]string{k, what}
		}
	}()
	t.Cleanup(func() {
		_ = v.cmd.Process.Kill()
		for _, pid := range v.traces() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return v
}

// until reads what the victim says up to a word, and returns all it said.
func (v *victim) until(t *testing.T, word string) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	limit := time.After(20 * time.Second)
	for {
		select {
		case s, ok := <-v.said:
			if !ok {
				if word == "" {
					return all
				}
				t.Fatalf("the victim ended before it said %q: %v", word, all)
			}
			all[s[0]] = append(all[s[0]], s[1])
			if s[0] == word {
				return all
			}
		case <-limit:
			t.Fatalf("the victim never said %q: %v", word, all)
		}
	}
}

// traces are the live processes that have the victim's directory in their
// command line or environment: all that it started do.
func (v *victim) traces() []int {
	var pids []int
	for pid, s := range scan() {
		environ, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if !s.dead() && pid != os.Getpid() && strings.Contains(cmdline(pid)+string(environ), v.dir) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func cmdline(pid int) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return string(b)
}

// remains says what of the victim is still there.
func (v *victim) remains(t *testing.T, said map[string][]string) []string {
	var out []string
	for _, pid := range v.traces() {
		out = append(out, fmt.Sprintf("process %d %q", pid, cmdline(pid)))
	}
	files, _ := filepath.Glob(v.dir + "/" + runDirPrefix + "*")
	out = append(out, files...)
	for pid := range scan() {
		links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		for _, l := range append(links, fmt.Sprintf("/proc/%d/ns/net", pid)) {
			if to, err := os.Readlink(l); err == nil && slices.Contains(said["namespace"], to) {
				out = append(out, "namespace "+to)
			}
		}
	}
	if mounted(t, v.dir) {
		out = append(out, "a mount in "+v.dir)
	}
	return out
}

func TestKilledAtRandomMomentsLeavesNothing(t *testing.T) {
	t.Parallel()
	kills := 5 // `make bench` asks for more
	if n, err := strconv.Atoi(os.Getenv("PLIMSOLL_TEST_KILLS")); err == nil {
		kills = n
	}
	for i := range kills {
		v := startVictim(t)
		if i%3 == 0 {
			v.until(t, "all")
		}
		time.Sleep(time.Duration(rand.IntN(150)) * time.Millisecond)
		must(t, v.cmd.Process.Kill())
		_ = v.cmd.Wait()
		v.awaitNothing(t, v.until(t, ""))
	}
}

func (v *victim) awaitNothing(t *testing.T, said map[string][]string) {
	t.Helper()
	var left []string
	defer func() {
		if t.Failed() {
			t.Logf("left: %q", left)
		}
	}()
	eventually(t, "nothing is left", func() bool {
		left = v.remains(t, said)
		return len(left) == 0
	})
}

func TestCtrlCDoesNotReachTheWatchdog(t *testing.T) {
	t.Parallel()
	v := startVictim(t)
	said := v.until(t, "all")
	watchdog, err := strconv.Atoi(said["watchdog"][0])
	must(t, err)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		_ = syscall.Kill(watchdog, sig)
	}
	_ = syscall.Kill(-v.cmd.Process.Pid, syscall.SIGINT) // the terminal's: to the whole group
	_ = v.cmd.Wait()
	v.awaitNothing(t, said)
}

func TestCleanDeadWhenTheWatchdogIsDeadToo(t *testing.T) {
	v := startVictim(t)
	said := v.until(t, "all")
	t.Setenv("TMPDIR", v.dir)
	if removed := cleanDead(t); len(removed) != 0 {
		t.Fatalf("a live run was touched: %q", removed)
	}
	eventually(t, "the daemon has a child", func() bool {
		return slices.ContainsFunc(v.traces(), func(pid int) bool {
			return strings.HasSuffix(cmdline(pid), "stubborn\x00child\x00")
		})
	})
	watchdog, _ := strconv.Atoi(said["watchdog"][0])
	_ = syscall.Kill(watchdog, syscall.SIGKILL)
	_ = v.cmd.Process.Kill()
	_ = v.cmd.Wait()
	eventually(t, "the watchdog is dead", func() bool { return !alive(watchdog) })
	// Leaders die with us; what they started does not.
	if len(v.traces()) == 0 {
		t.Fatal("nothing is left: this test shows nothing")
	}
	// A child between fork and exec holds our lock for a moment longer than we
	// live; whoever comes next then takes the run for alive, and cleans up later.
	var removed []string
	eventually(t, "the crashed run is found", func() bool {
		removed = cleanDead(t)
		return len(removed) > 0
	})
	t.Logf("%q", removed)
	if removed[0] != filepath.Dir(said["scratch"][0]) {
		t.Errorf("removed %q", removed)
	}
	if left := v.remains(t, said); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	if removed := cleanDead(t); len(removed) != 0 {
		t.Errorf("second time: %q", removed)
	}
}

func cleanDead(t *testing.T) (removed []string) {
	t.Helper()
	removed, err := CleanDead()
	must(t, err)
	return removed
}

// The directory of a crashed run names process groups whose numbers others have by now, and one
// that was half written; a link and the directory of another user only look like one. None
// of what they name may be touched.
func TestCleanDeadTouchesNothingElse(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	other := exec.Command(self(t), "fake", "sleep")
	other.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	must(t, other.Start())
	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
	born, err := birth(other.Process.Pid)
	must(t, err)
	precious := []string{filepath.Join(dir, "precious"), filepath.Join(dir, runDirPrefix+"link")}
	must(t, os.Mkdir(precious[0], 0o700))
	must(t, os.Symlink(precious[0], precious[1]))
	if os.Geteuid() == 0 {
		others := filepath.Join(dir, runDirPrefix+"others")
		must(t, os.Mkdir(others, 0o700))
		must(t, os.Chown(others, 54321, 54321))
		precious = append(precious, others)
	}
	dead := filepath.Join(dir, runDirPrefix+"dead")
	for i, groups := range []string{groupsDir(dead), filepath.Join(dead, "another boot")} {
		shift := uint64(1 - i) // wrong birth; right birth, but another boot
		must(t, os.MkdirAll(groups, 0o700))
		for _, name := range []string{fmt.Sprintf("%d-%d", other.Process.Pid, born-shift), strconv.Itoa(os.Getpid())} {
			must(t, os.WriteFile(filepath.Join(groups, name), nil, 0o600))
		}
		if removed := cleanDead(t); len(removed) != 1 {
			t.Errorf("removed %q", removed)
		}
		if !alive(other.Process.Pid) {
			t.Error("a process of others was ended")
		}
		for _, p := range precious {
			_, err := os.Lstat(p)
			must(t, err)
		}
		if _, err := os.Stat(dead); err == nil {
			t.Error("the crashed run's directory is left")
		}
	}
}

// A program that does not know `node watchdog` must not be taken for plimsoll,
// least of all when it would make a testbed in its turn.
func TestWatchdogMustBePlimsoll(t *testing.T) {
	for _, self := range []string{"/bin/true", "/bin/sleep", "/no/such/program"} {
		_, err := startWatchdog(self, t.TempDir())
		wantError(t, err, "watchdog")
	}
	t.Setenv(watchdogEnv, "1")
	_, err := New(t.Context(), Options{Dir: t.TempDir()})
	wantError(t, err, "ServeNode")
}
