package testbed

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// entered is what enterAndRun reports.
type entered struct {
	UID   int
	Mode  Mode
	RTT   float64
	Want  float64
	OK    bool
	Echo  bool
	RAM   bool // a RAM disk was made
	Error string
}

// enterAndRun is what a run does when an ordinary user starts it: enter, make
// hosts, use them. With "wait" it waits for a signal instead, and ends with 7. With "here" it stays in its network.
func enterAndRun(args []string) {
	here := len(args) > 1 && args[1] == "here"
	code, done, err := 0, false, error(nil)
	if here {
		done, err = EnterHere()
	} else {
		code, done, err = Enter()
	}
	if done {
		os.Exit(code)
	}
	if len(args) > 1 && args[1] == "wait" {
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		fmt.Println("waiting")
		<-c
		os.Exit(7)
	}
	r := entered{UID: os.Geteuid()}
	home, e := os.Readlink("/proc/self/ns/net")
	need(e)
	if err != nil {
		r.Error = err.Error()
	} else {
		r.use(args[0])
	}
	if here {
		needThreadsIn(home)
	}
	need(json.NewEncoder(os.Stdout).Encode(r))
}

func (r *entered) use(dir string) {
	ctx := context.Background()
	tb, err := New(ctx, Options{Dir: dir})
	need(err)
	r.Mode = tb.Mode()
	d, err := (here{tb}).RAMDisk("store", 1<<20)
	if !errors.Is(err, syscall.EPERM) {
		need(err)
		on, err := (here{tb}).Filesystem(d.Path)
		need(err)
		r.RAM = on.Memory
		need(os.WriteFile(filepath.Join(d.Path, "file"), []byte("x"), 0o600))
	}
	a, err := tb.AddHost(ctx, "a")
	need(err)
	b, err := tb.AddHost(ctx, "b")
	need(err)
	port, err := a.Port(ctx, 0)
	need(err)
	addr := fmt.Sprintf("%s:%d", a.Addr(), port)
	_, err = a.Start(ctx, Command{Name: "echo", Args: []string{os.Args[0], "fake", "echo", addr},
		Ready: dialer(b, addr)})
	need(err)
	need(tb.Shape(ctx, upOf(a, access(0, 10*time.Millisecond))))
	c, err := tb.Check(ctx, a, b, 0)
	need(err)
	r.RTT, r.Want, r.OK = c.RTT, c.WantRTT, c.OK
	conn, err := b.Dial(ctx, "tcp", addr)
	need(err)
	_, err = conn.Write([]byte("hello"))
	need(err)
	got := make([]byte, 5)
	_, err = io.ReadFull(conn, got)
	need(err)
	r.Echo = string(got) == "hello"
	need(conn.Close())
	need(tb.Close(ctx))
}

// needThreadsIn ends this process if a thread that goroutines may run on is in another network namespace.
func needThreadsIn(home string) {
	const threads = 50
	var all, ended sync.WaitGroup
	all.Add(threads)
	for range threads {
		ended.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			at, err := os.Readlink("/proc/thread-self/ns/net")
			if err == nil && at != home {
				err = fmt.Errorf("a thread is in %s, not in %s", at, home)
			}
			need(err)
			all.Done()
			all.Wait() // each has a thread of its own
		})
	}
	ended.Wait()
}

// asUser prepares a command of the test binary for an ordinary user.
func asUser(t *testing.T, args ...string) (*exec.Cmd, string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("not root: cannot become another user")
	}
	const uid = 54321
	dir, err := os.MkdirTemp("", "testbed-user-")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	exe := filepath.Join(dir, "plimsoll")
	b, err := os.ReadFile(self(t))
	must(t, err)
	must(t, errors.Join(os.WriteFile(exe, b, 0o755), os.Chmod(dir, 0o755), os.Chown(dir, uid, uid)))
	cmd := exec.Command(exe, append([]string{"fake", "enter", dir}, args...)...)
	cmd.Dir = dir
	cmd.Env = []string{"TMPDIR=" + dir, "PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}, Setsid: true}
	return cmd, dir
}

// report runs the command and reads what it reports.
func report(t *testing.T, cmd *exec.Cmd) entered {
	t.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, &stderr)
	}
	var r entered
	must(t, json.Unmarshal(out, &r))
	return r
}

// Who makes hosts in a user namespace, and stays in the network that it was started in, has no thread in a host's.
func TestStaysInItsNetwork(t *testing.T) {
	t.Parallel()
	cmd, _ := asUser(t, "here")
	if r := report(t, cmd); r.Error != "" && !strings.Contains(r.Error, "no user namespaces") {
		t.Error(r.Error)
	}
}

// An ordinary user, and root in an ordinary container, who may make no namespaces, use a user namespace, and
// links are emulated all the same.
func TestWithoutTheRight(t *testing.T) {
	t.Parallel()
	for name, drop := range map[string]string{ // capabilities of root; empty: an ordinary user
		"ordinary user":     "",
		"as in a container": "-sys_admin,-net_admin",
		"no packet sockets": "-net_raw",
		"one user only":     "-sys_admin,-net_admin,-setuid,-setgid",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd, dir := asUser(t)
			if drop != "" {
				cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // still root
				must(t, os.Chown(dir, 0, 0))
				setpriv, err := exec.LookPath("setpriv")
				if err != nil {
					t.Skip(err)
				}
				cmd.Path, cmd.Args = setpriv, append([]string{setpriv, "--bounding-set", drop}, cmd.Args...)
			}
			r := report(t, cmd)
			if strings.Contains(r.Error, "no user namespaces") {
				t.Skip(r.Error)
			}
			if r.Error != "" || r.UID != 0 || !r.Mode.Namespaces || !r.Echo || drop == "" && !r.RAM {
				t.Errorf("got %+v", r)
			}
			if r.Mode.Emulator == "none" || r.RTT < 0.01 || r.Want != 0.01 {
				t.Errorf("link not emulated: %+v", r)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, runDirPrefix+"*")); len(left) != 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
}

// Where there are no namespaces, hosts are addresses of the loopback interface,
// a run works, and it is said why links are as they are.
func TestNoNamespaces(t *testing.T) {
	t.Parallel()
	cmd, _ := asUser(t)
	cmd.Env = append(cmd.Env, EnteredVariable+"=1") // so Enter does nothing
	r := report(t, cmd)
	if r.Error != "" || r.UID == 0 || r.Mode.Namespaces || !r.Echo || r.OK || r.Want != 0.01 || r.RAM {
		t.Errorf("got %+v", r)
	}
	if !strings.Contains(r.Mode.Why, "no network namespaces") || !strings.Contains(r.Mode.Why, "not permitted") {
		t.Errorf("why: %s", r.Mode.Why)
	}
}

// waiting is a command of an ordinary user that has entered, and waits for a signal.
func waiting(t *testing.T) (cmd *exec.Cmd, dir string) {
	t.Helper()
	cmd, dir = asUser(t, "wait")
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "waiting\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	return cmd, dir
}

func TestEnterPassesSignalsAndTheExitCode(t *testing.T) {
	t.Parallel()
	cmd, _ := waiting(t)
	_ = cmd.Process.Signal(syscall.SIGTERM)
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Errorf("got %v, want exit code 7", err)
	}
}

func TestEnterDiesWithItsParent(t *testing.T) {
	t.Parallel()
	cmd, dir := waiting(t)
	v := &victim{dir: dir}
	if n := len(v.traces()); n != 2 {
		t.Skipf("%d processes: no user namespaces here?", n)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	eventually(t, "the command inside is dead", func() bool { return len(v.traces()) == 0 })
}
