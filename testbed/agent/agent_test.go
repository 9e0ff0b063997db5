package agent

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/testbed"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// The test binary is the agent and the watchdog, too.
func TestMain(m *testing.M) {
	handled, err := ServeNode(context.Background(), os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if !handled {
		_ = flag.Set("test.parallel", "4") // they wait for processes
		os.Exit(m.Run())
	}
}

// both runs a test with hosts of this machine, and with hosts behind agents: they do the same.
func both(t *testing.T, test func(*testing.T, *testbed.Testbed)) {
	for name, hosts := range map[string]testbed.Hosts{"here": nil, "behind agents": Behind} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, bed(t, testbed.Options{Plain: true, Hosts: hosts}))
		})
	}
}

func bed(t *testing.T, opt testbed.Options) *testbed.Testbed {
	t.Helper()
	opt.Dir, opt.Log = t.TempDir(), func(s string) { t.Log(s) }
	tb, err := testbed.New(t.Context(), opt)
	must(t, err)
	t.Cleanup(func() { must(t, tb.Close(context.Background())) })
	return tb
}

func addHost(t *testing.T, tb *testbed.Testbed, name string) testbed.Host {
	t.Helper()
	h, err := tb.AddHost(t.Context(), name)
	must(t, err)
	return h
}

func shell(name, script string) testbed.Command {
	return testbed.Command{Name: name, Role: "system", Args: []string{"sh", "-c", script}}
}

func start(t *testing.T, h testbed.Host, c testbed.Command) testbed.Process {
	t.Helper()
	p, err := h.Start(t.Context(), c)
	must(t, err)
	return p
}

func awaitEnd(t *testing.T, p testbed.Process) {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(20 * time.Second):
		t.Fatalf("%s does not end", p.Name())
	}
}

// eventually polls for what the kernel does in its own time.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

func gone(t *testing.T, pid int) {
	t.Helper()
	eventually(t, "a process group is gone", func() bool { return errors.Is(syscall.Kill(-pid, 0), syscall.ESRCH) })
}

func TestProcesses(t *testing.T) {
	t.Parallel()
	both(t, testProcesses)
}

