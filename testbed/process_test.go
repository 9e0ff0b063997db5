package testbed

import (
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// plainHost is where tests of processes that need no network run.
func plainHost(t *testing.T) (*Testbed, *host) {
	t.Helper()
	tb := newTestbed(t, Options{Plain: true})
	return tb, addHost(t, tb, "a")
}

func fakeCommand(t *testing.T, name string, args ...string) Command {
	t.Helper()
	return Command{Name: name, Role: "system", Args: append([]string{self(t), "fake"}, args...)}
}

// alive reports whether pid runs (a zombie does not).
func alive(pid int) bool {
	s, err := readStat(pid)
	return err == nil && !s.dead()
}

// eventually polls for what the kernel does in its own time.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for limit := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

func logs(t *testing.T, p *process, text string) func() bool {
	return func() bool {
		b, err := os.ReadFile(p.LogPath())
		must(t, err)
		return strings.Contains(string(b), text)
	}
}

func TestStartWaitsUntilReady(t *testing.T) {
	_, h := plainHost(t)
	c := fakeCommand(t, "sleep", "sleep")
	asked := 0
	c.Ready = func(context.Context) error {
		if asked++; asked < 4 {
			return errors.New("not yet")
		}
		return nil
	}
	p, err := h.start(t.Context(), c)
	if err != nil || asked != 4 {
		t.Fatalf("asked %d times: %v", asked, err)
	}
	if p.Err() != nil || !alive(p.PID()) || p.Name() != "sleep" || p.Role() != "system" || p.Host() != h {
		t.Errorf("process: %+v", p)
	}
	if err := p.Stop(t.Context()); err != nil || p.Err() != nil {
		t.Errorf("stop: %v, %v", err, p.Err())
	}
	if err := p.Stop(t.Context()); err != nil {
		t.Errorf("second stop: %v", err)
	}
}

func TestStartErrors(t *testing.T) {
	_, h := plainHost(t)
	never := func(context.Context) error { return errors.New("connection refused, so far") }
	hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	interrupted, interrupt := context.WithCancel(t.Context())
	asked := 0
	interrupting := func(context.Context) error {
		if asked++; asked == 3 {
			interrupt()
		}
		return errors.New("connection refused, so far")
	}
	for _, tc := range []struct {
		name  string
		ctx   context.Context
		args  []string
		ready func(context.Context) error
		want  []string
	}{
		{"slow", t.Context(), []string{self(t), "fake", "sleep"}, never, []string{"testbed: start slow: not ready " +
			"after 300 ms", "connection refused, so far", "slow.log"}},
		{"hangs", t.Context(), []string{self(t), "fake", "sleep"}, hang, []string{"not ready after 300 ms"}},
		{"ends", t.Context(), []string{self(t), "fake", "exit", "3", "the reason why"}, hang,
			[]string{"ended before it was ready", "exit status 3", "the reason why", "ends.log"}},
		{"missing", t.Context(), []string{"no-such-program-anywhere"}, nil,
			[]string{"testbed: start missing", "no-such-program-anywhere", "installed"}},
		{"interrupted", interrupted, []string{self(t), "fake", "sleep"}, interrupting,
			[]string{"context canceled", "so far"}},
		{"", t.Context(), nil, nil, []string{"needs a name"}},
	} {
		c := Command{Name: tc.name, Args: tc.args, Ready: tc.ready, ReadyTimeout: 300 * time.Millisecond}
		if tc.name == "interrupted" {
			c.ReadyTimeout = time.Minute
		}
		_, err := h.start(tc.ctx, c)
		if err == nil {
			t.Fatalf("%s: no error", tc.name)
		}
		for _, w := range tc.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q is not in: %v", tc.name, w, err)
			}
		}
		if left := processes(h); len(left) != 0 {
			t.Errorf("%s: %d processes left", tc.name, len(left))
		}
	}
}

func TestProcessThatEndsByItself(t *testing.T) {
	_, h := plainHost(t)
	p, err := h.start(t.Context(), fakeCommand(t, "x", "exit", "7", "out of cheese"))
	must(t, err)
	select {
	case <-p.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("its end was not noticed")
	}
	if err := p.Err(); err == nil || !strings.Contains(err.Error(), "exit status 7") ||
		!strings.Contains(err.Error(), "out of cheese") {
		t.Errorf("got %v", err)
	}
	again, err := h.start(t.Context(), fakeCommand(t, "x", "sleep"))
	if err != nil {
		t.Fatalf("second start: %v", err)
	}
	if _, err := h.start(t.Context(), fakeCommand(t, "x", "sleep")); err == nil ||
		!strings.Contains(err.Error(), "runs already") {
		t.Errorf("third start beside it: %v", err)
	}
	// Killed from outside: that is its own end, too.
	_ = syscall.Kill(again.PID(), syscall.SIGKILL)
	<-again.Done()
	if err := again.Err(); err == nil || !strings.Contains(err.Error(), "signal: killed") {
		t.Errorf("got %v", err)
	}
}