func testProcesses(t *testing.T, tb *testbed.Testbed) {
	h, other := addHost(t, tb, "a"), addHost(t, tb, "b")
	held := start(t, h, shell("held", "cat")) // its input stays open

	t.Run("input, output and log", func(t *testing.T) {
		in, feed := io.Pipe()
		result, out := io.Pipe()
		c := shell("cat", "echo began >&2; cat; echo over >&2")
		c.Stdin, c.Stdout = in, out
		p := start(t, h, c)
		line := bufio.NewReader(result)
		for i := range 3 { // both ways at once
			fmt.Fprintln(feed, i)
			if got, err := line.ReadString('\n'); err != nil || got != fmt.Sprintln(i) {
				t.Fatalf("%q, %v", got, err)
			}
		}
		feed.Close()
		if rest, err := io.ReadAll(line); err != nil || len(rest) > 0 {
			t.Errorf("%q, %v", rest, err)
		}
		awaitEnd(t, p)
		must(t, p.Err())
		again := start(t, h, shell("cat", "echo again"))
		awaitEnd(t, again)
		b, err := os.ReadFile(p.LogPath())
		if err != nil || string(b) != "began\nover\nagain\n" || p.LogPath() != again.LogPath() {
			t.Errorf("log %q, %v", b, err)
		}
		if filepath.Dir(p.LogPath()) != tb.Logs() {
			t.Errorf("the log is %s", p.LogPath())
		}
	})
	t.Run("ready", func(t *testing.T) {
		c := shell("late", "sleep 0.2; touch $HOME/ready; sleep 60")
		c.Dir = t.TempDir()
		asked := 0
		c.Ready = func(context.Context) error {
			asked++
			_, err := h.Files().ReadFile(c.Dir + "/ready")
			return err
		}
		p := start(t, h, c)
		if asked < 2 {
			t.Errorf("it was asked %d times", asked)
		}
		_, err := h.Start(t.Context(), c)
		wantError(t, err, "runs already")
		must(t, p.Stop(t.Context()))
		gone(t, p.ID().PID)
	})
	t.Run("cannot start", func(t *testing.T) {
		never := func(context.Context) error { return fs.ErrNotExist }
		hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		interrupted, interrupt := context.WithCancel(t.Context())
		interrupting := func(context.Context) error { interrupt(); return fs.ErrNotExist }
		for _, c := range []struct {
			name  string
			ctx   context.Context
			args  []string
			ready func(context.Context) error
			want  string // words of the error
		}{
			{"slow", t.Context(), []string{"sleep", "60"}, never, "start\x00not ready after 300 ms\x00file does not exist"},
			{"hangs", t.Context(), []string{"sleep", "60"}, hang, "not ready after 300 ms"},
			{"ends", t.Context(), []string{"sh", "-c", "echo why >&2; exit 3"}, hang,
				"ended before it was ready\x00exit status 3\x00why\x00ends.log"},
			{"missing", t.Context(), []string{"no-such-program-anywhere"}, nil,
				"start missing\x00no-such-program\x00installed"},
			{"interrupted", interrupted, []string{"sleep", "60"}, interrupting, "context canceled\x00not exist"},
			{"", t.Context(), nil, nil, "needs a name"},
		} {
			in, feed := io.Pipe()
			result, out := io.Pipe()
			limit := time.Minute
			if strings.Contains(c.want, "300 ms") {
				limit = 300 * time.Millisecond
			}
			_, err := h.Start(c.ctx, testbed.Command{Name: c.name, Args: c.args, Ready: c.ready, Stdin: in, Stdout: out,
				ReadyTimeout: limit})
			wantError(t, err, strings.Split(c.want, "\x00")...)
			if _, err := io.ReadAll(result); err != nil {
				t.Errorf("%s: output: %v", c.name, err)
			}
			_, _ = feed.Write([]byte("x")) // may be on its way to what has just ended
			if _, err := feed.Write([]byte("x")); err == nil {
				t.Errorf("%s: what was not started reads", c.name)
			}
		}
	})
	t.Run("ends badly", func(t *testing.T) {
		p := start(t, h, shell("bad", "echo alas; exit 3"))
		awaitEnd(t, p)
		wantError(t, p.Err(), "exit status 3", "alas", p.LogPath())
		p = start(t, h, shell("bad", "sleep 60"))
		must(t, syscall.Kill(p.ID().PID, syscall.SIGKILL))
		awaitEnd(t, p)
		wantError(t, p.Err(), "signal: killed")
	})
	t.Run("stop in a hurry", func(t *testing.T) {
		p := start(t, h, shell("stubborn", "trap '' TERM QUIT; while :; do sleep 1; done"))
		time.Sleep(100 * time.Millisecond) // for the trap
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		began := time.Now()
		must(t, p.Stop(ctx))
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("it took %v", took)
		}
		awaitEnd(t, p)
		must(t, p.Err())
		must(t, p.Stop(t.Context()))
	})
	if testbed.Ended(held) {
		t.Errorf("the process whose input is open has ended: %v", held.Err())
	}
	must(t, held.Stop(t.Context()))
	t.Run("observed", func(t *testing.T) {
		traced := testbed.TrackProcesses(h)
		p, q := start(t, h, shell("twin", "sleep 60")), start(t, other, shell("twin", "sleep 60"))
		if p.Name() != "twin" || q.Name() != "b/twin" {
			t.Errorf("names %s and %s", p.Name(), q.Name())
		}
		if p.Host() != h || p.ID().Host != "a" || !slices.Contains(traced(), p) {
			t.Errorf("%v on %v; followed: %v", p.ID(), p.Host(), traced())
		}
		if m := p.Memory(); !(m.RSS > 0) || !(p.Peak() > 0) || p.ResetPeak() != nil {
			t.Errorf("memory %+v", m)
		}
		var last []record.Sample
		stop := tb.Observe(time.Now(), time.Hour, func(all []record.Sample) { last = all })
		must(t, p.Stop(t.Context()))
		stop()
		names := map[string]int{}
		for _, s := range last {
			if !slices.Contains([]string{"cat", "bad"}, s.Process) { // ended by themselves
				names[s.Process]++
			}
			if s.Process == "b/twin" && (s.PID != q.ID().PID || !(s.RSS > 0) || s.End < s.Start) {
				t.Errorf("sample %+v", s)
			}
		}
		// The one that has ended has its last word; agents have none.
		want := map[string]int{"twin": 1, "b/twin": 1, "box": 1, "others": 1, "plimsoll": 1}
		if !maps.Equal(names, want) {
			t.Errorf("samples of %v, want %v", names, want)
		}
	})
}

// A process whose log cannot be written here runs on, and its end says so.
func TestLogThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	tb := bed(t, testbed.Options{Plain: true, Hosts: Behind})
	h := addHost(t, tb, "a")
	must(t, os.Mkdir(filepath.Join(tb.Logs(), "mute.log"), 0o755))
	p := start(t, h, shell("mute", "sleep 600"))
	must(t, p.Stop(t.Context()))
	wantError(t, p.Err(), "the log of mute is incomplete here")
}

func TestConnections(t *testing.T) {
	tb := bed(t, testbed.Options{Plain: true, Hosts: Behind})
	a, b := addHost(t, tb, "a"), addHost(t, tb, "b")
	port, err := b.Port(t.Context(), 0)
	must(t, err)
	at := fmt.Sprintf("%s:%d", b.Addr(), port)
	if _, err := a.Dial(t.Context(), "tcp", at); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("nothing listens: %v", err)
	}
	l, err := net.Listen("tcp", at)
	must(t, err)
	if _, err := b.Port(t.Context(), port); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("in use: %v", err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c) // both ways at once
				_ = c.Close()
			}()
		}
	}()
	sent := bytes.Repeat([]byte("plimsoll"), 1<<18)
	for range 3 {
		c, err := a.Dial(t.Context(), "tcp", at)
		must(t, err)
		go func() { _, _ = c.Write(sent) }()
		got := make([]byte, len(sent))
		if n, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, sent) {
			t.Errorf("%d of %d bytes came back, %v", n, len(sent), err)
		}
		_ = c.Close()
	}
	c, err := a.Dial(t.Context(), "tcp", at)
	must(t, err)
	_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("nothing comes: %v", err)
	}
	_ = c.Close()
	must(t, l.Close())
	if _, err := a.Dial(t.Context(), "tcp", at); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the listener is closed, yet: %v", err)
	}
	if _, err := a.Dial(t.Context(), "udp", at); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("datagrams: %v", err)
	}
	check, err := tb.Check(t.Context(), a, b, 0)
	if err != nil || !check.OK || !(check.Rate > 0) || !math.IsNaN(check.Loss) {
		t.Errorf("link %+v, %v", check, err)
	}
}

// A file is there whole or not at all, with its mode, and its directories are made.
func TestFiles(t *testing.T) { both(t, testFiles) }