func TestStopEscalates(t *testing.T) {
	_, h := plainHost(t)
	c := fakeCommand(t, "stubborn", "stubborn")
	c.Stop = []StopStep{{syscall.SIGTERM, 0}, {syscall.SIGQUIT, 100 * time.Millisecond},
		{syscall.SIGKILL, 200 * time.Millisecond}}
	p, err := h.start(t.Context(), c)
	must(t, err)
	eventually(t, "leader and child run", func() bool {
		return len(p.members()) == 2 && logs(t, p, "stubborn\nstubborn")()
	})
	pids := p.members()
	began := time.Now()
	must(t, p.Stop(t.Context()))
	if took := time.Since(began); took < 200*time.Millisecond {
		t.Errorf("killed after %s, before it was asked in every way", took)
	}
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("pid %d is left", pid)
		}
	}
	if p.Err() != nil {
		t.Errorf("stopped by us, yet: %v", p.Err())
	}
}

func TestStopRemovesOrphans(t *testing.T) {
	_, h := plainHost(t)
	p, err := h.start(t.Context(), fakeCommand(t, "orphan", "orphan"))
	must(t, err)
	<-p.Done()
	eventually(t, "a child is left", func() bool { return len(p.members()) == 1 })
	child := p.members()[0]
	if err := p.Stop(t.Context()); err != nil || alive(child) {
		t.Errorf("stop: %v, child alive %v", err, alive(child))
	}
}

func TestEnvironmentIsMinimal(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
	tb, h := plainHost(t)
	c := fakeCommand(t, "env", "env")
	c.Env = []string{"FOO=bar"}
	p, err := h.start(t.Context(), c)
	must(t, err)
	<-p.Done()
	b, _ := os.ReadFile(p.LogPath())
	got := string(b)
	if strings.Contains(got, "hunter2") || !strings.Contains(got, "FOO=bar") ||
		!strings.Contains(got, "HOME="+tb.opt.Dir) {
		t.Errorf("environment:\n%s", got)
	}
}

func TestPipes(t *testing.T) {
	_, h := plainHost(t)
	// Held open by us: it must not end by itself.
	held, err := h.start(t.Context(), fakeCommand(t, "held", "stdin"))
	must(t, err)
	// The caller's own, files or not: the input ends when the caller's does, and the
	// output when all has come.
	for name, pipe := range map[string]func() (io.ReadCloser, io.WriteCloser){
		"files": func() (io.ReadCloser, io.WriteCloser) {
			r, w, err := os.Pipe()
			must(t, err)
			return r, w
		},
		"streams": func() (io.ReadCloser, io.WriteCloser) { return io.Pipe() },
	} {
		in, feed := pipe()
		result, out := pipe()
		p, err := h.Start(t.Context(), Command{Name: name, Args: []string{"/bin/cat"}, Stdin: in, Stdout: out})
		must(t, err)
		go func() {
			_, _ = feed.Write([]byte("to and fro"))
			feed.Close()
		}()
		got, err := io.ReadAll(result)
		if <-p.Done(); string(got) != "to and fro" || err != nil || p.Err() != nil {
			t.Errorf("%s: output %q, %v, %v", name, got, err, p.Err())
		}
		// Of a process that cannot be started nothing stays open.
		in, feed = pipe()
		result, out = pipe()
		if _, err := h.Start(t.Context(), Command{Name: name + "2", Args: []string{"/no/such/program"}, Stdin: in,
			Stdout: out}); err == nil {
			t.Errorf("%s: a program that is not there is started", name)
		}
		if got, err := io.ReadAll(result); len(got) > 0 || err != nil {
			t.Errorf("%s: output of nothing: %q, %v", name, got, err)
		}
		if _, err := feed.Write([]byte("x")); err == nil {
			t.Errorf("%s: somebody reads what nothing was started for", name)
		}
	}
	select {
	case <-held.Done():
		t.Errorf("the process whose input we hold has ended: %v", held.Err())
	default:
	}
}

// Close while processes are being started leaves none, and start fails after.
func TestCloseWhileStarting(t *testing.T) {
	for range 10 {
		tb, h := plainHost(t)
		pids := make(chan int, 1000)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for i := 0; ; i++ {
				c := fakeCommand(t, "sleep"+strconv.Itoa(i), "sleep")
				c.Ready = func(context.Context) error { return nil }
				p, err := h.start(t.Context(), c)
				if err != nil {
					return
				}
				pids <- p.PID()
			}
		}()
		first := <-pids
		must(t, tb.Close(t.Context()))
		<-ended
		close(pids)
		for pid := first; pid != 0; pid = <-pids {
			if alive(pid) {
				t.Errorf("pid %d is left", pid)
			}
		}
	}
}

// Who has the number of a process that has ended is none of its family.
func TestFamilyOfAUsedNumber(t *testing.T) {
	const pid, ended, later = 7, 100, 200
	p := &process{pid: pid, birth: ended, seen: map[int]uint64{8: ended + 1}}
	all := map[int]stat{
		pid: {pid: pid, pgrp: pid, session: pid, birth: later}, 8: {pid: 8, ppid: 1, birth: ended + 1},
		9: {pid: 9, ppid: pid, pgrp: pid, session: pid, birth: later + 1},
	}
	if got := p.family(all); len(got) != 1 || got[0].pid != 8 {
		t.Errorf("%+v", got)
	}
}