func testFiles(t *testing.T, tb *testbed.Testbed) {
	f, dir := addHost(t, tb, "a").Files(), t.TempDir()
	path := filepath.Join(dir, "x", "file")
	large := bytes.Repeat([]byte("0123456789abcdef"), 200_000) // several chunks
	for _, content := range [][]byte{{}, []byte("first"), large} {
		must(t, f.Write(t.Context(), path, 0o640, iotest.HalfReader(bytes.NewReader(content))))
		if b, err := f.ReadFile(path); err != nil || !bytes.Equal(b, content) {
			t.Errorf("%d bytes instead of %d, %v", len(b), len(content), err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	broken := io.MultiReader(strings.NewReader("new"), iotest.ErrReader(errors.New("broken")))
	if f.Write(t.Context(), path, 0o600, broken) == nil || f.Write(ended, path, 0o600, strings.NewReader("new")) == nil {
		t.Error("half a file was written")
	}
	if e, err := testbed.Stat(f, path); err != nil || e.Size != int64(len(large)) || e.Mode != 0o640 {
		t.Errorf("stat %+v, %v", e, err)
	}
	must(t, f.Rename(path, path+"2"))
	must(t, f.MkdirAll(filepath.Join(dir, "y"), 0o700))
	must(t, os.Link(path+"2", filepath.Join(dir, "y", "linked")))
	must(t, os.Symlink("/", filepath.Join(dir, "z")))
	var seen []string
	inodes := map[uint64]bool{}
	walk := func(e testbed.Entry) error {
		seen, inodes[e.Inode] = append(seen, fmt.Sprint(e.Path, e.Mode.IsDir())), true
		return nil
	}
	if err := f.Walk(dir, walk); err != nil || len(inodes) != 5 ||
		fmt.Sprint(seen) != "[.true xtrue x/file2false ytrue y/linkedfalse zfalse]" {
		t.Errorf("walk %v with %d inodes, %v", seen, len(inodes), err)
	}
	if err := f.Walk(dir, func(testbed.Entry) error { return fs.ErrClosed }); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("a walk that is ended: %v", err)
	}
	if err := f.Walk(path, walk); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("walk nothing: %v", err)
	}
	if _, err := f.ReadFile(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is none: %v", err)
	}
	must(t, f.RemoveAll(filepath.Join(dir, "x")))
}

func TestMachine(t *testing.T) {
	h := addHost(t, bed(t, testbed.Options{Plain: true, Hosts: Behind}), "a").(*Host)
	if m := h.Machine(); m.Name() != "" {
		t.Errorf("hosts of this machine are said to be on %q", m.Name())
	}
	h.opt.Machine = nil
	m, here := h.Machine(), testbed.Here()
	free, err := m.AvailableMemory()
	if err != nil || free <= 0 || m.Name() != "a" || m.CPUs() != here.CPUs() ||
		m.Environment()["kernel"] != here.Environment()["kernel"] {
		t.Errorf("%s: %d CPUs, %v free, %v", m.Name(), m.CPUs(), free, err)
	}
	polled := h.Poll()
	for _, name := range []string{testbed.BoxSample + "@a", testbed.OthersSample + "@a"} {
		if !slices.ContainsFunc(polled, func(s record.Sample) bool { return s.Process == name }) {
			t.Errorf("no sample of %s: %v", name, polled)
		}
	}
	if on, err := m.Filesystem(t.TempDir()); err != nil || !(on.Free > 0) {
		t.Errorf("%+v, %v", on, err)
	}
	_, err = m.RAMDisk("large", math.MaxInt64)
	wantError(t, err, "end other programs")
	d, err := m.RAMDisk("small", 1<<20)
	must(t, err)
	_, err = os.Stat(d.Path)
	must(t, err)
	must(t, d.Remove())
	if _, err := os.Stat(d.Path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

// Each host is a namespace of its own, the calls cross no link of it, and the agent
// measures what the emulator does.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	tb := bed(t, testbed.Options{Hosts: Behind})
	if m := tb.Mode(); m.Emulator == "none" {
		t.Skip(m.Why)
	}
	a, b := addHost(t, tb, "a"), addHost(t, tb, "b")
	p := link.Params{Rate: 50e6, Delay: 5 * time.Millisecond}
	both := map[string]link.Params{a.Addr().String(): p}
	must(t, tb.Shape(t.Context(), testbed.ShapeSpec{Topology: link.Topology{Up: both, Down: both}}))
	c, err := tb.Check(t.Context(), a, b, 0.1)
	if err != nil || c.RTT < 0.010 || c.RTT > 0.030 || c.Rate > 50e6 || c.Rate < 20e6 ||
		c.Congestion != testbed.DefaultCongestion {
		t.Errorf("link %+v, %v", c, err)
	}
	_, before := a.Traffic()
	content := strings.NewReader(strings.Repeat("x", 10<<20))
	must(t, a.Files().Write(t.Context(), filepath.Join(t.TempDir(), "file"), 0o600, content))
	if _, after := a.Traffic(); !(after-before < 1<<20) {
		t.Errorf("%g bytes of calls crossed the host's link", after-before)
	}
}

// Who has no certificate of the run's authority is refused, by either end.
func TestStrangersAreRefused(t *testing.T) {
	ours, theirs, err := NewCredentials()
	must(t, err)
	stranger, strangers, err := NewCredentials()
	must(t, err)
	for _, c := range []struct {
		name           string
		server, client Credentials
		ok             bool
	}{
		{"the run's", theirs, ours, true},
		{"a stranger calls", theirs, stranger, false},
		{"a stranger answers", strangers, ours, false},
		{"an agent calls", theirs, theirs, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			must(t, err)
			config, err := c.server.config()
			must(t, err)
			s := &server{}
			web := s.web(config, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				newExchange(w, r).answer(nil)
			}))
			defer web.Close()
			go web.ServeTLS(l, "", "")
			dial := func(ctx context.Context) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "tcp", l.Addr().String())
			}
			h, err := Reach(t.Context(), Options{Credentials: c.client, Dial: dial})
			if (err == nil) != c.ok {
				t.Errorf("error %v", err)
			}
			if err == nil {
				h.Close()
			}
		})
	}
}

// launched is a host behind an agent that the test may end.
func launched(t *testing.T, orphaned time.Duration) (*Host, testbed.Process) {
	t.Helper()
	tb := bed(t, testbed.Options{Plain: true})
	at := addHost(t, tb, "a")
	traced := testbed.TrackProcesses(at)
	h, err := launch(t.Context(), tb, at, orphaned)
	must(t, err)
	return h, traced()[0]
}

// An agent's end, by kill -9 or because its engine has been silent, is the end of all that
// it started.
func TestAgentEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		orphaned time.Duration
		end      func(*testing.T, *Host, testbed.Process)
	}{
		{"killed", DefaultOrphaned, func(t *testing.T, _ *Host, agent testbed.Process) {
			must(t, agent.Signal(syscall.SIGKILL))
		}},
		{"orphaned", time.Second, func(t *testing.T, h *Host, _ testbed.Process) {
			time.Sleep(2 * time.Second)
			_, err := h.Port(t.Context(), 0)
			must(t, err) // it lives as its engine does
			h.Close()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h, agent := launched(t, c.orphaned)
			p := start(t, h, shell("tree", "setsid sleep 1000 & sleep 1000"))
			c.end(t, h, agent)
			awaitEnd(t, agent)
			awaitEnd(t, p)
			wantError(t, p.Err(), "")
			gone(t, p.ID().PID)
			must(t, p.Stop(t.Context()))
			if _, err := h.Start(t.Context(), shell("late", "true")); err == nil {
				t.Error("the agent is gone, yet a process was started")
			}
		})
	}
}

// An agent that ends while it stops a process, as when a run is interrupted, has left nothing to stop.
func TestAgentEndsDuringStop(t *testing.T) {
	t.Parallel()
	h, agent := launched(t, DefaultOrphaned)
	said, out := io.Pipe()
	c := shell("stubborn", "trap 'echo asked' TERM; echo begun; while :; do sleep 0.1; done")
	c.Stdout, c.StopTime = out, time.Hour
	p := start(t, h, c)
	lines := bufio.NewScanner(said)
	lines.Scan()
	stopped := make(chan error, 1)
	go func() { stopped <- p.Stop(t.Context()) }()
	if !lines.Scan() || lines.Text() != "asked" {
		t.Fatalf("it said %q: %v", lines.Text(), lines.Err())
	}
	must(t, agent.Signal(syscall.SIGKILL))
	must(t, <-stopped)
	gone(t, p.ID().PID)
}

// An agent that ends during a call is known to be lost when the call has failed.
func TestAgentEndsDuringCall(t *testing.T) {
	t.Parallel()
	h, agent := launched(t, DefaultOrphaned)
	endless := readerFunc(func(b []byte) (int, error) {
		if !testbed.Ended(agent) {
			must(t, agent.Signal(syscall.SIGKILL))
			awaitEnd(t, agent)
		}
		return len(b), nil
	})
	if err := h.Files().Write(t.Context(), filepath.Join(t.TempDir(), "file"), 0o600, endless); err == nil ||
		h.Lost() == nil {
		t.Errorf("%v; lost: %v", err, h.Lost())
	}
}

type readerFunc func(b []byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// A machine that was lost and is reached again does nothing that it was asked to do before. One that has its
// address by now is left alone.
func TestReachedAgain(t *testing.T) {
	t.Parallel()
	h, _ := launched(t, DefaultOrphaned)
	p := start(t, h, shell("tree", "setsid sleep 1000 & sleep 1000"))
	other := h.opt
	other.On = "b"
	_, err := Reach(t.Context(), other)
	wantError(t, err, "machine b was called", "machine a's")
	must(t, syscall.Kill(p.ID().PID, 0)) // a call for another machine ends no process
	again, err := Reach(t.Context(), h.opt)
	must(t, err)
	defer again.Close()
	awaitEnd(t, p)
	gone(t, p.ID().PID)
	awaitEnd(t, start(t, again, shell("new", "exit 0")))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantError checks that there is an error, and that it has some words.
func wantError(t testing.TB, err error, words ...string) {
	t.Helper()
	for _, word := range words {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("error %v, want %q", err, word)
		}
	}
}
